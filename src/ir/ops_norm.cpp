#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops.h"
#include "ir/pointwise.h"

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

/// The last dim is the one that softmax works along.
std::vector<TensorType> infer_softmax(const InferContext& context) {
  check_norm("softmax", context.inputs, nullptr, 0);
  const std::size_t rank = context.inputs[0].shape.size();
  if (normalize_axis(get_attr<std::int64_t>(context.attrs, "dim"), rank, "/attrs/dim") + 1 !=
      rank) {
    fail("/attrs/dim", "softmax along another dim than the last; transpose the operand");
  }
  return {context.inputs[0]};
}

std::vector<TensorType> infer_layer_norm(const InferContext& context) {
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    check_norm("layer_norm", context.inputs, &context.inputs[i], i);
  }
  check_norm("layer_norm", context.inputs, nullptr, 0);
  return {context.inputs[0]};
}

EvalTensors evaluate_softmax(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const std::size_t columns = columns_of(x);
    for (std::size_t row = 0; row < x.data.size(); row += columns) {
      const double* in = x.data.data() + row;
      double* out = result.data.data() + row;
      double largest = in[0];
      for (std::size_t c = 1; c < columns; ++c) largest = maximum(largest, in[c]);
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
      for (std::size_t c = 0; c < columns; ++c) out[c] /= sum;
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

EvalTensors evaluate_layer_norm(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const std::size_t columns = columns_of(x);
    const auto n = static_cast<double>(columns);
    for (std::size_t row = 0; row < x.data.size(); row += columns) {
      const double* in = x.data.data() + row;
      double mean = 0;
      for (std::size_t c = 0; c < columns; ++c) mean += in[c];
      mean /= n;
      double variance = 0;
      for (std::size_t c = 0; c < columns; ++c) variance += (in[c] - mean) * (in[c] - mean);
      const double scale = 1.0 / std::sqrt(variance / n + *context.node.attr<double>("eps"));
      for (std::size_t c = 0; c < columns; ++c) {
        double y = (in[c] - mean) * scale;
        if (operands.size() > 1) y *= operands[1].data[c];
        if (operands.size() > 2) y += operands[2].data[c];
        result.data[row + c] = y;
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// add_rms_norm2 gives the normed sum and the sum, add_rms_norm the first alone.
std::vector<TensorType> infer_add_norm(const char* name, std::size_t results,
                                       const InferContext& context) {
  check_norm(name, context.inputs, &context.inputs[2], 2);
  if (context.inputs[1] != context.inputs[0]) {
    fail("/inputs/1", fmt::format("the residual of {} is {}; expected {}", name,
                                  context.inputs[1].str(), context.inputs[0].str()));
  }
  return std::vector<TensorType>(results, context.inputs[0]);
}

EvalTensors evaluate_add_norm(std::size_t results, const EvalContext& context,
                              const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor normed = make_result(context, 0);
    EvalTensor residual = normed;
    // The norm sees the rounded residual, as it does after a separate add.
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      residual.data[i] = round_to(x.dtype, x.data[i] + operands[1].data[i]);
    }
    rms_norm(residual.data, &operands[2], columns_of(x), *context.node.attr<double>("eps"),
             normed.data);
    std::vector<EvalTensor> outputs{std::move(normed)};
    if (results == 2) outputs.push_back(std::move(residual));
    return outputs;
  });
}

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
      .flops = flops_per_element(4),
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

OpDef add_norm_op(const char* name, std::size_t results) {
  return {
      .name = name,
      .op_class = OpClass::kNorm,
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {kEps},
      .infer = [=](const InferContext& context) { return infer_add_norm(name, results, context); },
      .flops = flops_per_element(5),
      .evaluate =
          [=](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_add_norm(results, context, inputs);
          },
  };
}

}  // namespace

void add_norm_ops(std::vector<OpDef>& ops) {
  ops.push_back(rms_norm_op());
  ops.push_back(add_norm_op("add_rms_norm", 1));
  ops.push_back(add_norm_op("add_rms_norm2", 2));
  ops.push_back({
      .name = "softmax",
      .op_class = OpClass::kNorm,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"dim", AttrType::kInt, std::int64_t{-1}}},
      .infer = infer_softmax,
      .flops = flops_per_element(5),
      .evaluate = evaluate_softmax,
  });
  ops.push_back({
      .name = "layer_norm",
      .op_class = OpClass::kNorm,
      .min_inputs = 1,
      .max_inputs = 3,
      .attrs = {kEps},
      .infer = infer_layer_norm,
      .flops = flops_per_element(5),
      .evaluate = evaluate_layer_norm,
  });
}

}  // namespace braid
