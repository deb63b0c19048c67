#include "lowering/rewrite.h"

#include <fmt/format.h>

#include "ir/mapped.h"
#include "ir/op_registry.h"

namespace braid {

Rewriter::Rewriter(const Graph& old)
    : old_(old), graph_(old.clone_interface()), map_(old.values().size(), -1) {
  for (std::size_t i = 0; i < old.input_values().size(); ++i) {
    map(old.input_values()[i], graph_.input_values()[i]);
  }
}

std::vector<ValueId> Rewriter::operator()(const std::vector<ValueId>& old) const {
  return mapped(old, [&](ValueId value) { return (*this)(value); });
}

NodeId Rewriter::copy(const Node& node) {
  std::vector<ValueId> inputs = (*this)(node.inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < 0 || graph_.type(inputs[i]) != old_.type(node.inputs[i])) {
      return copy(node, std::move(inputs), node.attrs);
    }
  }
  const NodeId id = graph_.add_copy(old_, node, node.name, std::move(inputs));
  finish_copy(node, id);
  return id;
}

NodeId Rewriter::copy(const Node& node, std::string_view op, std::vector<ValueId> inputs,
                      Attrs attrs) {
  const NodeId id = graph_.add_node(node.name, op, std::move(inputs), std::move(attrs));
  finish_copy(node, id);
  return id;
}

void Rewriter::finish_copy(const Node& node, NodeId id) {
  for (const auto& [key, value] : node.hints) graph_.set_hint(id, key, value);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId now = graph_.node(id).outputs[i];
    map(node.outputs[i], now);
    const std::string& group = old_.value(node.outputs[i]).comm_group;
    if (!group.empty()) graph_.set_comm_group(now, group);
  }
}

std::string Rewriter::fresh_name(std::string_view base, std::size_t results) const {
  const auto taken = [&](const std::string& name) { return old_.find(name) || graph_.find(name); };
  const auto any_taken = [&](const std::string& name) {
    // A node with several results has its name, too.
    if (taken(name) || taken(name + ":0")) return true;
    for (std::size_t i = 0; i < results && results > 1; ++i) {
      if (taken(name + ":" + std::to_string(i))) return true;
    }
    return false;
  };
  std::string name(base);
  for (int i = 1; any_taken(name); ++i) name = std::string(base) + std::to_string(i);
  return name;
}

ValueId Rewriter::add(std::string_view name, std::string_view op, std::vector<ValueId> inputs,
                      Attrs attrs) {
  const NodeId id = graph_.add_node(fresh_name(name), op, std::move(inputs), std::move(attrs));
  return graph_.node(id).outputs[0];
}

Graph Rewriter::finish() {
  for (ValueId output : old_.outputs()) graph_.add_output((*this)(output));
  return std::move(graph_);
}

namespace {

/// `same(v)` replaces value v, and `operands(id)` are the node's operands.
template <class Same, class Operands>
std::vector<bool> search_live(const Graph& graph, const Same& same, const Operands& operands) {
  std::vector<bool> needed(graph.values().size(), false);
  for (ValueId output : graph.outputs()) needed[same(output)] = true;
  std::vector<bool> live(graph.nodes().size(), false);
  for (std::size_t id = graph.nodes().size(); id-- > 0;) {
    const Node& node = graph.nodes()[id];
    live[id] = node.op->mutates != Mutates::kNothing && same(node.outputs[0]) == node.outputs[0];
    for (ValueId output : node.outputs) {
      if (needed[output]) live[id] = true;
    }
    if (!live[id]) continue;
    for (ValueId input : operands(id)) needed[input] = true;
  }
  return live;
}

}  // namespace

std::vector<bool> live_nodes(const Graph& graph) {
  return search_live(
      graph, [](ValueId value) { return value; },
      [&](std::size_t id) -> const std::vector<ValueId>& { return graph.nodes()[id].inputs; });
}

std::vector<bool> live_nodes(const Graph& graph, std::span<const ValueId> same,
                             std::span<const std::vector<ValueId>> operands) {
  return search_live(
      graph, [&](ValueId value) { return same[value]; },
      [&](std::size_t id) -> const std::vector<ValueId>& { return operands[id]; });
}

Graph without_dead_nodes(const Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  Rewriter rewrite(graph);
  for (std::size_t id = 0; id < live.size(); ++id) {
    const Node& node = graph.nodes()[id];
    const NodeId waited =
        node.op->op_class == OpClass::kWait ? graph.value(node.inputs[0]).producer : -1;
    if (live[id] || (waited >= 0 && live[waited])) rewrite.copy(node);
  }
  return rewrite.finish();
}

Graph in_order(const Graph& graph, std::span<const NodeId> order) {
  Rewriter rewrite(graph);
  for (NodeId id : order) rewrite.copy(graph.node(id));
  return rewrite.finish();
}

const Node* producer_of(const Graph& graph, ValueId value) {
  const NodeId id = graph.value(value).producer;
  return id < 0 ? nullptr : &graph.node(id);
}

bool is_marker(const Node& node) {
  const std::string_view op = node.op_name();
  return op == "mark_region_begin" || op == "mark_region_end" || op == "copy_region";
}

}  // namespace braid
