// Ops whose result depends on shapes and attributes alone, and one_hot, which compares with such.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/attributes.h"
#include "ir/json_writer.h"
#include "ir/ops.h"
#include "ir/text.h"
#include "ir/views.h"

namespace braid {
namespace {

bool can_hold(DType dtype, const AttrValue& number) {
  if (dtype == DType::kBool) return true;
  if (const auto* integer = std::get_if<std::int64_t>(&number)) {
    return is_float(dtype) ? can_hold(dtype, static_cast<double>(*integer))
                           : wrap_to(dtype, *integer) == *integer;
  }
  const double value = std::get<double>(number);
  if (std::isnan(value)) return is_float(dtype);
  if (std::isinf(value)) return is_float(dtype) && dtype != DType::kF8E4M3;
  if (is_float8(dtype)) return std::fabs(value) <= (dtype == DType::kF8E4M3 ? 448 : 57344);
  if (is_float(dtype)) return std::isfinite(round_to(dtype, round_to(DType::kF32, value)));
  // 2^63 would saturate to the largest i64, and integers beyond 64 bits were read as -2^63.
  return round_to(dtype, value) == value && std::fabs(value) < 0x1p63;
}

/// The attribute of a number that fills its result.
constexpr const char* kValue = "value";
constexpr const char* kFillValue = "fill_value";

EvalTensor filled(const EvalContext& context, const AttrValue& value) {
  EvalTensor result = make_result(context, 0);
  result.data.assign(result.data.size(), number_like(0.0, value));
  result.integers.assign(result.integers.size(), integer_of(result.dtype, value));
  return result;
}

OpDef full() {
  return {
      .name = "full",
      .op_class = OpClass::kPointwise,
      .min_inputs = 0,
      .max_inputs = 0,
      .attrs = {{"shape", AttrType::kShape, Shape{}},
                {kValue, AttrType::kNumber, {}},
                {"dtype", AttrType::kDType, {}}},
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        const DType dtype = get_attr<DType>(context.attrs, "dtype");
        expect_held(dtype, context.attrs, kValue);
        return {{dtype, get_attr<Shape>(context.attrs, "shape")}};
      },
      .flops = flops_per_element(0),
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            const AttrValue& value = context.node.attrs.find(kValue)->second;
            return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>&) {
              return std::vector<EvalTensor>{filled(context, value)};
            });
          },
  };
}

/// A full of the operand's shape, and of its dtype where none is given; canonicalize writes it.
/// Without a number it is the attribute fill_value.
OpDef full_like(std::string name, std::optional<std::int64_t> number) {
  std::vector<AttrDef> attrs{{.name = "dtype",
                              .type = AttrType::kDType,
                              .fallback = {},
                              .optional = true,
                              .about = "Left out, the operand's."}};
  if (!number) attrs.insert(attrs.begin(), {kFillValue, AttrType::kNumber, {}});
  return {
      .name = std::move(name),
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = std::move(attrs),
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        TensorType result = context.inputs[0];
        if (const auto dtype = context.attrs.find("dtype"); dtype != context.attrs.end()) {
          result.dtype = std::get<DType>(dtype->second);
        }
        if (context.attrs.contains(kFillValue)) {
          expect_held(result.dtype, context.attrs, kFillValue);
        }
        return {result};
      },
      .flops = flops_per_element(0),
      .evaluate =
          [number](const EvalContext& context, const EvalTensors& inputs) {
            const AttrValue value = number ? *number : context.node.attrs.find(kFillValue)->second;
            return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>&) {
              return std::vector<EvalTensor>{filled(context, value)};
            });
          },
  };
}

