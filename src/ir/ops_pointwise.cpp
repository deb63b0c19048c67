#include <fmt/format.h>

#include <algorithm>

#include "ir/ops.h"
#include "ir/pointwise.h"

namespace braid {
namespace {

/// One row per op; the arithmetic stands in pointwise.h.
struct PointwiseOp {
  const char* name;
  int operands;
  bool float_only;
  double flops;  ///< per element
};
constexpr PointwiseOp kOps[] = {
    {"add", 2, false, 1}, {"sub", 2, false, 1}, {"mul", 2, false, 1},  {"div", 2, true, 1},
    {"neg", 1, false, 1}, {"exp", 1, true, 1},  {"rsqrt", 1, true, 1}, {"relu", 1, false, 1},
    {"silu", 1, true, 4}, {"gelu", 1, true, 5},
};

/// NumPy's rule, from the last dim on: extents agree when they are equal or one is 1.
Shape broadcast(std::string_view op, std::span<const TensorType> inputs) {
  Shape result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    const std::size_t lead = result.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      Dim& extent = result[lead + d];
      if (extent == Dim(1)) {
        extent = shape[d];
      } else if (shape[d] != Dim(1) && shape[d] != extent) {
        fail(fmt::format("/inputs/{}", i),
             fmt::format(
                 "operands of {} are {}: {} and {} do not broadcast; expected equal extents or 1",
                 op, describe(inputs), extent.str(), shape[d].str()));
      }
    }
  }
  return result;
}

/// For each element of `result` in order, its offset in an operand of `shape` that is broadcast.
std::vector<std::size_t> broadcast_offsets(const std::vector<std::int64_t>& result,
                                           const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> offsets{0};
  const std::size_t lead = result.size() - shape.size();
  std::size_t stride = 1;
  // From the last dim to the first: repeat the offsets of the inner dims once per index.
  for (std::size_t d = result.size(); d-- > 0;) {
    const auto extent = static_cast<std::size_t>(result[d]);
    const bool moves = d >= lead && shape[d - lead] != 1;
    const std::size_t inner = offsets.size();
    offsets.reserve(inner * extent);
    for (std::size_t i = 1; i < extent; ++i) {
      for (std::size_t k = 0; k < inner; ++k)
        offsets.push_back(offsets[k] + (moves ? i * stride : 0));
    }
    if (d >= lead) stride *= static_cast<std::size_t>(shape[d - lead]);
  }
  return offsets;
}

EvalTensors evaluate_pointwise(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    std::vector<std::vector<std::size_t>> offsets;
    offsets.reserve(operands.size());
    for (const EvalTensor& operand : operands) {
      offsets.push_back(operand.shape == result.shape
                            ? std::vector<std::size_t>()
                            : broadcast_offsets(result.shape, operand.shape));
    }
    std::vector<double> x(operands.size());
    for (std::size_t i = 0; i < result.data.size(); ++i) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        x[k] = operands[k].data[offsets[k].empty() ? i : offsets[k][i]];
      }
      result.data[i] = pointwise<double>(context.node.op->name, x);
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

std::vector<TensorType> infer_same(const InferContext& context) { return {context.inputs[0]}; }

}  // namespace

void add_pointwise_ops(std::vector<OpDef>& ops) {
  for (const PointwiseOp& op : kOps) {
    ops.push_back({
        .name = op.name,
        .op_class = OpClass::kPointwise,
        .min_inputs = op.operands,
        .max_inputs = op.operands,
        .attrs = {},
        .infer = [op](const InferContext& context) -> std::vector<TensorType> {
          if (op.float_only) expect_float(op.name, context.inputs);
          expect_same_dtype(op.name, context.inputs);
          const DType dtype = context.inputs[0].dtype;
          if (dtype == DType::kBool) {
            fail("/inputs/0", fmt::format("the operand of {} is {}; expected a number: insert `to`",
                                          op.name, context.inputs[0].str()));
          }
          return {{dtype, broadcast(op.name, context.inputs)}};
        },
        .flops =
            [op](auto, auto outputs, const Bindings& bindings) {
              return op.flops * numel_at(outputs[0], bindings);
            },
        .evaluate = evaluate_pointwise,
    });
  }
  auto no_flops = [](auto, auto, const Bindings&) { return 0.0; };
  ops.push_back({
      .name = "to",
      .op_class = OpClass::kPointwise,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"dtype", AttrType::kDType, {}}},
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        return {{get_attr<DType>(context.attrs, "dtype"), context.inputs[0].shape}};
      },
      .flops = no_flops,
      .evaluate = evaluate_pointwise,
  });
  ops.push_back({
      .name = "copy",
      .op_class = OpClass::kCopy,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {},
      .infer = infer_same,
      .flops = no_flops,
      .evaluate = evaluate_pointwise,
  });
}

}  // namespace braid
