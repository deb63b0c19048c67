#include <fmt/format.h>

#include "braid/error.h"
#include "braid/graph.h"
#include "ir/mutation.h"
#include "ir/text.h"

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

void verify_at(const Graph& graph, const std::string& place) {
  if (graph.outputs().empty()) {
    throw_invalid(place + "/outputs", "none; expected at least one output");
  }
  verify_waits(graph, place);
  verify_mutations(graph, place);
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const auto* body = graph.nodes()[id].attr<std::shared_ptr<const Graph>>("body");
    if (body != nullptr) verify_at(**body, fmt::format("{}/nodes/{}/attrs/body", place, id));
  }
}

}  // namespace

void verify(const Graph& graph) {
  static_cast<void>(world_size(graph));  // refuses groups that do not agree on the ranks
  verify_at(graph, "");
}

}  // namespace braid