std::vector<TensorType> infer_arange(const InferContext& context) {
  const DType dtype = get_attr<DType>(context.attrs, "dtype");
  if (dtype == DType::kBool || is_float8(dtype)) {
    fail("/attrs/dtype", "{}; expected f32, f16, bf16, i32, i64, i8 or u8", dtype_name(dtype));
  }
  const Dim start = bound_of(context.attrs.find("start")->second);
  const Dim end = bound_of(context.attrs.find("end")->second);
  const auto step = get_attr<std::int64_t>(context.attrs, "step");
  if (step == 0) fail("/attrs/step", "found 0; expected another number");
  const SymbolTable& symbols = context.graph.symbols();
  const std::optional<Dim> length =
      step > 0 ? divide_up(end - start, step, symbols) : divide_up(start - end, -step, symbols);
  if (!length) {
    fail("/attrs/step",
         "how many steps of {} lie between {} and {} is no affine expression; expected a symbol "
         "with a multiple_of that the step divides",
         step, start.str(), end.str());
  }
  if (length->min(symbols) < 0 || length->max(symbols) < 1) {
    fail("/attrs/end", "there can be {} numbers from {} to {} by {}; expected at least {}",
         length->min(symbols), start.str(), end.str(), step, length->min(symbols) < 0 ? 0 : 1);
  }
  return {{dtype, {*length}}};
}

/// The numbers are integers, which a float dtype rounds.
OpDef arange() {
  return {
      .name = "arange",
      .op_class = OpClass::kPointwise,
      .min_inputs = 0,
      .max_inputs = 0,
      .attrs = {{"start", AttrType::kExtent, std::int64_t{0}},
                {"end", AttrType::kExtent, {}, false, "The first number that is not in it."},
                {"step", AttrType::kInt, std::int64_t{1}},
                {"dtype", AttrType::kDType, DType::kI64}},
      .infer = infer_arange,
      .flops = flops_per_element(0),
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>&) {
              EvalTensor result = make_result(context, 0);
              const Attrs& attrs = context.node.attrs;
              const Int step{get_attr<std::int64_t>(attrs, "step")};
              Int number{bound_of(attrs.find("start")->second).evaluate(context.bindings)};
              for (std::size_t i = 0; i < result.size(); ++i, number = number + step) {
                set_element(result, i, number);
              }
              return std::vector<EvalTensor>{std::move(result)};
            });
          },
  };
}

std::vector<TensorType> infer_one_hot(const InferContext& context) {
  const TensorType& x = context.inputs[0];
  if (x.dtype != DType::kI64 && x.dtype != DType::kI32) {
    fail("/inputs/0", "the classes of one_hot are {}; expected i32 or i64", x.str());
  }
  const Dim classes = bound_of(context.attrs.find("num_classes")->second);
  if (classes.min(context.graph.symbols()) < 1) {
    fail("/attrs/num_classes", "found {}; expected at least 1: the values decide no shape",
         classes.str());
  }
  TensorType result{DType::kI64, x.shape};
  result.shape.push_back(classes);
  return {result};
}

/// Comparisons with an arange, which canonicalize writes.
OpDef one_hot() {
  return {
      .name = "one_hot",
      .op_class = OpClass::kOpaque,
      .min_inputs = 1,
      .max_inputs = 1,
      .attrs = {{"num_classes", AttrType::kExtent, {}}},
      .infer = infer_one_hot,
      .flops = flops_per_element(1),
      .evaluate =
          [](const EvalContext& context, const EvalTensors& inputs) {
            return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
              EvalTensor result = make_result(context, 0);
              const std::int64_t classes = result.shape.back();
              const std::vector<std::int64_t>& x = operands[0].integers;
              for (std::size_t i = 0; i < x.size(); ++i) {
                if (x[i] < 0 || x[i] >= classes) continue;
                result.integers[i * static_cast<std::size_t>(classes) +
                                static_cast<std::size_t>(x[i])] = 1;
              }
              return std::vector<EvalTensor>{std::move(result)};
            });
          },
  };
}

}  // namespace

void expect_held(DType dtype, const Attrs& attrs, const std::string& key) {
  const AttrValue& number = attrs.find(key)->second;
  if (can_hold(dtype, number)) return;
  fail("/attrs/" + key, "{} is no value of {}", json_attribute(number), dtype_name(dtype));
}

void add_constant_ops(std::vector<OpDef>& ops) {
  ops.push_back(full());
  ops.push_back(full_like("full_like", {}));
  ops.push_back(full_like("zeros_like", 0));
  ops.push_back(full_like("ones_like", 1));
  ops.push_back(arange());
  ops.push_back(one_hot());
}

}  // namespace braid
