#pragma once

#include <cstdint>
#include <vector>

#include "lowering/fuse/bodies.h"
#include "lowering/fuse/reasons.h"
#include "lowering/pass.h"

// What the files of fuse share.

namespace braid {

/// What a kernel is built around; a node rather joins a later kind than an earlier one.
enum class Anchor : std::uint8_t { kNone, kReduction, kMatmul, kCollective };

/// A kernel in the making, or one node that stays as it is (its body is null then).
struct Item {
  std::vector<NodeId> nodes;  ///< in graph order, but a collective right after its operand
  FusedNodes kernel;
  Anchor anchor = Anchor::kNone;
  int level = 0;
  bool consumed = false;  ///< an item outside reads it
  bool gone = false;      ///< became part of another one
  [[nodiscard]] bool is_kernel() const { return kernel.body != nullptr; }
};

/// What is known of the graph, and what has become of its nodes so far.
struct Clusters {
  Clusters(const Graph& old, PassContext& pass_context);

  const Graph& graph;
  PassContext& context;
  std::vector<bool> live;
  std::vector<bool> is_output;
  std::vector<std::vector<NodeId>> users;
  std::vector<Item> items;
  std::vector<int> item_of_node;
  std::vector<bool> folded_nodes;  ///< they stand inside the kernels that read them
  FusedBodies bodies;
  /// Of each node: operands not fused, and why.
  std::vector<std::vector<std::pair<ValueId, Reason>>> reasons;

  [[nodiscard]] const Node& node(NodeId id) const { return graph.node(id); }
  [[nodiscard]] Item& item(int id) { return items[id]; }
  [[nodiscard]] const Item& item(int id) const { return items[id]; }
  [[nodiscard]] NodeId producer(ValueId value) const { return graph.value(value).producer; }
  /// -1 for a graph input, and for what stands only inside the kernels that read it.
  [[nodiscard]] int item_of(ValueId value) const {
    const NodeId id = producer(value);
    return id < 0 ? -1 : item_of_node[id];
  }
  [[nodiscard]] bool folded(NodeId id) const { return id >= 0 && folded_nodes[id]; }
  [[nodiscard]] const std::vector<NodeId>& users_of(ValueId value) const { return users[value]; }
  /// The node that the item is named after in remarks.
  [[nodiscard]] const Node& head(const Item& it) const;

  /// Makes these the marked nodes, instead of those before.
  void mark(const std::vector<NodeId>& nodes);
  [[nodiscard]] bool marked(NodeId id) const { return id >= 0 && stamp_[id] == now_; }
  /// Marks the nodes. One above all items that they read outside themselves.
  [[nodiscard]] int level_above(const std::vector<NodeId>& nodes);

  void add_item(Item added);
  /// The item owns its nodes now; of folded ones only what it computes for others.
  void claim(int id);
  /// What the item reads of others is read.
  void consume_operands(int id);

 private:
  std::vector<int> stamp_;
  int now_ = 0;
};

[[nodiscard]] bool is_collective(const Node& node);

}  // namespace braid
