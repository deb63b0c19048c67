#pragma once

#include <cstdint>
#include <vector>

#include "lowering/fuse/bodies.h"
#include "lowering/fuse/reasons.h"
#include "lowering/pass.h"

// Data shared by the files of fuse.

namespace braid {

/// The kind of node that a kernel is built around; attention is a matmul. A node prefers to join a
/// later kind.
enum class Anchor : std::uint8_t { kNone, kReduction, kMatmul, kCollective };

/// A kernel in the making, or a node that stays as it is (with a null body).
struct Item {
  std::vector<NodeId> nodes;  ///< in graph order, except that a collective directly follows its
                              ///< operand
  FusedNodes kernel;
  Anchor anchor = Anchor::kNone;
  int level = 0;
  bool consumed = false;  ///< an item outside reads it
  bool gone = false;      ///< merged into another item
  [[nodiscard]] bool is_kernel() const { return kernel.body != nullptr; }
};

/// The graph, its analyses, and the items that its nodes belong to so far.
struct Clusters {
  Clusters(const Graph& old, PassContext& pass_context);

  const Graph& graph;
  PassContext& context;
  std::vector<bool> live;
  std::vector<bool> is_output;
  std::vector<std::vector<NodeId>> users;
  std::vector<Item> items;
  std::vector<int> item_of_node;
  std::vector<bool> folded_nodes;  ///< nodes that are folded into the kernels that read them
  FusedBodies bodies;
  /// For each node: the operands that were not fused, and why.
  std::vector<std::vector<std::pair<ValueId, Reason>>> reasons;

  [[nodiscard]] const Node& node(NodeId id) const { return graph.node(id); }
  [[nodiscard]] Item& item(int id) { return items[id]; }
  [[nodiscard]] const Item& item(int id) const { return items[id]; }
  [[nodiscard]] NodeId producer(ValueId value) const { return graph.value(value).producer; }
  /// The item that computes the value; -1 for a graph input and for folded nodes.
  [[nodiscard]] int item_of(ValueId value) const {
    const NodeId id = producer(value);
    return id < 0 ? -1 : item_of_node[id];
  }
  [[nodiscard]] bool folded(NodeId id) const { return id >= 0 && folded_nodes[id]; }
  [[nodiscard]] const std::vector<NodeId>& users_of(ValueId value) const { return users[value]; }
  /// The node that the item is named after in remarks.
  [[nodiscard]] const Node& head(const Item& it) const;

  void mark(const std::vector<NodeId>& nodes);
  [[nodiscard]] bool marked(NodeId id) const { return id >= 0 && stamp_[id] == now_; }
  /// Marks the nodes. One above all items that they read outside themselves.
  [[nodiscard]] int level_above(const std::vector<NodeId>& nodes);

  void add_item(Item added);
  /// Makes the item the owner of its nodes; of folded ones only those whose results others need.
  void claim(int id);
  /// Marks as consumed the items whose results this item reads.
  void consume_operands(int id);

 private:
  std::vector<int> stamp_;
  int now_ = 0;
};

[[nodiscard]] bool is_collective(const Node& node);

}  // namespace braid
