#include <fmt/format.h>

#include "ir/json_writer.h"
#include "ir/ops.h"
#include "ir/pointwise.h"

namespace braid {
namespace {

void expect_operand(std::string_view op, Operands takes, std::span<const TensorType> inputs) {
  if (takes == Operands::kFloat) return expect_float(op, inputs);
  const DType dtype = inputs[0].dtype;
  if (takes == Operands::kInteger && (is_float(dtype) || dtype == DType::kBool)) {
    fail("/inputs/0",
         "the operand of {} is {}; expected i32, i64, i8 or u8: of floats there is div, and floor",
         op, inputs[0].str());
  }
  if (takes == Operands::kBits) {
    if (!is_float(dtype)) return;
    fail("/inputs/0", "the operand of {} is {}; expected i32, i64, i8, u8 or bool", op,
         inputs[0].str());
  }
  if (is_float8(dtype) || (dtype == DType::kBool && takes == Operands::kNumber)) {
    fail("/inputs/0", "the operand of {} is {}; expected a number{}: insert `to`", op,
         inputs[0].str(), is_float8(dtype) ? " of at least 16 bits" : "");
  }
}

/// NumPy's rule, from the last dim on: extents must be equal, or one of them 1.
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
             "operands of {} are {}: {} and {} do not broadcast; expected equal extents or 1", op,
             describe(inputs), extent.str(), shape[d].str());
      }
    }
  }
  return result;
}

