#include "runtime/tune/lone_kernel.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace braid {

Graph lone_kernel(const KernelSpec& spec) {
  const Graph& body = *spec.body;
  Graph graph("kernel");
  for (const auto& [name, symbol] : body.symbols()) graph.add_symbol(name, symbol);
  for (const auto& [name, group] : body.groups()) graph.add_group(name, group);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    ValueId operand = graph.add_input(body.inputs()[i]);
    const std::string& group = body.value(body.input_values()[i]).comm_group;
    if (!group.empty()) {
      // An input is in the caller's memory, so peers read a copy of it.
      const NodeId copy = graph.add_node(fmt::format("c{}", i), "copy", {operand});
      operand = graph.node(copy).outputs[0];
      graph.set_comm_group(operand, group);
    }
    operands.push_back(operand);
  }
  const NodeId kernel = graph.add_node("k", "kernel", std::move(operands),
                                       {{"body", spec.body}, {"config", spec.config}});
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    const ValueId output = graph.node(kernel).outputs[i];
    const std::string& group = body.value(body.outputs()[i]).comm_group;
    // The part that peers read may be overwritten in the end.
    group.empty() ? graph.add_output(output) : graph.set_comm_group(output, group);
  }
  return graph;
}

}  // namespace braid
