#pragma once

#include "lowering/plan/program.h"
#include "lowering/plan/step_order.h"

namespace braid {

/// The most blocks of a GPU that a communicator's collective takes.
inline constexpr std::int64_t kCommunicatorBlocks = 32;

/// Checks that all kernels that may wait at one time are resident together. A kernel that waits for
/// peers, or for its other blocks, occupies its multiprocessors until they arrive, so the blocks of
/// unordered steps, of every rank of a device, must not exceed its multiprocessors. Collectives of
/// a communicator wait too. Throws kInvalidArgument naming the steps, since the user chose how many
/// ranks share a device. With three streams or more it counts everything that may run beside a step
/// as if it all ran at one time, so it may refuse too much.
void check_residency(const Program& program, const StepOrder& order);

}  // namespace braid
