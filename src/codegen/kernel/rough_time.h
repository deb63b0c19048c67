#pragma once

#include "codegen/kernel/spec.h"

namespace braid {

/// Estimated time of the matmuls of a body with the tiles of its config, without the launch; 0 for
/// a body without matmuls. `resident`: as one of joined kernels.
[[nodiscard]] double rough_ns(const KernelSpec& spec, const Bindings& bindings,
                              const Target& target, bool resident = false);

}  // namespace braid