/// For each element of `result` in order, its offset in a broadcast operand of `shape`.
std::vector<std::size_t> broadcast_offsets(const std::vector<std::int64_t>& result,
                                           const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> offsets{0};
  const std::size_t lead = result.size() - shape.size();
  std::size_t stride = 1;
  // From the last dim to the first: repeat the offsets of the inner dims once per index.
  for (std::size_t d = result.size(); d-- > 0;) {
    const std::size_t extent = result[d];
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

double real_element(const EvalTensor& x, std::size_t i) {
  return is_float(x.dtype) ? x.data[i] : static_cast<double>(x.integers[i]);
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
    const auto at = [&](std::size_t k, std::size_t i) {
      return offsets[k].empty() ? i : offsets[k][i];
    };
    // A condition is bool whatever the other operands are.
    if (is_float(operands.back().dtype)) {
      std::vector<double> x(operands.size());
      for (std::size_t i = 0; i < result.size(); ++i) {
        for (std::size_t k = 0; k < x.size(); ++k) x[k] = real_element(operands[k], at(k, i));
        set_element(result, i, arithmetic_of<double>(*context.node.op)(x, context.node.attrs));
      }
    } else {
      std::vector<Int> x(operands.size());
      for (std::size_t i = 0; i < result.size(); ++i) {
        for (std::size_t k = 0; k < x.size(); ++k) x[k] = {operands[k].integers[at(k, i)]};
        set_element(result, i, arithmetic_of<Int>(*context.node.op)(x, context.node.attrs));
      }
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

std::vector<TensorType> infer_pointwise(const PointwiseRow& row, const InferContext& context) {
  if (row.infer != nullptr) return row.infer(context);
  expect_operand(row.name, row.takes, context.inputs);
  expect_same_dtype(row.name, context.inputs);
  if (row.check != nullptr) row.check(context);
  const DType dtype = row.gives_bool ? DType::kBool : context.inputs[0].dtype;
  return {{dtype, broadcast(row.name, context.inputs)}};
}

OpDef definition(const PointwiseRow& row, int entry) {
  return {
      .name = std::string(row.name),
      .op_class = row.op_class,
      .min_inputs = row.operands,
      .max_inputs = row.operands,
      .attrs = row.attrs == nullptr ? std::vector<AttrDef>() : row.attrs(),
      .infer = [row](const InferContext& context) { return infer_pointwise(row, context); },
      .flops = flops_per_element(row.flops),
      .evaluate = evaluate_pointwise,
      .promotes = row.promotes,
      .entry = entry,
  };
}

}  // namespace

std::vector<AttrDef> gelu_attributes() {
  return {{.name = "approximate",
           .type = AttrType::kString,
           .fallback = std::string("none"),
           .choices = {"none", "tanh"}}};
}

std::vector<AttrDef> div_attributes() {
  return {{.name = "rounding_mode",
           .type = AttrType::kString,
           .fallback = {},
           .optional = true,
           .about = "Of integers; left out, that of floats.",
           .choices = {"trunc", "floor"}}};
}

/// Floats divide exactly; integers need a rounding mode.
void check_div(const InferContext& context) {
  const bool rounds = context.attrs.contains("rounding_mode");
  if (is_float(context.inputs[0].dtype) != rounds) return;
  fail(rounds ? "/attrs/rounding_mode" : "/inputs/0", "the operand of div is {}; expected {}",
       context.inputs[0].str(),
       rounds ? "i32, i64, i8 or u8: of floats there is floor"
              : "f32, f16 or bf16, or a rounding_mode: insert `to`");
}

/// Integers need integer bounds: a float bound would make the result a float.
void check_clamp(const InferContext& context) {
  const DType dtype = context.inputs[0].dtype;
  if (context.attrs.empty()) fail("/attrs", "clamp has no bound; expected min, max or both");
  for (const char* key : {"min", "max"}) {
    const auto bound = context.attrs.find(key);
    if (bound == context.attrs.end()) continue;
    if (!is_float(dtype) && std::holds_alternative<double>(bound->second)) {
      fail(std::string("/attrs/") + key,
           "{} is a float and the operand {}; expected an integer: insert `to` to clamp as floats",
           json_attribute(bound->second), context.inputs[0].str());
    }
    expect_held(dtype, context.attrs, key);
  }
}

std::vector<TensorType> infer_where(const InferContext& context) {
  if (context.inputs[0].dtype != DType::kBool) {
    fail("/inputs/0", "the condition of where is {}; expected bool", context.inputs[0].str());
  }
  expect_same_dtype("where", context.inputs.subspan(1), 1);
  return {{context.inputs[1].dtype, broadcast("where", context.inputs)}};
}

std::vector<TensorType> infer_masked_fill(const InferContext& context) {
  const TensorType& mask = context.inputs[1];
  const TensorType& value = context.inputs[2];
  if (mask.dtype != DType::kBool) {
    fail("/inputs/1", "the mask of masked_fill is {}; expected bool", mask.str());
  }
  const TensorType expected{context.inputs[0].dtype, {}};
  if (value != expected) {
    fail("/inputs/2", "the value of masked_fill is {}; expected a number, or {}", value.str(),
         expected.str());
  }
  return {{expected.dtype, broadcast("masked_fill", context.inputs)}};
}

/// The complement of each bit; of bool, the other truth value.
std::vector<TensorType> infer_bitwise_not(const InferContext& context) {
  expect_operand("bitwise_not", Operands::kBits, context.inputs);
  return {context.inputs[0]};
}
EvalTensors evaluate_bitwise_not(const EvalContext&, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [](const std::vector<EvalTensor>& operands) {
    EvalTensor result = operands[0];
    const bool is_truth = result.dtype == DType::kBool;
    for (std::int64_t& x : result.integers) x = is_truth ? 1 - x : ~x;
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// The bits of an i32 as those of an f32.
std::vector<TensorType> infer_bitcast(const InferContext& context) {
  if (context.inputs[0].dtype != DType::kI32) {
    fail("/inputs/0", "the operand of bitcast is {}; expected i32", context.inputs[0].str());
  }
  return {{DType::kF32, context.inputs[0].shape}};
}
EvalTensors evaluate_bitcast(const EvalContext&, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [](const std::vector<EvalTensor>& operands) {
    HostTensor bits = to_host(operands[0]);
    bits.dtype = DType::kF32;
    return std::vector<EvalTensor>{from_host(bits)};
  });
}

std::vector<TensorType> infer_cast(const InferContext& context) {
  return {{get_attr<DType>(context.attrs, "dtype"), context.inputs[0].shape}};
}

std::vector<TensorType> infer_same(const InferContext& context) { return {context.inputs[0]}; }

void add_pointwise_ops(std::vector<OpDef>& ops) {
  int entry = 0;
  std::apply([&](const auto&... op) { (ops.push_back(definition(op.row, entry++)), ...); },
             kPointwiseOps);
  // Of one dtype or another it is another op, which canonicalize writes.
  ops.push_back({
      .name = "bitwise_not",
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {},
      .infer = infer_bitwise_not,
      .flops = flops_per_element(1),
      .evaluate = evaluate_bitwise_not,
  });
  ops.push_back({
      .name = "bitcast",
      .op_class = OpClass::kPointwise,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {},
      .infer = infer_bitcast,
      .flops = flops_per_element(0),
      .evaluate = evaluate_bitcast,
  });
  // copy_(to, from): writes the values of `from`, of the same dtype and shape.
  for (const char* name : {"copy_", "fsdp.copy_"}) {
    ops.push_back({
        .name = name,
        .op_class = OpClass::kMutation,
        .min_inputs = 2,
        .max_inputs = 2,
        .attrs = {},
        .infer = [](const InferContext& context) -> std::vector<TensorType> {
          if (context.inputs[0] != context.inputs[1]) {
            fail("/inputs/1", "{} does not fit into {}; expected one type", context.inputs[1].str(),
                 context.inputs[0].str());
          }
          return {context.inputs[0]};
        },
        .flops = flops_per_element(0),
        .evaluate =
            [](const EvalContext&, const EvalTensors& inputs) {
              return evaluate_each_rank(inputs, [](const std::vector<EvalTensor>& operands) {
                return std::vector<EvalTensor>{operands[1]};
              });
            },
        .mutates = Mutates::kFirst,
        .promotes = Promotes::kToFirst,
    });
  }
}

}  // namespace braid
