#pragma once

#include <span>
#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// The waits of a warp in each basic block of a kernel, for one execution: along the longest chain
/// of dependent instructions. As ptxas schedules them, each instruction begins when its operands
/// are ready, but loads stay behind stores and barriers. Requests of preceding blocks (in a loop,
/// of the block itself) are in flight; loops are averaged over many turns. `asks`: by instruction,
/// how many of its executions make a request, if it is a load.
[[nodiscard]] std::vector<WarpChain> warp_chains(const ptx::Function& function,
                                                 const ControlFlow& flow,
                                                 std::span<const double> asks);

}  // namespace braid::cpu
