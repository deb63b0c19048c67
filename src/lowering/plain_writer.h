#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/attention.h"
#include "ir/views.h"
#include "lowering/rewrite.h"

// Data shared by the files of plain ops.

namespace braid {

/// One node, and what it becomes.
class Writer {
 public:
  Writer(const Graph& graph, const Node& node, Rewriter& rewrite)
      : graph_(graph), node_(node), rewrite_(rewrite) {}

  [[nodiscard]] ValueId operand(std::size_t index) const { return rewrite_(node_.inputs[index]); }
  [[nodiscard]] const TensorType& type(std::size_t index) const {
    return graph_.type(node_.inputs[index]);
  }
  /// The node that gives an operand; null for an input of the graph.
  [[nodiscard]] const Node* producer(std::size_t index) const {
    const NodeId id = graph_.value(node_.inputs[index]).producer;
    return id < 0 ? nullptr : &graph_.node(id);
  }
  [[nodiscard]] std::size_t operands() const { return node_.inputs.size(); }
  [[nodiscard]] const TensorType& result() const { return graph_.type(node_.outputs[0]); }
  [[nodiscard]] const AttrValue* attr(std::string_view key) const {
    const auto found = node_.attrs.find(key);
    return found == node_.attrs.end() ? nullptr : &found->second;
  }
  [[nodiscard]] SliceRange range() const {
    return part_ranges(node_.attrs, type(0).shape, graph_.symbols())[0];
  }
  /// A node in front of the last one.
  ValueId add(std::string_view what, std::string_view op, std::vector<ValueId> inputs,
              Attrs attrs) {
    return rewrite_.add(fmt::format("{}_{}", node_.name, what), op, std::move(inputs),
                        std::move(attrs));
  }
  /// The same, with several results.
  std::vector<ValueId> add_results(const char* op, std::size_t results, std::vector<ValueId> inputs,
                                   Attrs attrs) {
    const std::string name = rewrite_.fresh_name(fmt::format("{}_{}", node_.name, op), results);
    const NodeId id = rewrite_.graph().add_node(name, op, std::move(inputs), std::move(attrs));
    return rewrite_.graph().node(id).outputs;
  }
  /// The value stands for a result of the node.
  void become(ValueId value, std::size_t result = 0) { rewrite_.map(node_.outputs[result], value); }
  /// The one that has the node's name.
  void finish(std::string_view op, std::vector<ValueId> inputs, Attrs attrs) {
    rewrite_.copy(node_, op, std::move(inputs), std::move(attrs));
  }

 private:
  const Graph& graph_;
  const Node& node_;
  Rewriter& rewrite_;
};

/// An attention as matmuls and a softmax (plain_attention.cpp).
void write_wide_attention(Writer& writer, const Attention& form);
/// moe_experts as a routing, grouped matmuls and a sum (plain_moe.cpp).
void write_experts(Writer& writer);

}  // namespace braid
