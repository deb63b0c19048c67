#pragma once

#include "braid/graph.h"
#include "codegen/kernel/spec.h"

namespace braid {

/// A graph that is this kernel and nothing else, on operands of its own: what a tuner runs. One
/// that waits for peers runs on all ranks of its group, and what these read of each other is copied
/// into the group's arena first.
[[nodiscard]] Graph lone_kernel(const KernelSpec& spec);

}  // namespace braid
