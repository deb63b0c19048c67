#include <fmt/format.h>

#include <bit>
#include <limits>

#include "ir/ops.h"
#include "ir/row.h"
#include "ir/views.h"

namespace braid {
namespace {

void check_norm(std::string_view op, std::span<const TensorType> inputs, const TensorType* weight,
                std::size_t weight_index) {
  expect_float(op, inputs);
  expect_same_dtype(op, inputs);
  const TensorType& x = inputs[0];
  if (x.shape.empty()) {
    fail("/inputs/0", "the operand of {} is {}; expected at least one dim", op, x.str());
  }
  if (weight != nullptr && weight->shape != Shape{x.shape.back()}) {
    fail(fmt::format("/inputs/{}", weight_index), "the weight of {} is {}; expected {}", op,
         weight->str(), TensorType{x.dtype, {x.shape.back()}}.str());
  }
}

/// add_rms_norm2 has two results, the norm and the sum; add_rms_norm only the norm.
std::vector<TensorType> infer_add_norm(const char* name, std::size_t results,
                                       const InferContext& context) {
  check_norm(name, context.inputs, &context.inputs[2], 2);
  if (context.inputs[1] != context.inputs[0]) {
    fail("/inputs/1", "the residual of {} is {}; expected {}", name, context.inputs[1].str(),
         context.inputs[0].str());
  }
  return std::vector<TensorType>(results, context.inputs[0]);
}

std::vector<bool> reduced_dims(const Attrs& attrs, std::size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (std::size_t axis : reduced_axes(attrs, rank)) reduced[axis] = true;
  return reduced;
}

std::vector<TensorType> infer_reduce(std::string_view op, Operands takes,
                                     const InferContext& context) {
  if (takes == Operands::kFloat) expect_float(op, context.inputs);
  const TensorType& input = context.inputs[0];
  if ((input.dtype == DType::kBool && takes != Operands::kAny) || is_float8(input.dtype)) {
    fail("/inputs/0", "the operand of {} is {}; expected a number: insert `to`", op, input.str());
  }
  const std::vector<bool> reduced = reduced_dims(context.attrs, input.shape.size());
  // PyTorch refuses only an empty row that it meets.
  const bool needs_one = op == "amax" || op == "amin" || op == "argmax" || op == "argmin";
  for (std::size_t d = 0; needs_one && d < reduced.size(); ++d) {
    if (!reduced[d] || input.shape[d].min(context.graph.symbols()) > 0) continue;
    fail("/inputs/0", "{} over dim {} of {}, which can be empty; expected at least one element", op,
         d, input.str());
  }
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

/// The layout of rows: element `column` of row `r` is at rows[r] + columns[column]. Operands of
/// another shape than the first are per-column weights.
struct Places {
  std::vector<std::size_t> rows{0};
  std::vector<std::size_t> columns{0};
  std::vector<bool> is_weight;  ///< per operand
};
Places places_of(const std::vector<EvalTensor>& operands, const std::vector<bool>& in_row) {
  const std::vector<std::int64_t>& shape = operands[0].shape;
  Places places;
  for (const EvalTensor& operand : operands) places.is_weight.push_back(operand.shape != shape);
  std::size_t stride = 1;
  // From the last dim to the first: repeat the places of the inner dims once per index.
  for (std::size_t d = shape.size(); d-- > 0;) {
    std::vector<std::size_t>& list = in_row[d] ? places.columns : places.rows;
    const std::vector<std::size_t> inner = std::exchange(list, {});
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape[d]); ++i) {
      for (std::size_t place : inner) list.push_back(place + i * stride);
    }
    stride *= static_cast<std::size_t>(shape[d]);
  }
  return places;
}

/// A row of operands, with the interface of row.h.
template <class T>
class EvalRow {
 public:
  EvalRow(const std::vector<EvalTensor>& operands, const Places& places, std::size_t row)
      : operands_(operands), places_(places), row_(row), start_(places.rows[row]) {}

