#include "lowering/fuse/legal.h"

#include <algorithm>
#include <climits>

#include "ir/op_registry.h"

namespace braid {
namespace {

namespace why = fuse_reasons;

Anchor anchor_of(const Node& node) {
  switch (node.op->op_class) {
    case OpClass::kCollective:
      return Anchor::kCollective;
    case OpClass::kMatmul:
    case OpClass::kAttention:
      return Anchor::kMatmul;
    case OpClass::kReduction:
    case OpClass::kNorm:
    case OpClass::kScan:
      return Anchor::kReduction;
    default:
      return Anchor::kNone;
  }
}

/// Orders sorted nodes: first those that a collective's operand depends on, the collective, then
/// the rest.
void collective_first(Clusters& clusters, std::vector<NodeId>& nodes) {
  const auto found =
      std::ranges::find_if(nodes, [&](NodeId n) { return is_collective(clusters.node(n)); });
  if (found == nodes.end()) return;
  const NodeId collective = *found;
  clusters.mark(nodes);
  std::vector<NodeId> front{collective};
  for (std::size_t i = 0; i < front.size(); ++i) {
    for (ValueId input : clusters.node(front[i]).inputs) {
      const NodeId from = clusters.producer(input);
      if (clusters.marked(from) && std::ranges::find(front, from) == front.end()) {
        front.push_back(from);
      }
    }
  }
  std::ranges::sort(front);
  clusters.mark(front);
  std::stable_partition(nodes.begin(), nodes.end(), [&](NodeId n) { return clusters.marked(n); });
}

/// Whether a node that is not marked, or a graph output, needs the value.
bool needed_outside(const Clusters& clusters, ValueId value) {
  if (clusters.is_output[value]) return true;
  const auto& users = clusters.users_of(value);
  return std::ranges::any_of(users, [&](NodeId user) {
    if (!clusters.live[user]) return false;
    if (!clusters.marked(user)) return true;
    if (!clusters.folded(user)) return false;
    // The reader may be folded into other kernels too, or be a name of its own.
    const auto& results = clusters.node(user).outputs;
    return std::ranges::any_of(results,
                               [&](ValueId result) { return needed_outside(clusters, result); });
  });
}

/// The values of these nodes, which are the marked ones, that are needed outside them.
std::vector<ValueId> escaping(const Clusters& clusters, const std::vector<NodeId>& nodes) {
  std::vector<ValueId> values;
  for (NodeId n : nodes) {
    // Other kernels that read a folded node have their own copy.
    if (clusters.folded(n) && n != nodes.back()) continue;
    for (ValueId value : clusters.node(n).outputs) {
      // A communication buffer lies in the arena even if only its own kernel reads it.
      if (needed_outside(clusters, value) || !clusters.graph.value(value).comm_group.empty()) {
        values.push_back(value);
      }
    }
  }
  return values;
}

}  // namespace

std::vector<NodeId> own_nodes(const Clusters& clusters, NodeId id) {
  std::vector<NodeId> nodes{id};
  if (is_collective(clusters.node(id))) return nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (ValueId input : clusters.node(nodes[i]).inputs) {
      const NodeId front = clusters.producer(input);
      if (clusters.folded(front) && std::ranges::find(nodes, front) == nodes.end()) {
        nodes.push_back(front);
      }
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

Reason merge(Clusters& clusters, const std::vector<int>& members, const std::vector<NodeId>& own,
             Item& merged) {
  merged.nodes = own;
  int cap = INT_MAX;
  for (int member : members) {
    const Item& it = clusters.item(member);
    merged.nodes.insert(merged.nodes.end(), it.nodes.begin(), it.nodes.end());
    merged.consumed = merged.consumed || it.consumed;
    if (it.consumed) cap = std::min(cap, it.level);
  }
  const auto computed =
      std::ranges::count_if(merged.nodes, [&](NodeId n) { return !clusters.folded(n); });
  const int most = clusters.context.max_kernel_nodes;
  if (!members.empty() && computed > most) return Reason(why::kTooManyNodes, most);
  std::ranges::sort(merged.nodes);
  // Two matmuls may share a transpose.
  merged.nodes.erase(std::unique(merged.nodes.begin(), merged.nodes.end()), merged.nodes.end());
  collective_first(clusters, merged.nodes);

  const int level = clusters.level_above(merged.nodes);
  if (level > cap) return Reason(why::kClosesCycle);
  merged.level = cap == INT_MAX ? level : cap;

  for (NodeId n : merged.nodes) {
    merged.anchor = std::max(merged.anchor, anchor_of(clusters.node(n)));
  }
  merged.kernel = clusters.bodies.find(merged.nodes, escaping(clusters, merged.nodes));
  const std::string& refusal = merged.kernel.body->refusal;
  return refusal.empty() ? Reason() : Reason(why::kTemplateRefuses, refusal);
}

}  // namespace braid
