// Mixture of experts: which rows go to which expert, and what the experts make of them.

#include <algorithm>
#include <cmath>

#include "ir/moe.h"
#include "ir/ops.h"
#include "ir/views.h"

namespace braid {
namespace {

/// The experts of each token, [T, k]. Returns how many choices there are in all.
Dim expect_choices(std::string_view op, const InferContext& context, std::size_t operand) {
  const TensorType& indices = context.inputs[operand];
  expect_indices(op, context, operand);
  const std::string place = fmt::format("/inputs/{}", operand);
  if (indices.shape.size() != 2 || !indices.shape[1].is_constant()) {
    fail(place, "the indices of {} are {}; expected two dims, the second a number", op,
         indices.str());
  }
  Dim count = indices.shape[0] * indices.shape[1].constant();
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // what is counted fits in 32 bits
  if (count.max(context.graph.symbols()) > kMost) {
    fail(place, "the indices of {} are {}, up to {} in all; expected at most {}", op, indices.str(),
         count.max(context.graph.symbols()), kMost);
  }
  return count;
}

std::vector<TensorType> infer_routing(const InferContext& context) {
  const Dim count = expect_choices("moe_routing", context, 0);
  const auto experts = get_attr<std::int64_t>(context.attrs, "experts");
  if (experts < 1 || experts > kMostExperts) {
    fail("/attrs/experts", "found {}; expected 1 to {}", experts, kMostExperts);
  }
  const TensorType each{DType::kI32, {count}};
  return {each, {DType::kI32, {experts}}, each, each};
}

EvalTensors evaluate_routing(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const std::vector<std::int64_t>& indices = operands[0].integers;
    std::vector<EvalTensor> results;
    for (std::size_t i = 0; i < 4; ++i) results.push_back(make_result(context, i));
    const std::int64_t experts = results[kRoutedEnds].shape[0];
    for (const std::int64_t index : indices) {
      static_cast<void>(checked_index(context, &operands - inputs.data(), index, experts));
    }
    std::size_t row = 0;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      for (std::size_t choice = 0; choice < indices.size(); ++choice) {
        if (indices[choice] != expert) continue;
        const auto token = static_cast<std::int64_t>(choice) / operands[0].shape[1];
        results[kRoutedTokens].integers[row] = token;
        results[kRoutedExperts].integers[row] = expert;
        results[kRoutedPlaces].integers[choice] = static_cast<std::int64_t>(row++);
      }
      results[kRoutedEnds].integers[expert] = static_cast<std::int64_t>(row);
    }
    return results;
  });
}

std::vector<TensorType> infer_experts(const InferContext& context) {
  constexpr std::string_view kOp = "moe_experts";
  const auto inputs = context.inputs;
  const auto expect = [&](std::size_t operand, bool good, std::string_view what,
                          std::string_view expected) {
    if (good) return;
    fail(fmt::format("/inputs/{}", operand), "the {} of {} is {}; expected {}", what, kOp,
         inputs[operand].str(), expected);
  };
  expect_float(kOp, inputs);
  const TensorType& x = inputs[0];
  expect(0, x.shape.size() == 2, "operand", "two dims");
  static_cast<void>(expect_choices(kOp, context, kMoeIndices));
  const Shape& choices = inputs[kMoeIndices].shape;
  expect(kMoeIndices, choices[0] == x.shape[0], "operand of indices",
         "a row for each of the first");
  const TensorType& weights = inputs[kMoeWeights];
  expect(kMoeWeights,
         weights.shape == choices && (weights.dtype == x.dtype || weights.dtype == DType::kF32),
         "weights", TensorType{x.dtype, choices}.str() + " or of f32");
  const TensorType& gate_up = inputs[kMoeGateUp];
  const bool is_matrix = gate_up.dtype == x.dtype && gate_up.shape.size() == 3 &&
                         gate_up.shape[0].is_constant() && gate_up.shape[1] == x.shape[1] &&
                         gate_up.shape[2].divide_exactly(2, context.graph.symbols());
  expect(kMoeGateUp, is_matrix, "gate_up",
         fmt::format("{}[E, {}, 2 I]", dtype_name(x.dtype), x.shape[1].str()));
  const Dim experts = gate_up.shape[0];
  const std::int64_t count = experts.constant();
  if (count < 1 || count > kMostExperts) {
    fail("/inputs/3", "the gate_up of {} has {} experts; expected 1 to {}", kOp, count,
         kMostExperts);
  }
  const Dim inner = *gate_up.shape[2].divide_exactly(2, context.graph.symbols());
  const TensorType& down = inputs[kMoeDown];
  expect(kMoeDown,
         down.dtype == x.dtype && down.shape.size() == 3 && down.shape[0] == experts &&
             down.shape[1] == inner,
         "down", fmt::format("{}[{}, {}, N]", dtype_name(x.dtype), experts.str(), inner.str()));
  const TensorType biases[] = {{x.dtype, {experts, gate_up.shape[2]}},
                               {x.dtype, {experts, down.shape[2]}}};
  for (std::size_t i = kMoeGateUpBias; i < inputs.size(); ++i) {
    const TensorType& bias = biases[i - kMoeGateUpBias];
    expect(i, inputs[i] == bias, "bias", bias.str());
  }
  if (inputs.size() == kMoeDownBias) {
    fail("", "{} has one bias; expected two, of gate_up and of down, or none", kOp);
  }
  if (get_attr<bool>(context.attrs, "weights_on_input") && choices[1] != Dim(1)) {
    fail("/attrs/weights_on_input", "each token has {} experts; expected one", choices[1].str());
  }
  return {{x.dtype, {x.shape[0], down.shape[2]}}};
}

