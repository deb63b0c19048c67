#pragma once

#include <map>

#include "braid/graph.h"

namespace braid {

/// Maps each gather or scatter that an independent matmul can hide to that matmul. A matmul hides
/// at most one. Only the neighbours of a collective in program order are searched, as a scheduler
/// would; linear in the number of nodes.
[[nodiscard]] std::map<NodeId, NodeId> unexposed_collectives(const Graph& graph);

}  // namespace braid
