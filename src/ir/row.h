#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/op_registry.h"
#include "ir/scalar.h"

namespace braid {

// The row ops (norms and reductions), one entry each: the registry's facts, and the arithmetic as a
// generic lambda of (row, attrs). It folds the row and returns a tuple with one function per
// result: a norm's takes a column, a reduction's takes nothing. The evaluator instantiates it with
// rows of double or Int, codegen with tile expressions:
//
//   row.sum(f), row.product(f), row.max(f), row.min(f)   folds f(at) over the columns
//   row.any(f), row.all(f)               whether f(at), a truth value, holds somewhere, everywhere
//   row.first_equal(f, value)            the first column where f(at) is `value`, or both are NaN
//   row.least_column(f)                  the first column n where f(n) holds, or the last one; a
//                                        truth value that goes on to hold behind it
//   row.least_float(f)                   the least x where f(x) holds, in the same way, from -inf
//                                        to inf; f changes at values of operand 0's dtype alone
//   row.of_row(i)                        the row's element of operand i, which has one for each
//   row.count(), row.operands()          of columns; of the node
//   at[i]                                element of operand i at the column
//   at.column()                          the column
//   at.rounded(x)                        x as the dtype of operand 0 holds it

/// Of the f32 from -inf to inf in order, from 0, the place of 0; and how many there are.
inline constexpr std::int64_t kInfinityBits = 0x7f800000;
inline constexpr std::int64_t kFloats = 2 * kInfinityBits + 1;

struct RowRow {
  std::string_view name;
  OpClass op_class;
  int min_inputs, max_inputs;
  Operands takes;
  double flops;  ///< per element of the operand
  std::vector<AttrDef> (*attrs)();
  std::vector<TensorType> (*infer)(const InferContext&);
};
template <class Arithmetic>
struct RowOp {
  RowRow row;
  Arithmetic arithmetic;
};
template <class Arithmetic>
constexpr RowOp<Arithmetic> row_op(RowRow row, Arithmetic arithmetic) {
  return {row, arithmetic};
}

/// For each dim of the operand whether a row op reduces it: the last one for a norm; `dim` for a
/// softmax; the dims in `dim` for a reduction, or all where that is empty. Throws at "/attrs/dim".
[[nodiscard]] std::vector<bool> row_dims(const OpDef& op, const Attrs& attrs, std::size_t rank);

// In ops_row.cpp.
std::vector<AttrDef> eps_attribute();
std::vector<AttrDef> softmax_attributes();
std::vector<AttrDef> reduce_attributes();
std::vector<TensorType> infer_softmax(const InferContext& context);
std::vector<TensorType> infer_log_softmax(const InferContext& context);
std::vector<TensorType> infer_layer_norm(const InferContext& context);
std::vector<TensorType> infer_rms_norm(const InferContext& context);
std::vector<TensorType> infer_add_rms_norm(const InferContext& context);
std::vector<TensorType> infer_add_rms_norm2(const InferContext& context);
std::vector<TensorType> infer_sum(const InferContext& context);
std::vector<TensorType> infer_prod(const InferContext& context);
std::vector<TensorType> infer_mean(const InferContext& context);
std::vector<TensorType> infer_amax(const InferContext& context);
std::vector<TensorType> infer_amin(const InferContext& context);
std::vector<TensorType> infer_argmax(const InferContext& context);
std::vector<TensorType> infer_argmin(const InferContext& context);
std::vector<TensorType> infer_any(const InferContext& context);
std::vector<TensorType> infer_all(const InferContext& context);
std::vector<TensorType> infer_sample(const InferContext& context);
inline std::vector<AttrDef> no_attributes() { return {}; }

/// 1 / sqrt(mean(f^2) + eps).
template <class Row, class Element>
auto inverse_deviation(Row& row, const Attrs& attrs, const Element& f) {
  const auto squares = row.sum([&](const auto& at) {
    const auto x = f(at);
    return x * x;
  });
  const auto eps = like(squares, std::get<double>(attrs.find("eps")->second));
  return rsqrt(squares / row.count() + eps);
}

/// x / sqrt(mean(x^2) + eps), times the operand `weight` if there is one.
template <class Row, class Element>
auto rms_norm(Row& row, const Attrs& attrs, std::size_t weight, const Element& x) {
  const auto scale = inverse_deviation(row, attrs, x);
  return [=, weighted = row.operands() > weight](const auto& at) {
    const auto y = x(at) * scale;
    return weighted ? y * at[weight] : y;
  };
}

/// The operand of add_rms_norm's norm: the sum, rounded first as after a separate add.
inline constexpr auto kRoundedSum = [](const auto& at) {
  const auto x = at[0];
  return at.rounded(x + at[1]);
};
inline constexpr auto kElement = [](const auto& at) { return at[0]; };
inline constexpr auto kTruth = [](const auto& at) { return truth(at[0]); };

/// The results of a reduction.
template <class T>
auto everywhere(T value) {
  return std::make_tuple([=](const auto&) { return value; });
}

/// A token for each row of logits: docs/numerics.md, Sampling.
inline constexpr auto kSample = [](auto& row, const Attrs&) {
  const auto largest = row.max(kElement);
  const auto one = like(largest, 1.0);
  const auto zero = like(largest, 0.0);
  const auto temperature = row.of_row(1);
  const auto scale = one / temperature;  // once for all the passes below
  const auto top_k = row.of_row(2);
  const auto top_p = row.of_row(3);
  const auto min_p = row.of_row(4);
  const auto weight = [=](const auto& at) {
    return select(equal(at[0], largest), one, exp((at[0] - largest) * scale));
  };
  const auto mass = row.sum(weight) * top_p;
  const auto no_k = less(top_k, one);
  const auto no_p = equal(less(top_p, one), like(no_k, 0.0));
  // What is above a kept element is fewer than k, and weighs less than p of all.
  const auto least = row.least_float([&](const auto& x) {
    const auto is_above = [=](const auto& at) { return less(x, at[0]); };
    const auto count = row.sum([=](const auto& at) { return select(is_above(at), one, zero); });
    const auto above =
        row.sum([=](const auto& at) { return select(is_above(at), weight(at), zero); });
    return maximum(no_k, less(count, top_k)) * maximum(no_p, less(above, mass));
  });
  const auto kept = [=](const auto& at) {
    const auto is_out = maximum(less(at[0], least), less(weight(at), min_p));
    return select(is_out, select(equal(at[0], largest), one, zero), weight(at));
  };
  const auto sum = row.sum(kept);
  const auto wanted = row.of_row(5) * sum;
  const auto drawn = row.least_column([&](const auto& n) {
    const auto so_far =
        row.sum([=](const auto& at) { return select(less(n, at.column()), zero, kept(at)); });
    return maximum(less(wanted, so_far), equal(so_far, sum));
  });
  const auto first = row.first_equal(kElement, largest);
  const auto is_number = equal(largest, largest);
  return everywhere(select(is_number - equal(temperature, zero) * is_number, drawn, first));
};

inline constexpr auto kRowOps = std::make_tuple(
    row_op(
        {"softmax", OpClass::kNorm, 1, 1, Operands::kFloat, 5, softmax_attributes, infer_softmax},
        [](auto& row, const Attrs&) {
          const auto largest = row.max(kElement);
          const auto power = [=](const auto& at) { return exp(at[0] - largest); };
          const auto sum = row.sum(power);
          return std::make_tuple([=](const auto& at) { return power(at) / sum; });
        }),
    row_op({"log_softmax", OpClass::kNorm, 1, 1, Operands::kFloat, 5, softmax_attributes,
            infer_log_softmax},
           [](auto& row, const Attrs&) {
             const auto largest = row.max(kElement);
             const auto distance = [=](const auto& at) { return at[0] - largest; };
             const auto sum = row.sum([=](const auto& at) { return exp(distance(at)); });
             const auto scale = log(sum);
             return std::make_tuple([=](const auto& at) { return distance(at) - scale; });
           }),
    row_op(
        {"layer_norm", OpClass::kNorm, 1, 3, Operands::kFloat, 5, eps_attribute, infer_layer_norm},
        [](auto& row, const Attrs& attrs) {
          const auto sum = row.sum(kElement);
          const auto mean = sum / row.count();
          const auto centered = [=](const auto& at) { return at[0] - mean; };
          const auto scale = inverse_deviation(row, attrs, centered);
          return std::make_tuple([=, count = row.operands()](const auto& at) {
            auto y = centered(at) * scale;
            if (count > 1) y = y * at[1];
            if (count > 2) y = y + at[2];
            return y;
          });
        }),
    row_op({"rms_norm", OpClass::kNorm, 1, 2, Operands::kFloat, 4, eps_attribute, infer_rms_norm},
           [](auto& row, const Attrs& attrs) {
             return std::make_tuple(rms_norm(row, attrs, 1, kElement));
           }),
    row_op({"add_rms_norm", OpClass::kNorm, 3, 3, Operands::kFloat, 5, eps_attribute,
            infer_add_rms_norm},
           [](auto& row, const Attrs& attrs) {
             return std::make_tuple(rms_norm(row, attrs, 2, kRoundedSum));
           }),
    row_op({"add_rms_norm2", OpClass::kNorm, 3, 3, Operands::kFloat, 5, eps_attribute,
            infer_add_rms_norm2},
           [](auto& row, const Attrs& attrs) {
             return std::make_tuple(rms_norm(row, attrs, 2, kRoundedSum), kRoundedSum);
           }),
    row_op({"sum", OpClass::kReduction, 1, 1, Operands::kAny, 1, reduce_attributes, infer_sum},
           [](auto& row, const Attrs&) { return everywhere(row.sum(kElement)); }),
    row_op({"prod", OpClass::kReduction, 1, 1, Operands::kAny, 1, reduce_attributes, infer_prod},
           [](auto& row, const Attrs&) { return everywhere(row.product(kElement)); }),
    row_op({"mean", OpClass::kReduction, 1, 1, Operands::kFloat, 1, reduce_attributes, infer_mean},
           [](auto& row, const Attrs&) {
             const auto sum = row.sum(kElement);
             return everywhere(sum / row.count());
           }),
    row_op({"amax", OpClass::kReduction, 1, 1, Operands::kNumber, 1, reduce_attributes, infer_amax},
           [](auto& row, const Attrs&) { return everywhere(row.max(kElement)); }),
    row_op({"amin", OpClass::kReduction, 1, 1, Operands::kNumber, 1, reduce_attributes, infer_amin},
           [](auto& row, const Attrs&) { return everywhere(row.min(kElement)); }),
    row_op({"any", OpClass::kReduction, 1, 1, Operands::kAny, 1, reduce_attributes, infer_any},
           [](auto& row, const Attrs&) { return everywhere(row.any(kTruth)); }),
    row_op({"all", OpClass::kReduction, 1, 1, Operands::kAny, 1, reduce_attributes, infer_all},
           [](auto& row, const Attrs&) { return everywhere(row.all(kTruth)); }),
    // The first of equal extremes; NaN is the largest, and the least.
    row_op({"argmax", OpClass::kReduction, 1, 1, Operands::kNumber, 1, reduce_attributes,
            infer_argmax},
           [](auto& row, const Attrs&) {
             return everywhere(row.first_equal(kElement, row.max(kElement)));
           }),
    row_op({"argmin", OpClass::kReduction, 1, 1, Operands::kNumber, 1, reduce_attributes,
            infer_argmin},
           [](auto& row, const Attrs&) {
             return everywhere(row.first_equal(kElement, row.min(kElement)));
           }),
    row_op(
        {"sample", OpClass::kReduction, 6, 6, Operands::kFloat, 500, no_attributes, infer_sample},
        kSample));

inline constexpr std::size_t kRowCount = std::tuple_size_v<decltype(kRowOps)>;

/// Calls visit(arithmetic) for the op with that index (OpDef::entry).
template <class Visit, std::size_t... I>
void visit_row_op(const OpDef& op, const Visit& visit, std::index_sequence<I...>) {
  ((static_cast<std::size_t>(op.entry) == I ? visit(std::get<I>(kRowOps).arithmetic) : void()),
   ...);
}
template <class Visit>
void visit_row_op(const OpDef& op, const Visit& visit) {
  visit_row_op(op, visit, std::make_index_sequence<kRowCount>());
}

}  // namespace braid
