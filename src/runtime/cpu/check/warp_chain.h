#pragma once

#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// What a warp waits for in each block of a kernel, once: along the longest chain of instructions
/// each of which needs the one before. As ptxas orders them: each begins as soon as its operands
/// are there, but loads stay behind stores and barriers. What the blocks before, in a loop the
/// block itself, have asked for is on its way; in a loop it is the average of many turns.
[[nodiscard]] std::vector<WarpChain> warp_chains(const ptx::Function& function,
                                                 const ControlFlow& flow);

}  // namespace braid::cpu
