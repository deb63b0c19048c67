#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/pointwise.h"

namespace braid {
namespace {

struct ReduceOp {
  const char* name;
  bool float_only;
  double start;
  double (*combine)(double, double);
};
constexpr ReduceOp kOps[] = {
    {"sum", true, 0.0, [](double a, double b) { return a + b; }},
    {"amax", false, -std::numeric_limits<double>::infinity(), maximum},
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
  if (input.dtype == DType::kBool) {
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

EvalTensors evaluate_reduce(const ReduceOp& op, const EvalContext& context,
                            const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    const EvalTensor& x = operands[0];
    const std::vector<bool> reduced = reduced_dims(context.node.attrs, x.shape.size());
    EvalTensor result = make_result(context, 0);
    std::fill(result.data.begin(), result.data.end(), op.start);
    // Strides of the operand's dims in the result; a reduced dim stays in place.
    std::vector<std::size_t> strides(x.shape.size(), 0);
    std::size_t stride = 1;
    for (std::size_t d = strides.size(); d-- > 0;) {
      if (reduced[d]) continue;
      strides[d] = stride;
      stride *= static_cast<std::size_t>(x.shape[d]);
    }
    std::vector<std::int64_t> index(x.shape.size(), 0);
    std::size_t at = 0;
    for (double value : x.data) {
      result.data[at] = op.combine(result.data[at], value);
      for (std::size_t d = index.size(); d-- > 0;) {
        at += strides[d];
        if (++index[d] < x.shape[d]) break;
        at -= strides[d] * static_cast<std::size_t>(x.shape[d]);
        index[d] = 0;
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_reduce_ops(std::vector<OpDef>& ops) {
  for (const ReduceOp& op : kOps) {
    ops.push_back({
        .name = op.name,
        .op_class = OpClass::kReduction,
        .min_inputs = 1,
        .max_inputs = 1,
        .attrs = {{"dim", AttrType::kInts, std::vector<std::int64_t>{}},
                  {"keepdim", AttrType::kBool, false}},
        .infer = [op](const InferContext& context) { return infer_reduce(op, context); },
        .flops = [](auto inputs, auto,
                    const Bindings& bindings) { return numel_at(inputs[0], bindings); },
        .evaluate = [op](
                        const EvalContext& context,
                        const EvalTensors& inputs) { return evaluate_reduce(op, context, inputs); },
    });
  }
}

}  // namespace braid
