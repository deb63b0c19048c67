#pragma once

#include "braid/graph.h"
#include "codegen/kernel/spec.h"

namespace braid {

/// A graph with only this kernel, on operands of its own, which a tuner runs. If the kernel waits
/// for peers, it runs on all ranks of its group, and what they read of each other is first copied
/// into the group's arena.
[[nodiscard]] Graph lone_kernel(const KernelSpec& spec);

}  // namespace braid
