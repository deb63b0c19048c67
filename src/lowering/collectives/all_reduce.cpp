#include "lowering/collectives/all_reduce.h"

#include <fmt/format.h>

#include "codegen/device_model.h"
#include "codegen/units.h"
#include "ir/collective.h"
#include "ir/groups.h"
#include "lowering/fuse/kernel_body.h"

namespace braid {

std::string why_no_multimem(const Graph& graph, const Node& node, const TensorType& operand,
                            const PassContext& context) {
  if (!device_model(context.target).reduces_on_links) {
    return fmt::format("the links of {} do not reduce", context.target.str());
  }
  if (!has(context.target, units::kMultimem)) {
    return fmt::format("multimem is no unit of {}", context.target.str());
  }
  if (!context.multicast) return "the device has no multicast memory";
  const Collective form = collective_of(graph, node, operand);
  return cannot_multimem(*form.reduce, operand.dtype);
}

std::vector<Algorithm> all_reduce_algorithms(const Graph& graph, const Node& node,
                                             const TensorType& operand,
                                             const PassContext& context) {
  std::vector<Algorithm> algorithms{Algorithm::kOneShot, Algorithm::kTwoShot};
  if (cannot_send_packets(operand, graph.symbols()).empty()) {
    algorithms.push_back(Algorithm::kPackets);
  }
  if (why_no_multimem(graph, node, operand, context).empty())
    algorithms.push_back(Algorithm::kMultimem);
  return algorithms;
}

std::shared_ptr<const Graph> lone_all_reduce(const Graph& graph, const Node& node,
                                             const TensorType& operand, Algorithm algorithm) {
  Graph alone;
  add_tables(alone, graph.symbols(), graph.groups());
  const ValueId x = alone.add_input({.name = "x", .type = operand});
  Attrs attrs = node.attrs;
  set_algorithm(attrs, algorithm);
  const NodeId sum = alone.add_node("sum", "all_reduce", {x}, std::move(attrs));
  const ValueId result = alone.node(sum).outputs[0];
  return make_body(alone, std::span(&sum, 1), std::span(&x, 1), std::span(&result, 1));
}

}  // namespace braid
