#pragma once

#include "ir/collective.h"
#include "lowering/plan/program.h"

namespace braid {

/// The communicator's collective that a step describes. Throws kInvalidArgument where it describes
/// none.
[[nodiscard]] Collective collective_of(const Program& program, const Step& step);

/// The step of a node that is left to a communicator; its buffers are not set.
[[nodiscard]] Step collective_step(const Graph& graph, const Node& node);

}  // namespace braid
