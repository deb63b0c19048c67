#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/numel.h"
#include "ir/ops.h"

namespace braid {
namespace {

std::vector<TensorType> infer_view(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  Shape shape = get_attr<Shape>(context.attrs, "shape");
  auto mismatch = [&] {
    fail("/attrs/shape", fmt::format("{} cannot be viewed as {}; expected equally many elements",
                                     x.str(), TensorType{x.dtype, shape}.str()));
  };
  const auto inferred = std::find(shape.begin(), shape.end(), Dim(-1));
  if (inferred == shape.end()) {
    if (!same_numel(x.shape, shape)) mismatch();
    return {{x.dtype, shape}};
  }
  if (std::count(shape.begin(), shape.end(), Dim(-1)) > 1) {
    fail("/attrs/shape", "two extents are -1; expected at most one");
  }
  Shape others = shape;
  others.erase(others.begin() + (inferred - shape.begin()));
  std::optional<Dim> extent = missing_extent(x.shape, others);
  if (!extent) mismatch();
  *inferred = *extent;
  return {{x.dtype, shape}};
}

std::pair<std::size_t, std::size_t> transposed_axes(const Attrs& attrs, std::size_t rank) {
  return {normalize_axis(get_attr<std::int64_t>(attrs, "dim0"), rank, "/attrs/dim0"),
          normalize_axis(get_attr<std::int64_t>(attrs, "dim1"), rank, "/attrs/dim1")};
}

std::vector<TensorType> infer_transpose(const InferContext& context) {
  TensorType result = context.inputs[0];
  const auto [a, b] = transposed_axes(context.attrs, result.shape.size());
  std::swap(result.shape[a], result.shape[b]);
  return {result};
}

EvalTensors evaluate_view(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    result.data = operands[0].data;
    return std::vector<EvalTensor>{std::move(result)};
  });
}

EvalTensors evaluate_transpose(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    const auto [a, b] = transposed_axes(context.node.attrs, x.shape.size());
    // Strides of the operand's dims, in the order of the result's dims.
    std::vector<std::size_t> strides(x.shape.size(), 1);
    for (std::size_t d = strides.size(); d-- > 1;) {
      strides[d - 1] = strides[d] * static_cast<std::size_t>(x.shape[d]);
    }
    std::swap(strides[a], strides[b]);
    std::vector<std::int64_t> index(x.shape.size(), 0);
    std::size_t at = 0;
    for (double& value : result.data) {
      value = x.data[at];
      for (std::size_t d = index.size(); d-- > 0;) {
        at += strides[d];
        if (++index[d] < result.shape[d]) break;
        at -= strides[d] * static_cast<std::size_t>(result.shape[d]);
        index[d] = 0;
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_view_ops(std::vector<OpDef>& ops) {
  auto no_flops = [](auto, auto, const Bindings&) { return 0.0; };
  ops.push_back({
      .name = "view",
      .op_class = OpClass::kView,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"shape", AttrType::kShape, {}}},
      .infer = infer_view,
      .flops = no_flops,
      .evaluate = evaluate_view,
  });
  ops.push_back({
      .name = "transpose",
      .op_class = OpClass::kView,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"dim0", AttrType::kInt, {}}, {"dim1", AttrType::kInt, {}}},
      .infer = infer_transpose,
      .flops = no_flops,
      .evaluate = evaluate_transpose,
  });
}

}  // namespace braid
