#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// What a node reads and overwrites besides what its op says, as values that name the memory.
struct MoreUses {
  std::vector<ValueId> reads, writes;
};

/// Which node must stay before which: pairs (earlier, later), some of them twice. Who reads a
/// result stays behind its producer, and accesses to memory that is overwritten keep their order. A
/// collective uses its operands, and overwrites what it overwrites, until its wait. Every order of
/// the nodes that keeps them is a graph that means the same. Linear.
///
/// `more` is asked once for each node, in order.
[[nodiscard]] std::vector<std::pair<NodeId, NodeId>> dependences(
    const Graph& graph, const std::function<MoreUses(NodeId)>& more = {});

}  // namespace braid
