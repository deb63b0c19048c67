#include "lowering/fuse/clusters.h"

#include <algorithm>

#include "ir/op_registry.h"
#include "lowering/rewrite.h"

namespace braid {

Clusters::Clusters(const Graph& old, PassContext& pass_context)
    : graph(old),
      context(pass_context),
      live(live_nodes(old)),
      is_output(old.output_flags()),
      users(old.users()),
      item_of_node(old.nodes().size(), -1),
      folded_nodes(old.nodes().size(), false),
      bodies(old, pass_context),
      reasons(old.nodes().size()),
      stamp_(old.nodes().size(), 0) {}

const Node& Clusters::head(const Item& it) const {
  for (NodeId n : it.nodes) {
    const OpClass c = node(n).op->op_class;
    if (c != OpClass::kPointwise && c != OpClass::kCopy && c != OpClass::kView) return node(n);
  }
  return node(it.nodes.front());
}

void Clusters::mark(const std::vector<NodeId>& nodes) {
  ++now_;
  for (NodeId n : nodes) stamp_[n] = now_;
}

int Clusters::level_above(const std::vector<NodeId>& nodes) {
  mark(nodes);
  int level = 1;
  for (NodeId n : nodes) {
    for (ValueId input : node(n).inputs) {
      const int from = item_of(input);
      if (from >= 0 && !marked(producer(input))) level = std::max(level, item(from).level + 1);
    }
  }
  return level;
}

void Clusters::add_item(Item added) {
  items.push_back(std::move(added));
  const int id = static_cast<int>(items.size()) - 1;
  claim(id);
  consume_operands(id);
}

void Clusters::claim(int id) {
  for (NodeId n : item(id).nodes) {
    if (!folded(n) || n == item(id).nodes.back()) item_of_node[n] = id;
  }
}

void Clusters::consume_operands(int id) {
  mark(item(id).nodes);
  for (NodeId n : item(id).nodes) {
    for (ValueId input : node(n).inputs) {
      const int from = item_of(input);
      if (from >= 0 && !marked(producer(input))) item(from).consumed = true;
    }
  }
}

bool is_collective(const Node& node) { return node.op->op_class == OpClass::kCollective; }

}  // namespace braid
