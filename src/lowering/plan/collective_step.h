#pragma once

#include "ir/collective.h"
#include "lowering/plan/program.h"

namespace braid {

/// What a collective step does, from what it says of itself. Throws kInvalidArgument where that is
/// no collective of a communicator.
[[nodiscard]] Collective collective_of(const Program& program, const Step& step);

/// A collective step of a node that is left to a communicator; its buffers are not set.
[[nodiscard]] Step collective_step(const Graph& graph, const Node& node);

}  // namespace braid
