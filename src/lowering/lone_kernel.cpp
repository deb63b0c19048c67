#include "lowering/lone_kernel.h"

#include <algorithm>

#include "braid/error.h"
#include "ir/op_registry.h"

namespace braid {

Graph lone_kernel(const KernelSpec& spec) {
  const Graph& body = *spec.body;
  const bool waits = std::any_of(body.nodes().begin(), body.nodes().end(), [](const Node& node) {
    return node.op->op_class == OpClass::kCollective;
  });
  if (waits) throw_invalid("kernel", "it waits for peers; expected one that runs alone");
  Graph graph("kernel");
  for (const auto& [name, symbol] : body.symbols()) graph.add_symbol(name, symbol);
  std::vector<ValueId> operands;
  for (const GraphInput& input : body.inputs()) operands.push_back(graph.add_input(input));
  const NodeId kernel = graph.add_node("k", "kernel", std::move(operands),
                                       {{"body", spec.body}, {"config", spec.config}});
  for (ValueId output : graph.node(kernel).outputs) graph.add_output(output);
  return graph;
}

}  // namespace braid
