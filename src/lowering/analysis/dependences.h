#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// Memory that a node reads and overwrites besides what its op says; values name the memory.
struct MoreUses {
  std::vector<ValueId> reads, writes;
};

/// The pairs (earlier, later) of nodes whose order must be kept; pairs may repeat. A reader stays
/// behind the producer, and accesses to memory that is overwritten keep their order. A collective
/// uses its operands, and writes what it overwrites, until its wait. Any order of the nodes that
/// keeps all pairs is an equivalent graph. Linear time.
///
/// `more` is called once for each node, in order.
[[nodiscard]] std::vector<std::pair<NodeId, NodeId>> dependences(
    const Graph& graph, const std::function<MoreUses(NodeId)>& more = {});

}  // namespace braid
