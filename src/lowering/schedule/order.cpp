#include "lowering/schedule/order.h"

#include <numeric>

#include "ir/fail.h"
#include "ir/op_registry.h"
#include "ir/text.h"
#include "lowering/analysis/dependences.h"
#include "lowering/rewrite.h"
#include "lowering/schedule/estimates.h"

namespace braid {
namespace {

using Pairs = std::vector<std::pair<NodeId, NodeId>>;

Pairs with_dependences(const Graph& graph, std::span<const std::pair<NodeId, NodeId>> more) {
  Pairs pairs = dependences(graph);
  pairs.insert(pairs.end(), more.begin(), more.end());
  return pairs;
}

}  // namespace

Predecessors::Predecessors(const Graph& graph, std::span<const std::pair<NodeId, NodeId>> more)
    : Predecessors(graph.nodes().size(), with_dependences(graph, more)) {}

Predecessors::Predecessors(std::size_t count, std::span<const std::pair<NodeId, NodeId>> pairs)
    : first_(count + 1, 0), nodes_(pairs.size()) {
  for (const auto& pair : pairs) ++first_[static_cast<std::size_t>(pair.second) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::size_t> next(first_);
  for (const auto& pair : pairs) nodes_[next[pair.second]++] = pair.first;
}

Predecessors Predecessors::reversed() const {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  pairs.reserve(nodes_.size());
  for (std::size_t id = 0; id + 1 < first_.size(); ++id) {
    for (NodeId before : of(id)) pairs.emplace_back(static_cast<NodeId>(id), before);
  }
  return {first_.size() - 1, pairs};
}

std::vector<std::pair<NodeId, NodeId>> collective_order(const Graph& graph) {
  std::vector<std::pair<NodeId, NodeId>> pairs;
  NodeId last = -1;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!contains_collective(graph.nodes()[i])) continue;
    const NodeId id = i;
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

std::vector<int> nodes_between(const Graph& graph, std::span<const NodeId> order) {
  std::vector<int> result(graph.nodes().size(), -1);
  std::vector<int> start(graph.nodes().size(), -1);
  int computed = 0;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (is_asynchronous(node)) {
      start[id] = computed;
    } else if (node.op->op_class == OpClass::kWait) {
      const NodeId of = graph.value(node.inputs[0]).producer;
      if (of >= 0 && start[of] >= 0 && result[of] < 0) {
        result[of] = computed - start[of];
      }
    } else if (node.op->op_class != OpClass::kView) {
      ++computed;
    }
  }
  return result;
}

Graph scheduled(const Graph& graph, std::span<const NodeId> order) {
  const std::size_t count = graph.nodes().size();
  std::vector<std::size_t> place(count, count);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t id = order[at];
    if (id >= count || place[id] != count) {
      throw_internal("schedule", "node {} stands twice or is none", order[at]);
    }
    place[id] = at;
  }
  if (order.size() != count) {
    throw_internal("schedule", "{} of {} nodes are left", order.size(), count);
  }
  for (const auto& [earlier, later] : dependences(graph)) {
    if (place[earlier] < place[later]) continue;
    throw_internal("schedule", "{} stands before {}, which it needs", quote(graph.node(later).name),
                   quote(graph.node(earlier).name));
  }
  return in_order(graph, order);
}

}  // namespace braid
