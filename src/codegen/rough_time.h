#pragma once

#include "codegen/kernel_spec.h"

namespace braid {

/// What the matmuls of a body take in the tiles of its config, without the launch; 0 where it has
/// none.
[[nodiscard]] double rough_ns(const KernelSpec& spec, const Bindings& bindings,
                              const Target& target);

}  // namespace braid
