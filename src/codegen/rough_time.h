#pragma once

#include "codegen/kernel_spec.h"

namespace braid {

/// What a tuner orders candidates by before it tries them: only their ratios count. All have the
/// same where a template's settings say too little.
[[nodiscard]] double rough_ns(const KernelSpec& spec, const Bindings& bindings,
                              const Target& target);

}  // namespace braid
