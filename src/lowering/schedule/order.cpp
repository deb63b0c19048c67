#include "lowering/schedule/order.h"

#include <fmt/format.h>

#include <numeric>

#include "braid/error.h"
#include "ir/text.h"
#include "lowering/analysis/dependences.h"
#include "lowering/rewrite.h"
#include "lowering/schedule/estimates.h"

namespace braid {

Predecessors::Predecessors(const Graph& graph, std::span<const std::pair<NodeId, NodeId>> more)
    : first_(graph.nodes().size() + 1, 0) {
  std::vector<std::pair<NodeId, NodeId>> pairs = dependences(graph);
  pairs.insert(pairs.end(), more.begin(), more.end());
  for (const auto& pair : pairs) ++first_[static_cast<std::size_t>(pair.second) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  nodes_.resize(pairs.size());
  std::vector<std::size_t> next(first_);
  for (const auto& pair : pairs) nodes_[next[static_cast<std::size_t>(pair.second)]++] = pair.first;
}

std::vector<std::pair<NodeId, NodeId>> collective_order(const Graph& graph) {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  NodeId last = -1;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!contains_collective(graph.nodes()[i])) continue;
    const auto id = static_cast<NodeId>(i);
    if (last >= 0) pairs.emplace_back(last, id);
    last = id;
  }
  return pairs;
}

std::vector<NodeId> given_order(const Graph& graph) {
  std::vector<NodeId> order(graph.nodes().size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Graph scheduled(const Graph& graph, std::span<const NodeId> order) {
  const std::size_t count = graph.nodes().size();
  std::vector<std::size_t> place(count, count);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto id = static_cast<std::size_t>(order[at]);
    if (id >= count || place[id] != count) {
      throw_internal("schedule", fmt::format("node {} stands twice or is none", order[at]));
    }
    place[id] = at;
  }
  if (order.size() != count) {
    throw_internal("schedule", fmt::format("{} of {} nodes are left", order.size(), count));
  }
  for (const auto& [earlier, later] : dependences(graph)) {
    if (place[static_cast<std::size_t>(earlier)] < place[static_cast<std::size_t>(later)]) continue;
    throw_internal("schedule",
                   fmt::format("{} stands before {}, which it needs", quote(graph.node(later).name),
                               quote(graph.node(earlier).name)));
  }
  return in_order(graph, order);
}

}  // namespace braid
