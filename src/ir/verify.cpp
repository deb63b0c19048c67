#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "braid/graph.h"
#include "ir/collective.h"
#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/text.h"
#include "ir/views.h"

namespace braid {
namespace {

/// For each result of an asynchronous node its users, in order; empty for other values.
std::vector<std::vector<NodeId>> users_of_unfinished(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.values().size());
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    for (ValueId input : graph.nodes()[id].inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer < 0 || !is_asynchronous(graph.node(producer))) continue;
      users[input].push_back(id);
    }
  }
  return users;
}

void verify_waits(const Graph& graph, const std::string& place) {
  if (std::ranges::none_of(graph.nodes(), is_asynchronous)) return;
  const std::vector<std::vector<NodeId>> users = users_of_unfinished(graph);
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!is_asynchronous(node)) continue;
    for (ValueId value : node.outputs) {
      const auto& readers = users[value];
      if (readers.empty()) {
        throw_invalid(fmt::format("{}/nodes/{}", place, id),
                      "nothing waits for the result {} of {}; expected a wait_tensor",
                      quote(graph.value(value).name), node.op_name());
      }
      for (NodeId reader : readers) {
        if (graph.node(reader).op->op_class == OpClass::kWait) continue;
        throw_invalid(
            fmt::format("{}/nodes/{}/inputs", place, reader),
            "{} {} uses the result of {} {} before a wait; expected a wait_tensor between them",
            graph.node(reader).op_name(), quote(graph.node(reader).name), node.op_name(),
            quote(node.name));
      }
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value& value = graph.value(graph.outputs()[i]);
    if (value.producer < 0 || !is_asynchronous(graph.node(value.producer))) continue;
    throw_invalid(fmt::format("{}/outputs/{}", place, i),
                  "{} is the result of {} without a wait; expected a wait_tensor between",
                  quote(value.name), graph.node(value.producer).op_name());
  }
}

/// The value that this one aliases through views of the same bytes; other movements make a new
/// value.
ValueId base_of(const Graph& graph, ValueId value) {
  for (;;) {
    const NodeId producer = graph.value(value).producer;
    if (producer < 0 || !names_bytes(graph.node(producer).op_name())) return value;
    value = graph.node(producer).inputs[0];
  }
}

/// The body of a kernel, or null.
const Graph* body_of(const Node& node) {
  if (node.op->op_class != OpClass::kKernel) return nullptr;
  return node.attr<std::shared_ptr<const Graph>>("body")->get();
}

/// Operands that other ranks read while a node runs, each with its group.
using Shared = std::vector<std::pair<std::size_t, std::string>>;
/// For the inputs of each body; many kernels share one.
using SharedInputs = std::unordered_map<const Graph*, Shared>;

Shared shared_operands(const Node& node, SharedInputs& known);

const Shared& shared_inputs(const Graph& body, SharedInputs& known) {
  if (const auto found = known.find(&body); found != known.end()) return found->second;
  Shared shared;
  for (const Node& inner : body.nodes()) {
    for (const auto& [i, group] : shared_operands(inner, known)) {
      const Value& value = body.value(inner.inputs[i]);
      if (value.producer < 0) shared.emplace_back(value.result, group);
    }
  }
  return known.emplace(&body, std::move(shared)).first->second;
}

Shared shared_operands(const Node& node, SharedInputs& known) {
  if (const Graph* body = body_of(node)) return shared_inputs(*body, known);
  const bool copied = node.op->op_class == OpClass::kPeerCopy;
  if (node.op->op_class != OpClass::kCollective && !copied) return {};
  if (!copied && !shares_operand(node)) return {};
  return {{0, *node.attr<std::string>("group")}};
}

/// What other ranks read must lie in their common arena; the inputs of a body lie where its
/// kernel's operands do.
void verify_shared(const Graph& graph, const std::string& place, bool is_body) {
  SharedInputs known;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (const auto& [i, group] : shared_operands(node, known)) {
      const Value& value = graph.value(node.inputs[i]);
      const bool computed = graph.value(base_of(graph, node.inputs[i])).producer >= 0 || is_body;
      if (computed && value.comm_group == group) continue;
      throw_invalid(
          fmt::format("{}/nodes/{}/inputs/{}", place, id, i),
          "the other ranks of {} read {}, {}; expected a computed value with that comm_group",
          quote(group), quote(value.name),
          computed ? fmt::format("whose comm_group is {}", quote(value.comm_group))
                   : "which lies in the caller's memory");
    }
  }
}

void verify_at(const Graph& graph, const std::string& place, bool is_body) {
  const bool writes = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return node.op->mutates != Mutates::kNothing; });
  if (graph.outputs().empty() && !writes) {
    throw_invalid(place + "/outputs",
                  "none; expected at least one output, or an input that is "
                  "overwritten");
  }
  verify_waits(graph, place);
  verify_mutations(graph, place);
  verify_shared(graph, place, is_body);
  std::unordered_set<const Graph*> bodies;  // each body is checked once, where it first occurs
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Graph* body = body_of(graph.nodes()[id]);
    if (body == nullptr || !bodies.insert(body).second) continue;
    verify_at(*body, fmt::format("{}/nodes/{}/attrs/body", place, id), true);
  }
}

}  // namespace

void verify(const Graph& graph) {
  static_cast<void>(world_size(graph));  // throws where groups do not agree on the ranks
  verify_at(graph, "", false);
}

}  // namespace braid
