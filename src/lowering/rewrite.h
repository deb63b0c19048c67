#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// Builds the successor of a graph. It starts with the old graph's interface; nodes are then copied
/// or replaced one by one, and a map from old values to new ones is kept.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old);

  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] ValueId operator()(ValueId old) const { return map_[old]; }
  [[nodiscard]] std::vector<ValueId> operator()(const std::vector<ValueId>& old) const;
  void map(ValueId old, ValueId now) { map_[old] = now; }

  /// Copies the node with its hints and communication groups. Fast if operand types stay.
  NodeId copy(const Node& node);
  /// Copies it with other operands (of the new graph) and attributes.
  NodeId copy(const Node& node, std::vector<ValueId> inputs, Attrs attrs) {
    return copy(node, node.op_name(), std::move(inputs), std::move(attrs));
  }
  /// Copies it as another op.
  NodeId copy(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs);
  /// A name that is unused in the old and the new graph, as are those of its `results`.
  [[nodiscard]] std::string fresh_name(std::string_view base, std::size_t results = 1) const;
  /// The first result of a new node with a fresh name.
  ValueId add(std::string_view name, std::string_view op, std::vector<ValueId> inputs,
              Attrs attrs = {});
  /// Adds the outputs and hands the graph over.
  Graph finish();

 private:
  /// Copies the hints and communication groups of the old node to the new one.
  void finish_copy(const Node& node, NodeId id);

  const Graph& old_;
  Graph graph_;
  std::vector<ValueId> map_;
};

/// For each node whether a graph output depends on it, or it overwrites memory.
[[nodiscard]] std::vector<bool> live_nodes(const Graph& graph);
/// The same for the graph that a pass will make: same[v] replaces value v, and node i reads
/// operands[i]. A node whose result is replaced is dead.
[[nodiscard]] std::vector<bool> live_nodes(const Graph& graph, std::span<const ValueId> same,
                                           std::span<const std::vector<ValueId>> operands);

/// The graph with its live nodes only, and with the waits of live collectives.
[[nodiscard]] Graph without_dead_nodes(const Graph& graph);

/// The graph with its nodes in another order, which must respect dependences.
[[nodiscard]] Graph in_order(const Graph& graph, std::span<const NodeId> order);

/// The node that computes a value; null for a graph input.
[[nodiscard]] const Node* producer_of(const Graph& graph, ValueId value);

/// mark_region_begin, mark_region_end or copy_region: another name for its operand.
[[nodiscard]] bool is_marker(const Node& node);

}  // namespace braid
