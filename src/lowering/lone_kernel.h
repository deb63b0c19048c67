#pragma once

#include "braid/graph.h"
#include "codegen/kernel_spec.h"

namespace braid {

/// A graph that is this kernel and nothing else, on operands of its own: what a tuner runs. Throws
/// kInvalidArgument for a kernel that waits for peers, whose operands lie in a group's arena.
[[nodiscard]] Graph lone_kernel(const KernelSpec& spec);

}  // namespace braid
