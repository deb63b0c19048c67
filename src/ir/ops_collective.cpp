#include <fmt/format.h>

#include "ir/groups.h"
#include "ir/ops.h"

namespace braid {
namespace {

std::vector<TensorType> infer_same(const InferContext& context) { return {context.inputs[0]}; }

std::vector<TensorType> infer_all_reduce(const InferContext& context) {
  if (context.inputs[0].dtype == DType::kBool) {
    fail("/inputs/0", fmt::format("the operand of all_reduce is {}; expected a number: insert `to`",
                                  context.inputs[0].str()));
  }
  return infer_same(context);
}

/// Adds the members' operands in rank order; every member gets the sum.
EvalTensors evaluate_all_reduce(const EvalContext& context, const EvalTensors& inputs) {
  const Group& group =
      context.graph.groups().find(*context.node.attr<std::string>("group"))->second;
  EvalTensors outputs(inputs.size());
  for (const auto& members : group_instances(group, static_cast<std::int64_t>(inputs.size()))) {
    EvalTensor sum = make_result(context, 0);
    for (std::int64_t rank : members) {
      const EvalTensor& operand = inputs[static_cast<std::size_t>(rank)][0];
      for (std::size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += operand.data[i];
    }
    for (std::int64_t rank : members) outputs[static_cast<std::size_t>(rank)] = {sum};
  }
  return outputs;
}

}  // namespace

void add_collective_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "all_reduce",
      .op_class = OpClass::kCollective,
      .min_inputs = 1,
      .max_inputs = 1,
      // `algorithm` is set by lowering: the node is synchronous then and needs no wait.
      .attrs = {{"reduce_op", AttrType::kReduceOp, {}},
                {"group", AttrType::kGroup, {}},
                {"algorithm", AttrType::kString, std::string()}},
      .infer = infer_all_reduce,
      .flops = [](auto inputs, auto,
                  const Bindings& bindings) { return numel_at(inputs[0], bindings); },
      .evaluate = evaluate_all_reduce,
  });
  ops.push_back({
      .name = "wait_tensor",
      .op_class = OpClass::kWait,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {},
      .infer = infer_same,
      .flops = [](auto, auto, const Bindings&) { return 0.0; },
      .evaluate = [](const EvalContext&, const EvalTensors& inputs) { return inputs; },
  });
}

}  // namespace braid