  struct At {
    const EvalRow& row;
    std::size_t index;
    T operator[](std::size_t operand) const { return row.element(operand, index); }
    [[nodiscard]] T column() const { return number(index); }
    [[nodiscard]] T rounded(T x) const { return round_to(row.operands_[0].dtype, x); }
  };

  [[nodiscard]] std::size_t operands() const { return operands_.size(); }
  [[nodiscard]] T count() const { return static_cast<T>(places_.columns.size()); }
  template <class Element>
  [[nodiscard]] T sum(const Element& f) const {
    return fold(T{0}, f, [](T a, T b) { return a + b; });
  }
  template <class Element>
  [[nodiscard]] T product(const Element& f) const {
    return fold(T{1}, f, [](T a, T b) { return a * b; });
  }
  template <class Element>
  [[nodiscard]] T max(const Element& f) const {
    return fold(lowest(), f, [](T a, T b) { return maximum(a, b); });
  }
  template <class Element>
  [[nodiscard]] T min(const Element& f) const {
    return fold(highest(), f, [](T a, T b) { return minimum(a, b); });
  }
  template <class Element>
  [[nodiscard]] T any(const Element& f) const {
    return fold(T{0}, f, [](T a, T b) { return maximum(a, b); });
  }
  template <class Element>
  [[nodiscard]] T all(const Element& f) const {
    return fold(T{1}, f, [](T a, T b) { return minimum(a, b); });
  }
  template <class Element>
  [[nodiscard]] T first_equal(const Element& f, T value) const {
    std::size_t column = 0;
    while (column < places_.columns.size() && !same(f(At{*this, column}), value)) ++column;
    return number(column);
  }
  template <class Holds>
  [[nodiscard]] T least_column(const Holds& f) const {
    return number(least(places_.columns.size(), [&](std::size_t n) { return f(number(n)); }));
  }
  template <class Holds>
  [[nodiscard]] T least_float(const Holds& f) const {
    return float_at(least(kFloats, [&](std::size_t n) { return f(float_at(n)); }));
  }
  [[nodiscard]] T of_row(std::size_t operand) const {
    const EvalTensor& x = operands_[operand];
    return is_float(x.dtype) ? T(x.data[row_]) : T(static_cast<double>(x.integers[row_]));
  }

