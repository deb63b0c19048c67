#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/pointwise.h"

namespace braid {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Limits = std::numeric_limits<std::int64_t>;

/// Of floats, and of integers where it takes them: what it begins with and how it goes on.
struct ReduceOp {
  const char* name;
  bool float_only;
  double start;
  double (*combine)(double, double);
  Int integer_start = {0};
  Int (*combine_integers)(Int, Int) = nullptr;
};
double sum_of(double a, double b) { return a + b; }
constexpr ReduceOp kOps[] = {
    {"sum", true, 0.0, sum_of},
    {"mean", true, 0.0, sum_of},
    {"amax", false, -kInfinity, maximum, {Limits::min()}, maximum},
    {"amin", false, kInfinity, minimum, {Limits::max()}, minimum},
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

std::vector<TensorType> infer_reduce(std::string_view op, bool float_only,
                                     const InferContext& context) {
  if (float_only) expect_float(op, context.inputs);
  const TensorType& input = context.inputs[0];
  if (input.dtype == DType::kBool || is_float8(input.dtype)) {
    fail("/inputs/0",
         fmt::format("the operand of {} is {}; expected a number: insert `to`", op, input.str()));
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

/// Calls visit(an element's place, its place in the result, its index among those that go there).
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
  for (std::size_t from = 0; from < x.size(); ++from) {
    visit(from, at, nth);
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
    result.data.assign(result.data.size(), op.start);
    result.integers.assign(result.integers.size(), op.integer_start.value);
    visit_reduced(x, reduced_dims(context.node.attrs, x.shape.size()),
                  [&](std::size_t from, std::size_t at, std::size_t) {
                    if (is_float(x.dtype)) {
                      result.data[at] = op.combine(result.data[at], x.data[from]);
                    } else {
                      std::int64_t& y = result.integers[at];
                      y = op.combine_integers({y}, {x.integers[from]}).value;
                    }
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
  std::vector<TensorType> result = infer_reduce("argmax", false, context);
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
    std::vector<std::size_t> best(result.size(), 0);  // the place of the largest so far
    const auto is_better = [&](std::size_t from, std::size_t than) {
      if (!is_float(x.dtype)) return x.integers[from] > x.integers[than];
      if (std::isnan(x.data[than])) return false;
      return std::isnan(x.data[from]) || x.data[from] > x.data[than];
    };
    visit_reduced(x, reduced_dims(context.node.attrs, x.shape.size()),
                  [&](std::size_t from, std::size_t at, std::size_t nth) {
                    if (nth != 0 && !is_better(from, best[at])) return;
                    best[at] = from;
                    result.integers[at] = static_cast<std::int64_t>(nth);
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
        .infer =
            [op](const InferContext& context) {
              return infer_reduce(op.name, op.float_only, context);
            },
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
