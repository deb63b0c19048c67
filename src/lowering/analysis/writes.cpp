#include "lowering/analysis/writes.h"

#include <algorithm>

#include "ir/mutation.h"

namespace braid {

Writes::Writes(const Graph& graph) {
  const bool none = std::ranges::all_of(
      graph.nodes(), [](const Node& node) { return node.op->mutates == Mutates::kNothing; });
  if (none) return;
  storage_ = storages(graph);
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node* writer = &graph.nodes()[id];
    if (writer->op->op_class == OpClass::kWait) {
      const NodeId waited = graph.value(writer->inputs[0]).producer;
      if (waited < 0) continue;
      writer = &graph.node(waited);
    }
    for (ValueId value : mutated_operands(*writer)) nodes_[storage_[value]].push_back(id);
  }
}

bool Writes::between(ValueId value, NodeId first, NodeId last) const {
  if (storage_.empty()) return false;
  const auto found = nodes_.find(storage_[value]);
  if (found == nodes_.end()) return false;
  const auto next = std::ranges::upper_bound(found->second, first);
  return next != found->second.end() && *next < last;
}

}  // namespace braid
