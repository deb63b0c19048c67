// Counts of equal elements, which canonicalize writes as sums of comparisons: integers, so that no
// order matters.

#include <algorithm>
#include <cmath>

#include "ir/attributes.h"
#include "ir/numel.h"
#include "ir/ops.h"

namespace braid {
namespace {

std::vector<TensorType> infer_bincount(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  if (is_float(x.dtype) || x.dtype == DType::kBool || x.shape.size() != 1) {
    fail("/inputs/0", "the operand of bincount is {}; expected integers in one dim", x.str());
  }
  const Dim bins = bound_of(context.attrs.find("minlength")->second);
  if (bins.min(context.graph.symbols()) < 1) {
    fail("/attrs/minlength", "found {}; expected at least 1: the values decide no shape",
         bins.str());
  }
  return {{DType::kI64, {bins}}};
}

std::vector<TensorType> infer_histc(const InferContext& context) {
  expect_float("histc", context.inputs);
  const TensorType& x = context.inputs[0];
  if (!missing_extent(x.shape, {})) {
    fail("/inputs/0", "the operand of histc is {}, whose number of elements is no affine extent",
         x.str());
  }
  if (const auto bins = get_attr<std::int64_t>(context.attrs, "bins"); bins < 1) {
    fail("/attrs/bins", "found {}; expected at least 1", bins);
  }
  const auto low = get_attr<double>(context.attrs, "min");
  const auto high = get_attr<double>(context.attrs, "max");
  if (!std::isfinite(low) || !std::isfinite(high) ||
      static_cast<float>(low) >= static_cast<float>(high)) {
    fail("/attrs/max",
         "the range of histc is {} to {}; expected finite numbers in order: the "
         "values decide no range",
         low, high);
  }
  return {{x.dtype, {get_attr<std::int64_t>(context.attrs, "bins")}}};
}

EvalTensors evaluate_bincount(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    for (const std::int64_t x : operands[0].integers) {
      if (x >= 0 && x < result.shape[0]) ++result.integers[x];
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// In the steps of the kernel, each rounded to f32, for they decide the bin.
EvalTensors evaluate_histc(const EvalContext& context, const EvalTensors& inputs) {
  const Attrs& attrs = context.node.attrs;
  const auto low = static_cast<float>(get_attr<double>(attrs, "min"));
  const auto high = static_cast<float>(get_attr<double>(attrs, "max"));
  const auto bins = static_cast<float>(get_attr<std::int64_t>(attrs, "bins"));
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    for (const double element : operands[0].data) {
      const auto x = static_cast<float>(element);
      if (!(x >= low && x <= high)) continue;
      const float bin = std::floor((x - low) / (high - low) * bins);
      ++result.data[std::min(bin, bins - 1)];
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_count_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "bincount",
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"minlength", AttrType::kExtent, {}, false, "The number of bins."}},
      .infer = infer_bincount,
      .flops = flops_per_element(1),
      .evaluate = evaluate_bincount,
  });
  ops.push_back({
      .name = "histc",
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"bins", AttrType::kInt, std::int64_t{100}},
                {"min", AttrType::kDouble, {}},
                {"max", AttrType::kDouble, {}}},
      .infer = infer_histc,
      .flops = flops_per_element(1),
      .evaluate = evaluate_histc,
  });
}

}  // namespace braid
