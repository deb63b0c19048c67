#include <fmt/format.h>

#include "ir/ops.h"

namespace braid {
namespace {

std::vector<TensorType> infer_mm(const InferContext& context) {
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  expect_float("mm", context.inputs);
  expect_same_dtype("mm", context.inputs);
  for (std::size_t i = 0; i < 2; ++i) {
    if (context.inputs[i].shape.size() != 2) {
      fail(fmt::format("/inputs/{}", i),
           fmt::format("the operand of mm is {}; expected two dims", context.inputs[i].str()));
    }
  }
  if (a.shape[1] != b.shape[0]) {
    fail("/inputs/1",
         fmt::format("operands of mm are {}: {} and {} differ; expected [M, K], [K, N]",
                     describe(context.inputs), a.shape[1].str(), b.shape[0].str()));
  }
  return {{a.dtype, {a.shape[0], b.shape[1]}}};
}

EvalTensors evaluate_mm(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    const auto m = static_cast<std::size_t>(operands[0].shape[0]);
    const auto k = static_cast<std::size_t>(operands[0].shape[1]);
    const auto n = static_cast<std::size_t>(operands[1].shape[1]);
    for (std::size_t i = 0; i < m; ++i) {
      double* row = result.data.data() + i * n;
      for (std::size_t p = 0; p < k; ++p) {
        const double a = operands[0].data[i * k + p];
        const double* b = operands[1].data.data() + p * n;
        for (std::size_t j = 0; j < n; ++j) row[j] += a * b[j];
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_matmul_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "mm",
      .op_class = OpClass::kMatmul,
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {},
      .infer = infer_mm,
      .flops =
          [](auto inputs, auto outputs, const Bindings& bindings) {
            const double k = static_cast<double>(inputs[0].shape[1].evaluate(bindings));
            return 2 * k * numel_at(outputs[0], bindings);
          },
      .evaluate = evaluate_mm,
  });
}

}  // namespace braid