 private:
  /// The first of `count` numbers for which it holds, or the last.
  template <class Holds>
  static std::size_t least(std::size_t count, const Holds& f) {
    std::size_t low = 0;
    std::size_t high = count - 1;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (f(middle) != 0) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  static T float_at(std::size_t n) {
    const auto distance = static_cast<std::int64_t>(n) - kInfinityBits;
    const auto bits = static_cast<std::uint32_t>(distance < 0 ? -distance : distance);
    const auto size = static_cast<T>(std::bit_cast<float>(bits));
    return distance < 0 ? -size : size;
  }

  static bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
  static bool same(Int a, Int b) { return a.value == b.value; }
  static T number(std::size_t n) {
    if constexpr (std::is_same_v<T, Int>) {
      return {static_cast<std::int64_t>(n)};
    } else {
      return static_cast<T>(n);
    }
  }
  static T lowest() {
    if constexpr (std::is_same_v<T, Int>) {
      return {std::numeric_limits<std::int64_t>::min()};
    } else {
      return -std::numeric_limits<T>::infinity();
    }
  }
  static T highest() {
    if constexpr (std::is_same_v<T, Int>) {
      return {std::numeric_limits<std::int64_t>::max()};
    } else {
      return std::numeric_limits<T>::infinity();
    }
  }
  template <class Element, class Combine>
  [[nodiscard]] T fold(T value, const Element& f, const Combine& combine) const {
    for (std::size_t c = 0; c < places_.columns.size(); ++c) {
      value = combine(value, f(At{*this, c}));
    }
    return value;
  }
  [[nodiscard]] T element(std::size_t operand, std::size_t column) const {
    const EvalTensor& x = operands_[operand];
    const std::size_t place =
        places_.is_weight[operand] ? column : start_ + places_.columns[column];
    if constexpr (std::is_same_v<T, Int>) {
      return {x.integers[place]};
    } else {
      return x.data[place];
    }
  }

  const std::vector<EvalTensor>& operands_;
  const Places& places_;
  std::size_t row_, start_;
};

template <class T, class Arithmetic>
std::vector<EvalTensor> evaluate_rows(const Arithmetic& arithmetic, const EvalContext& context,
                                      const std::vector<EvalTensor>& operands) {
  const OpDef& op = *context.node.op;
  const Attrs& attrs = context.node.attrs;
  std::vector<EvalTensor> results;
  for (std::size_t i = 0; i < context.node.outputs.size(); ++i) {
    results.push_back(make_result(context, i));
  }
  const Places places = places_of(operands, row_dims(op, attrs, operands[0].shape.size()));
  for (std::size_t r = 0; r < places.rows.size(); ++r) {
    EvalRow<T> row(operands, places, r);
    const auto write = [&](EvalTensor& result, const auto& function) {
      if (op.op_class == OpClass::kReduction) {
        set_element(result, r, function(typename EvalRow<T>::At{row, 0}));
        return;
      }
      for (std::size_t c = 0; c < places.columns.size(); ++c) {
        set_element(result, places.rows[r] + places.columns[c],
                    function(typename EvalRow<T>::At{row, c}));
      }
    };
    std::size_t result = 0;
    std::apply([&](const auto&... functions) { (write(results[result++], functions), ...); },
               arithmetic(row, attrs));
  }
  return results;
}

template <std::size_t I>
EvalTensors evaluate_row_op(const EvalContext& context, const EvalTensors& inputs) {
  constexpr const auto& kOp = std::get<I>(kRowOps);
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    if constexpr (kOp.row.takes != Operands::kFloat) {
      if (!is_float(operands[0].dtype)) {
        return evaluate_rows<Int>(kOp.arithmetic, context, operands);
      }
    }
    return evaluate_rows<double>(kOp.arithmetic, context, operands);
  });
}

template <std::size_t I>
OpDef definition() {
  static constexpr RowRow kRow = std::get<I>(kRowOps).row;
  return {
      .name = std::string(kRow.name),
      .op_class = kRow.op_class,
      .min_inputs = kRow.min_inputs,
      .max_inputs = kRow.max_inputs,
      .attrs = kRow.attrs(),
      .infer = kRow.infer,
      .flops = [](std::span<const TensorType> inputs, std::span<const TensorType>,
                  const Bindings& bindings) { return kRow.flops * numel_at(inputs[0], bindings); },
      .evaluate = evaluate_row_op<I>,
      .entry = static_cast<int>(I),
  };
}

}  // namespace

std::vector<bool> row_dims(const OpDef& op, const Attrs& attrs, std::size_t rank) {
  if (op.op_class == OpClass::kReduction && attrs.contains("dim")) return reduced_dims(attrs, rank);
  std::vector<bool> in_row(rank, false);
  in_row[attrs.contains("dim") ? axis_of(attrs, "dim", rank) : rank - 1] = true;
  return in_row;
}

std::vector<AttrDef> eps_attribute() { return {{"eps", AttrType::kDouble, {}}}; }
std::vector<AttrDef> softmax_attributes() { return {{"dim", AttrType::kInt, std::int64_t{-1}}}; }
std::vector<AttrDef> reduce_attributes() {
  return {
      {"dim", AttrType::kInts, std::vector<std::int64_t>{}, false, "An empty list is all of them."},
      {"keepdim", AttrType::kBool, false}};
}

namespace {

std::vector<TensorType> infer_softmax_of(std::string_view op, const InferContext& context) {
  check_norm(op, context.inputs, nullptr, 0);
  static_cast<void>(axis_of(context.attrs, "dim", context.inputs[0].shape.size()));
  return {context.inputs[0]};
}

}  // namespace

std::vector<TensorType> infer_softmax(const InferContext& context) {
  return infer_softmax_of("softmax", context);
}
std::vector<TensorType> infer_log_softmax(const InferContext& context) {
  return infer_softmax_of("log_softmax", context);
}

