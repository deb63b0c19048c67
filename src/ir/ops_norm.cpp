#include <fmt/format.h>

#include <cmath>

#include "ir/ops.h"

namespace braid {
namespace {

void check_norm(std::string_view op, std::span<const TensorType> inputs, const TensorType* weight,
                std::size_t weight_index) {
  expect_float(op, inputs);
  expect_same_dtype(op, inputs);
  const TensorType& x = inputs[0];
  if (x.shape.empty()) {
    fail("/inputs/0",
         fmt::format("the operand of {} is {}; expected at least one dim", op, x.str()));
  }
  if (weight != nullptr && weight->shape != Shape{x.shape.back()}) {
    fail(fmt::format("/inputs/{}", weight_index),
         fmt::format("the weight of {} is {}; expected {}", op, weight->str(),
                     TensorType{x.dtype, {x.shape.back()}}.str()));
  }
}

/// x / sqrt(mean(x^2) + eps) * w along the last dim.
void rms_norm(const std::vector<double>& x, const EvalTensor* weight, std::size_t columns,
              double eps, std::vector<double>& out) {
  for (std::size_t row = 0; row < x.size(); row += columns) {
    double sum = 0;
    for (std::size_t c = 0; c < columns; ++c) sum += x[row + c] * x[row + c];
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(columns) + eps);
    for (std::size_t c = 0; c < columns; ++c) {
      out[row + c] = x[row + c] * scale * (weight != nullptr ? weight->data[c] : 1.0);
    }
  }
}

std::size_t columns_of(const EvalTensor& x) { return static_cast<std::size_t>(x.shape.back()); }

const AttrDef kEps = {"eps", AttrType::kDouble, {}};

OpDef rms_norm_op() {
  return {
      .name = "rms_norm",
      .op_class = OpClass::kNorm,
      .min_inputs = 1,
      .max_inputs = 2,
      .attrs = {kEps},
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        check_norm("rms_norm", context.inputs,
                   context.inputs.size() > 1 ? &context.inputs[1] : nullptr, 1);
        return {context.inputs[0]};
      },
      .flops = [](auto inputs, auto,
                  const Bindings& bindings) { return 4 * numel_at(inputs[0], bindings); },
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
              EvalTensor result = make_result(context, 0);
              rms_norm(operands[0].data, operands.size() > 1 ? &operands[1] : nullptr,
                       columns_of(operands[0]), *context.node.attr<double>("eps"), result.data);
              return std::vector<EvalTensor>{std::move(result)};
            });
          },
  };
}

OpDef add_rms_norm2_op() {
  return {
      .name = "add_rms_norm2",
      .op_class = OpClass::kNorm,
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {kEps},
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        check_norm("add_rms_norm2", context.inputs, &context.inputs[2], 2);
        if (context.inputs[1] != context.inputs[0]) {
          fail("/inputs/1", fmt::format("the residual of add_rms_norm2 is {}; expected {}",
                                        context.inputs[1].str(), context.inputs[0].str()));
        }
        return {context.inputs[0], context.inputs[0]};
      },
      .flops = [](auto inputs, auto,
                  const Bindings& bindings) { return 5 * numel_at(inputs[0], bindings); },
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
              const EvalTensor& x = operands[0];
              EvalTensor normed = make_result(context, 0);
              EvalTensor residual = make_result(context, 1);
              // The norm sees the rounded residual, as it does after a separate add.
              for (std::size_t i = 0; i < x.data.size(); ++i) {
                residual.data[i] = round_to(x.dtype, x.data[i] + operands[1].data[i]);
              }
              rms_norm(residual.data, &operands[2], columns_of(x),
                       *context.node.attr<double>("eps"), normed.data);
              return std::vector<EvalTensor>{std::move(normed), std::move(residual)};
            });
          },
  };
}

}  // namespace

void add_norm_ops(std::vector<OpDef>& ops) {
  ops.push_back(rms_norm_op());
  ops.push_back(add_rms_norm2_op());
}

}  // namespace braid
