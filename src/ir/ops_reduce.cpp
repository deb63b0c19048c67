#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/pointwise.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct ReduceOp {
  const char* name;
  bool float_only;
  double start;
  double (*combine)(double, double);
};
constexpr ReduceOp kOps[] = {
    {"sum", true, 0.0, [](double a, double b) { return a + b; }},
    {"mean", true, 0.0, [](double a, double b) { return a + b; }},
    {"amax", false, -kInfinity, maximum},
    {"amin", false, kInfinity, [](double a, double b) { return -maximum(-a, -b); }},
};

/// For each dim whether it is reduced; an empty list means all.
std::vector<bool> reduced_dims(const Attrs& attrs, std::size_t rank) {
  const auto& dims = get_attr<std::vector<std::int64_t>>(attrs, "dim");
  std::vector<bool> reduced(rank, dims.empty());
  for (std::int64_t dim : dims) {
    const std::size_t axis = normalize_axis(dim, rank, "/attrs/dim");
    if (reduced[axis]) fail("/attrs/dim", fmt::format("dim {} stands there twice", dim));
    reduced[axis] = true;
  }
  return reduced;
}

std::vector<TensorType> infer_reduce(const ReduceOp& op, const InferContext& context) {
  if (op.float_only) expect_float(op.name, context.inputs);
  const TensorType& input = context.inputs[0];
  if (input.dtype == DType::kBool || is_float8(input.dtype)) {
    fail("/inputs/0", fmt::format("the operand of {} is {}; expected a number: insert `to`",
                                  op.name, input.str()));
  }
  const std::vector<bool> reduced = reduced_dims(context.attrs, input.shape.size());
  const bool keepdim = get_attr<bool>(context.attrs, "keepdim");
  TensorType result{input.dtype, {}};
  for (std::size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) {
      result.shape.push_back(input.shape[d]);
    } else if (keepdim) {
      result.shape.emplace_back(1);
    }
  }
  return {result};
}

/// Calls visit(element, its place in the result, its index among those that go there).
template <class Visit>
void visit_reduced(const EvalTensor& x, const std::vector<bool>& reduced, const Visit& visit) {
  // Strides of the operand's dims in the result; a reduced dim stays in place and counts.
  std::vector<std::size_t> strides(x.shape.size(), 0);
  std::vector<std::size_t> counts(x.shape.size(), 0);
  std::size_t stride = 1;
  std::size_t count = 1;
  for (std::size_t d = strides.size(); d-- > 0;) {
    (reduced[d] ? counts[d] : strides[d]) = reduced[d] ? count : stride;
    (reduced[d] ? count : stride) *= static_cast<std::size_t>(x.shape[d]);
  }
  std::vector<std::int64_t> index(x.shape.size(), 0);
  std::size_t at = 0;
  std::size_t nth = 0;
  for (double value : x.data) {
    visit(value, at, nth);
    for (std::size_t d = index.size(); d-- > 0;) {
      at += strides[d];
      nth += counts[d];
      if (++index[d] < x.shape[d]) break;
      at -= strides[d] * static_cast<std::size_t>(x.shape[d]);
      nth -= counts[d] * static_cast<std::size_t>(x.shape[d]);
      index[d] = 0;
    }
  }
}

EvalTensors evaluate_reduce(const ReduceOp& op, const EvalContext& context,
                            const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    std::fill(result.data.begin(), result.data.end(), op.start);
    visit_reduced(x, reduced_dims(context.node.attrs, x.shape.size()),
                  [&](double value, std::size_t at, std::size_t) {
                    result.data[at] = op.combine(result.data[at], value);
                  });
    if (std::string_view(op.name) == "mean") {
      const auto count =
          static_cast<double>(x.data.size()) / static_cast<double>(result.data.size());
      for (double& value : result.data) value /= count;
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

std::vector<TensorType> infer_argmax(const InferContext& context) {
  const ReduceOp any_number{"argmax", false, 0, maximum};
  std::vector<TensorType> result = infer_reduce(any_number, context);
  result[0].dtype = DType::kI64;
  if (get_attr<std::vector<std::int64_t>>(context.attrs, "dim").size() > 1) {
    fail("/attrs/dim", "argmax over several dims; expected one, or none for all");
  }
  return result;
}

/// The first of equal elements; NaN is the largest.
EvalTensors evaluate_argmax(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    EvalTensor result = make_result(context, 0);
    std::vector<double> best(result.data.size(), 0);
    visit_reduced(x, reduced_dims(context.node.attrs, x.shape.size()),
                  [&](double value, std::size_t at, std::size_t nth) {
                    const bool better = nth == 0 || value > best[at] ||
                                        (std::isnan(value) && !std::isnan(best[at]));
                    if (!better) return;
                    best[at] = value;
                    result.data[at] = static_cast<double>(nth);
                  });
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// Elements visited.
double reduce_flops(std::span<const TensorType> inputs, std::span<const TensorType>,
                    const Bindings& bindings) {
  return numel_at(inputs[0], bindings);
}

std::vector<AttrDef> reduce_attributes() {
  return {{"dim", AttrType::kInts, std::vector<std::int64_t>{}},
          {"keepdim", AttrType::kBool, false}};
}

}  // namespace

void add_reduce_ops(std::vector<OpDef>& ops) {
  for (const ReduceOp& op : kOps) {
    ops.push_back({
        .name = op.name,
        .op_class = OpClass::kReduction,
        .min_inputs = 1,
        .max_inputs = 1,
        .attrs = reduce_attributes(),
        .infer = [op](const InferContext& context) { return infer_reduce(op, context); },
        .flops = reduce_flops,
        .evaluate = [op](
                        const EvalContext& context,
                        const EvalTensors& inputs) { return evaluate_reduce(op, context, inputs); },
    });
  }
  ops.push_back({
      .name = "argmax",
      .op_class = OpClass::kReduction,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = reduce_attributes(),
      .infer = infer_argmax,
      .flops = reduce_flops,
      .evaluate = evaluate_argmax,
  });
}

}  // namespace braid
