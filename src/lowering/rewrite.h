#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// Builds the successor of a graph: the interface is there from the start, nodes are copied or
/// replaced one after the other, and a map says what became of each old value.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old);

  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] ValueId operator()(ValueId old) const { return map_[old]; }
  [[nodiscard]] std::vector<ValueId> operator()(const std::vector<ValueId>& old) const;
  void map(ValueId old, ValueId now) { map_[old] = now; }

  /// The node as it is, hints and communication groups included. Quick where its operands have the
  /// types they had.
  NodeId copy(const Node& node);
  /// The same with other operands (of the new graph) and attributes.
  NodeId copy(const Node& node, std::vector<ValueId> inputs, Attrs attrs) {
    return copy(node, node.op_name(), std::move(inputs), std::move(attrs));
  }
  /// With another op, too.
  NodeId copy(const Node& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs);
  /// A node of `from` in `graph`, which has the symbols and groups that it needs: with another name
  /// and operands, of the types they have in `from`. Nothing is checked or inferred again.
  static NodeId copy_into(Graph& graph, const Graph& from, const Node& node, std::string name,
                          std::vector<ValueId> inputs);
  /// A name that neither the old nor the new graph has, nor its results, of a node with several.
  [[nodiscard]] std::string fresh_name(std::string_view base, std::size_t results = 1) const;
  /// The first result of a new node with a fresh name.
  ValueId add(std::string_view name, std::string_view op, std::vector<ValueId> inputs,
              Attrs attrs = {});
  /// Adds the outputs and hands the graph over.
  Graph finish();

 private:
  /// Gives the new node the old one's hints and communication groups.
  void finish_copy(const Node& node, NodeId id);

  const Graph& old_;
  Graph graph_;
  std::vector<ValueId> map_;
};

/// For each node whether a graph output needs it, or whether it overwrites memory.
[[nodiscard]] std::vector<bool> live_nodes(const Graph& graph);
/// The same as a pass will leave it: same[v] stands for value v, and node i reads operands[i]. A
/// node for whose result another value stands does not count.
[[nodiscard]] std::vector<bool> live_nodes(const Graph& graph, std::span<const ValueId> same,
                                           std::span<const std::vector<ValueId>> operands);

/// The graph without the others, but for the waits of collectives that stay.
[[nodiscard]] Graph without_dead_nodes(const Graph& graph);

/// The graph with its nodes in another order, which keeps what must come before what.
[[nodiscard]] Graph in_order(const Graph& graph, std::span<const NodeId> order);

/// The node that computes a value; null for a graph input.
[[nodiscard]] const Node* producer_of(const Graph& graph, ValueId value);

/// mark_region_begin, mark_region_end or copy_region: another name for its operand.
[[nodiscard]] bool is_marker(const Node& node);

}  // namespace braid
