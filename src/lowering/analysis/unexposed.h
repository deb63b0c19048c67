#pragma once

#include <map>

#include "braid/graph.h"

namespace braid {

/// The gathers and scatters that a matmul can hide which neither needs their result nor makes their
/// operand, each with that matmul. A matmul hides at most one. Matmuls are looked for among the
/// neighbours of a collective in program order, where a scheduler would find them; linear in nodes.
[[nodiscard]] std::map<NodeId, NodeId> unexposed_collectives(const Graph& graph);

}  // namespace braid