/// Of one rank. Products are rounded to x's dtype, as any matmul's are; what follows one is
/// computed as one expression.
class Experts {
 public:
  Experts(const EvalContext& context, const std::vector<EvalTensor>& operands)
      : operands_(operands),
        dtype_(operands[0].dtype),
        interleaved_(*context.node.attr<bool>("interleaved")),
        clamped_(*context.node.attr<std::string>("activation") == kClampedSwiglu) {}

  /// What an expert makes of a row.
  std::vector<double> run(std::size_t expert, const std::vector<double>& row) const {
    const std::vector<double> both = product(row, kMoeGateUp, kMoeGateUpBias, expert);
    const std::size_t inner = both.size() / 2;
    std::vector<double> hidden(inner);
    for (std::size_t i = 0; i < inner; ++i) {
      const double gate = both[interleaved_ ? 2 * i : i];
      const double up = both[interleaved_ ? 2 * i + 1 : i + inner];
      hidden[i] = round_to(dtype_, clamped_ ? clamped_swiglu(gate, up) : gate * share(gate) * up);
    }
    std::vector<double> result = product(hidden, kMoeDown, kMoeDownBias, expert);
    for (double& y : result) y = round_to(dtype_, y);
    return result;
  }

 private:
  static double share(double x) { return 1 / (1 + std::exp(-x)); }
  static double clamped_swiglu(double gate, double up) {
    const double least = gate > kSwigluLimit ? kSwigluLimit : gate;  // NaN stays
    const double near = up > kSwigluLimit ? kSwigluLimit : up < -kSwigluLimit ? -kSwigluLimit : up;
    return (near + 1) * (least * share(kSwigluAlpha * least));
  }

  std::vector<double> product(const std::vector<double>& row, std::size_t matrix, std::size_t bias,
                              std::size_t expert) const {
    const auto columns = static_cast<std::size_t>(operands_[matrix].shape[2]);
    const double* weight = operands_[matrix].data.data() + expert * row.size() * columns;
    std::vector<double> result(columns, 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = 0; j < columns; ++j) result[j] += row[i] * weight[i * columns + j];
    }
    for (std::size_t j = 0; j < columns; ++j) {
      result[j] = round_to(dtype_, result[j]);
      if (bias < operands_.size()) result[j] += operands_[bias].data[expert * columns + j];
    }
    return result;
  }

  const std::vector<EvalTensor>& operands_;
  DType dtype_;
  bool interleaved_, clamped_;
};

EvalTensors evaluate_experts(const EvalContext& context, const EvalTensors& inputs) {
  const bool on_input = *context.node.attr<bool>("weights_on_input");
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    const std::vector<double>& weights = operands[kMoeWeights].data;
    const std::vector<std::int64_t>& indices = operands[kMoeIndices].integers;
    const auto columns = static_cast<std::ptrdiff_t>(x.shape[1]);
    const std::int64_t choices = operands[kMoeIndices].shape[1];
    const Experts experts(context, operands);
    EvalTensor result = make_result(context, 0);
    const auto width = static_cast<std::size_t>(result.shape[1]);
    for (std::size_t choice = 0; choice < indices.size(); ++choice) {
      const std::size_t expert = checked_index(context, &operands - inputs.data(), indices[choice],
                                               operands[kMoeGateUp].shape[0]);
      const std::size_t token = choice / static_cast<std::size_t>(choices);
      const auto first = x.data.begin() + static_cast<std::ptrdiff_t>(token) * columns;
      std::vector<double> row(first, first + columns);
      if (on_input) {
        for (double& element : row) element = round_to(x.dtype, element * weights[choice]);
      }
      const std::vector<double> made = experts.run(expert, row);
      for (std::size_t j = 0; j < width; ++j) {
        result.data[token * width + j] += on_input ? made[j] : weights[choice] * made[j];
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_moe_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "moe_routing",
      .op_class = OpClass::kScan,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"experts", AttrType::kInt, {}}},
      .infer = infer_routing,
      .flops = flops_per_element(0),
      .evaluate = evaluate_routing,
      .checked = {0},
  });
  // Plain ops, which canonicalize writes.
  ops.push_back({
      .name = "moe_experts",
      .op_class = OpClass::kOpaque,
      .min_inputs = 5,
      .max_inputs = 7,
      .attrs = {{"activation",
                 AttrType::kString,
                 std::string(kSwiglu),
                 false,
                 "`clamped_swiglu` is that of GPT-OSS.",
                 {kSwiglu, kClampedSwiglu}},
                {"interleaved", AttrType::kBool, false, false,
                 "Columns of gate_up are gate and up in turn, not in halves."},
                {"weights_on_input", AttrType::kBool, false, false,
                 "A row is multiplied by its weight before the expert, not after it."}},
      .infer = infer_experts,
      .flops =
          [](auto inputs, auto /*outputs*/, const Bindings& bindings) {
            const auto matrix = [&](std::size_t operand) {
              const Shape& shape = inputs[operand].shape;
              return static_cast<double>(shape[1].evaluate(bindings)) *
                     static_cast<double>(shape[2].evaluate(bindings));
            };
            return 2 * numel_at(inputs[kMoeIndices], bindings) *
                   (matrix(kMoeGateUp) + matrix(kMoeDown));
          },
      .evaluate = evaluate_experts,
      .checked = {kMoeIndices},
  });
}

}  // namespace braid
