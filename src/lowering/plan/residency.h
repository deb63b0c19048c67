#pragma once

#include "lowering/plan/program.h"
#include "lowering/plan/step_order.h"

namespace braid {

/// How many blocks of a GPU a communicator's collective takes at most.
inline constexpr std::int64_t kCommunicatorBlocks = 32;

/// A kernel that waits for peers keeps its place until they have come, so all that may wait at one
/// time must find room: the blocks of steps that no event orders, of every rank of a device, are no
/// more than its multiprocessors. Collectives of a communicator wait, too. Throws kInvalidArgument,
/// naming the steps: how many ranks share a device is the user's word. With three streams or more
/// it counts what may run beside a step as if it all ran at one time, and may refuse too much.
void check_residency(const Program& program, const StepOrder& order);

}  // namespace braid
