#include <fmt/format.h>

#include "braid/error.h"
#include "braid/graph.h"
#include "ir/mutation.h"
#include "ir/text.h"
#include "ir/views.h"

namespace braid {
namespace {

void verify_waits(const Graph& graph, const std::string& place) {
  const std::vector<std::vector<NodeId>> users = graph.users();
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!is_asynchronous(node)) continue;
    for (ValueId value : node.outputs) {
      const auto& readers = users[static_cast<std::size_t>(value)];
      if (readers.empty()) {
        throw_invalid(fmt::format("{}/nodes/{}", place, id),
                      fmt::format("nothing waits for the result of {} {}; expected a wait_tensor",
                                  node.op_name(), quote(node.name)));
      }
      for (NodeId reader : readers) {
        if (graph.node(reader).op->op_class == OpClass::kWait) continue;
        throw_invalid(fmt::format("{}/nodes/{}/inputs", place, reader),
                      fmt::format("{} {} uses the result of {} {} before a wait; expected a "
                                  "wait_tensor between them",
                                  graph.node(reader).op_name(), quote(graph.node(reader).name),
                                  node.op_name(), quote(node.name)));
      }
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value& value = graph.value(graph.outputs()[i]);
    if (value.producer < 0 || !is_asynchronous(graph.node(value.producer))) continue;
    throw_invalid(
        fmt::format("{}/outputs/{}", place, i),
        fmt::format("{} is the result of {} without a wait; expected a wait_tensor between",
                    quote(value.name), graph.node(value.producer).op_name()));
  }
}

/// The value whose bytes a value names; other movements make a value of their own.
ValueId base_of(const Graph& graph, ValueId value) {
  for (;;) {
    const NodeId producer = graph.value(value).producer;
    if (producer < 0 || !names_bytes(graph.node(producer).op_name())) return value;
    value = graph.node(producer).inputs[0];
  }
}

/// The operands that other ranks read while the node runs, each with the group of those ranks.
std::vector<std::pair<std::size_t, std::string>> shared_operands(const Node& node) {
  if (node.op->op_class == OpClass::kCollective && !node.attr<std::string>("algorithm")->empty()) {
    return {{0, *node.attr<std::string>("group")}};
  }
  std::vector<std::pair<std::size_t, std::string>> shared;
  const auto* body = node.attr<std::shared_ptr<const Graph>>("body");
  if (body == nullptr) return shared;
  for (const Node& inner : (*body)->nodes()) {
    for (const auto& [i, group] : shared_operands(inner)) {
      const Value& value = (*body)->value(inner.inputs[i]);
      if (value.producer < 0) shared.emplace_back(static_cast<std::size_t>(value.result), group);
    }
  }
  return shared;
}

/// What other ranks read must lie in their common arena; a body's inputs do where the operands of
/// its kernel do.
void verify_shared(const Graph& graph, const std::string& place, bool is_body) {
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (const auto& [i, group] : shared_operands(node)) {
      const Value& value = graph.value(node.inputs[i]);
      const bool computed = graph.value(base_of(graph, node.inputs[i])).producer >= 0 || is_body;
      if (computed && value.comm_group == group) continue;
      throw_invalid(
          fmt::format("{}/nodes/{}/inputs/{}", place, id, i),
          fmt::format("the other ranks of {} read {}, {}; expected a computed value with that "
                      "comm_group",
                      quote(group), quote(value.name),
                      computed ? fmt::format("whose comm_group is {}", quote(value.comm_group))
                               : "which lies in the caller's memory"));
    }
  }
}

void verify_at(const Graph& graph, const std::string& place, bool is_body) {
  if (graph.outputs().empty()) {
    throw_invalid(place + "/outputs", "none; expected at least one output");
  }
  verify_waits(graph, place);
  verify_mutations(graph, place);
  verify_shared(graph, place, is_body);
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const auto* body = graph.nodes()[id].attr<std::shared_ptr<const Graph>>("body");
    if (body == nullptr) continue;
    verify_at(**body, fmt::format("{}/nodes/{}/attrs/body", place, id), true);
  }
}

}  // namespace

void verify(const Graph& graph) {
  static_cast<void>(world_size(graph));  // refuses groups that do not agree on the ranks
  verify_at(graph, "", false);
}

}  // namespace braid