std::vector<TensorType> infer_layer_norm(const InferContext& context) {
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    check_norm("layer_norm", context.inputs, &context.inputs[i], i);
  }
  check_norm("layer_norm", context.inputs, nullptr, 0);
  return {context.inputs[0]};
}

std::vector<TensorType> infer_rms_norm(const InferContext& context) {
  check_norm("rms_norm", context.inputs, context.inputs.size() > 1 ? &context.inputs[1] : nullptr,
             1);
  return {context.inputs[0]};
}
std::vector<TensorType> infer_add_rms_norm(const InferContext& context) {
  return infer_add_norm("add_rms_norm", 1, context);
}
std::vector<TensorType> infer_add_rms_norm2(const InferContext& context) {
  return infer_add_norm("add_rms_norm2", 2, context);
}

/// Integers and bools are summed and multiplied as i64.
std::vector<TensorType> infer_whole(std::string_view op, const InferContext& context) {
  std::vector<TensorType> result = infer_reduce(op, Operands::kAny, context);
  if (!is_float(result[0].dtype)) result[0].dtype = DType::kI64;
  return result;
}
std::vector<TensorType> infer_sum(const InferContext& c) { return infer_whole("sum", c); }
std::vector<TensorType> infer_prod(const InferContext& c) { return infer_whole("prod", c); }
std::vector<TensorType> infer_mean(const InferContext& c) {
  return infer_reduce("mean", Operands::kFloat, c);
}
std::vector<TensorType> infer_amax(const InferContext& c) {
  return infer_reduce("amax", Operands::kNumber, c);
}
std::vector<TensorType> infer_amin(const InferContext& c) {
  return infer_reduce("amin", Operands::kNumber, c);
}
namespace {

std::vector<TensorType> infer_index(std::string_view op, const InferContext& context) {
  std::vector<TensorType> result = infer_reduce(op, Operands::kNumber, context);
  result[0].dtype = DType::kI64;
  if (get_attr<std::vector<std::int64_t>>(context.attrs, "dim").size() > 1) {
    fail("/attrs/dim", "{} over several dims; expected one, or none for all", op);
  }
  return result;
}

/// As in ATen, u8 stays u8.
std::vector<TensorType> infer_truth(std::string_view op, const InferContext& context) {
  std::vector<TensorType> result = infer_reduce(op, Operands::kAny, context);
  if (result[0].dtype != DType::kU8) result[0].dtype = DType::kBool;
  return result;
}

}  // namespace

/// The tensors beside the logits have an element for each of their rows.
std::vector<TensorType> infer_sample(const InferContext& context) {
  check_norm("sample", context.inputs.first(1), nullptr, 0);
  if (context.inputs[0].shape.back().min(context.graph.symbols()) < 1) {
    fail("/inputs/0", "the logits of sample are {}; expected at least one in each row",
         context.inputs[0].str());
  }
  Shape rows = context.inputs[0].shape;
  rows.pop_back();
  constexpr std::string_view kNames[] = {"temperature", "top_k", "top_p", "min_p", "random"};
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    const TensorType expected{i == 2 ? DType::kI32 : DType::kF32, rows};
    if (context.inputs[i] == expected) continue;
    fail(fmt::format("/inputs/{}", i), "the {} of sample is {}; expected {}", kNames[i - 1],
         context.inputs[i].str(), expected.str());
  }
  return {{DType::kI64, rows}};
}

std::vector<TensorType> infer_argmax(const InferContext& c) { return infer_index("argmax", c); }
std::vector<TensorType> infer_argmin(const InferContext& c) { return infer_index("argmin", c); }
std::vector<TensorType> infer_any(const InferContext& c) { return infer_truth("any", c); }
std::vector<TensorType> infer_all(const InferContext& c) { return infer_truth("all", c); }

void add_row_ops(std::vector<OpDef>& ops) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (ops.push_back(definition<I>()), ...); }
  (std::make_index_sequence<kRowCount>());
}

}  // namespace braid
