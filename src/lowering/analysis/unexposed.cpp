#include "lowering/analysis/unexposed.h"

#include <algorithm>
#include <vector>

#include "ir/op_registry.h"

namespace braid {
namespace {

constexpr NodeId kNeighbours = 256;  ///< on either side

/// For each neighbour, from `first` on, whether it depends on the collective or the collective on
/// it.
std::vector<bool> related(const Graph& graph, NodeId collective, NodeId first, NodeId end) {
  std::vector<bool> found(end - first, false);
  const auto at = [&](NodeId id) { return static_cast<std::size_t>(id - first); };
  found[at(collective)] = true;
  for (NodeId id = collective; id >= first; --id) {
    if (!found[at(id)]) continue;
    for (ValueId input : graph.node(id).inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer >= first) found[at(producer)] = true;
    }
  }
  // Readers of the collective's inputs may be independent of the collective.
  std::vector<bool> after(found.size(), false);
  after[at(collective)] = true;
  for (NodeId id = collective + 1; id < end; ++id) {
    for (ValueId input : graph.node(id).inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer >= collective && after[at(producer)]) after[at(id)] = found[at(id)] = true;
    }
  }
  return found;
}

}  // namespace

std::map<NodeId, NodeId> unexposed_collectives(const Graph& graph) {
  std::map<NodeId, NodeId> hidden_by;
  std::vector<bool> hides(graph.nodes().size(), false);
  const NodeId count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    const Node& node = graph.node(id);
    const bool moves_chunks =
        node.op_name() == "all_gather_into_tensor" || node.op_name() == "reduce_scatter_tensor";
    if (!moves_chunks || !is_asynchronous(node)) continue;
    const NodeId first = std::max(0, id - kNeighbours);
    const NodeId end = std::min(count, id + kNeighbours);
    const std::vector<bool> tied = related(graph, id, first, end);
    for (NodeId other = first; other < end; ++other) {
      if (graph.node(other).op->op_class != OpClass::kMatmul) continue;
      if (tied[other - first]) continue;
      if (hides[other]) continue;
      hides[other] = true;
      hidden_by.emplace(id, other);
      break;
    }
  }
  return hidden_by;
}

}  // namespace braid
