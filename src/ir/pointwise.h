#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/op_registry.h"
#include "ir/scalar.h"

namespace braid {

// The pointwise ops, one entry each: the registry's facts, and the arithmetic of one element before
// rounding to the declared dtype, as a generic lambda of (x, attrs) where x[0], x[1], ... are the
// operands' elements.

struct PointwiseRow {
  std::string_view name;
  int operands;
  Operands takes;
  double flops;  ///< per element
  bool gives_bool = false;
  std::vector<AttrDef> (*attrs)() = nullptr;
  void (*check)(const InferContext&) = nullptr;  ///< checks the attributes
  /// The result type, where it is not the operands' dtype and broadcast shape.
  std::vector<TensorType> (*infer)(const InferContext&) = nullptr;
  OpClass op_class = OpClass::kPointwise;
  Promotes promotes = Promotes::kResultType;  ///< unary ops: no effect
};
template <class Arithmetic>
struct PointwiseOp {
  PointwiseRow row;
  Arithmetic arithmetic;
};
template <class Arithmetic>
constexpr PointwiseOp<Arithmetic> pointwise_op(PointwiseRow row, Arithmetic arithmetic) {
  return {row, arithmetic};
}

/// A function of floats; integers are converted as in ATen.
constexpr PointwiseRow float_function(std::string_view name, double flops) {
  return {.name = name,
          .operands = 1,
          .takes = Operands::kFloat,
          .flops = flops,
          .promotes = Promotes::kFloats};
}

/// A function of two truth values; operands of several dtypes become bool.
constexpr PointwiseRow truth_function(std::string_view name) {
  return {.name = name,
          .operands = 2,
          .takes = Operands::kAny,
          .flops = 1,
          .gives_bool = true,
          .promotes = Promotes::kTruths};
}

// In ops_pointwise.cpp.
std::vector<AttrDef> gelu_attributes();
std::vector<AttrDef> div_attributes();
void check_div(const InferContext& context);
void check_clamp(const InferContext& context);
std::vector<TensorType> infer_where(const InferContext& context);
std::vector<TensorType> infer_masked_fill(const InferContext& context);
std::vector<TensorType> infer_cast(const InferContext& context);
std::vector<TensorType> infer_same(const InferContext& context);

/// torch's gelu with approximate = "tanh": x / 2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3),
/// computed as x sigmoid(2u), which stays accurate where 1 + tanh u cancels.
template <class T>
T gelu_tanh(T x) {
  const T twice = x * like(x, 1.5957691216057308) * (like(x, 1.0) + x * x * like(x, 0.044715));
  return x / (like(x, 1.0) + exp(-twice));
}
/// 1 + erf(a) is computed as erfc(-a), which does not cancel.
template <class T>
T gelu_erf(T x) {
  return x * like(x, 0.5) * erfc(-x * like(x, 0.70710678118654752));
}

/// Uses a comparison, so that NaN and -0 are kept.
template <class T>
T clamped(T x, const Attrs& attrs) {
  if (const auto low = attrs.find("min"); low != attrs.end()) {
    const T bound = number_like(x, low->second);
    x = select(less(x, bound), bound, x);
  }
  if (const auto high = attrs.find("max"); high != attrs.end()) {
    const T bound = number_like(x, high->second);
    x = select(less(bound, x), bound, x);
  }
  return x;
}

/// The rounding of `div` and `floor_divide`.
inline Quotient quotient_of(const Attrs& attrs) {
  const auto mode = attrs.find("rounding_mode");
  const bool truncates = mode != attrs.end() && std::get<std::string>(mode->second) == "trunc";
  return truncates ? Quotient::kTruncated : Quotient::kFloor;
}

inline constexpr PointwiseRow kDivRow = {.name = "div",
                                         .operands = 2,
                                         .takes = Operands::kNumber,
                                         .flops = 1,
                                         .attrs = div_attributes,
                                         .check = check_div,
                                         .promotes = Promotes::kFloats};
inline constexpr PointwiseRow kWhereRow = {.name = "where",
                                           .operands = 3,
                                           .takes = Operands::kAny,
                                           .flops = 1,
                                           .infer = infer_where,
                                           .promotes = Promotes::kBranches};

inline constexpr PointwiseRow kMaskedFillRow = {.name = "masked_fill",
                                                .operands = 3,
                                                .takes = Operands::kAny,
                                                .flops = 1,
                                                .infer = infer_masked_fill,
                                                .promotes = Promotes::kMasked};

/// Whether x is a number, and whether it is a finite one: x - x is NaN where it is not.
template <class T>
T is_number(T x) {
  return equal(x, x);
}
template <class T>
T is_finite(T x) {
  return is_number(x - x);
}

inline constexpr auto kPointwiseOps = std::make_tuple(
    pointwise_op({"add", 2, Operands::kNumber, 1},
                 [](auto x, const Attrs&) { return x[0] + x[1]; }),
    pointwise_op({"sub", 2, Operands::kNumber, 1},
                 [](auto x, const Attrs&) { return x[0] - x[1]; }),
    pointwise_op({"mul", 2, Operands::kNumber, 1},
                 [](auto x, const Attrs&) { return x[0] * x[1]; }),
    pointwise_op(
        kDivRow,
        [](auto x, const Attrs& attrs) { return divided(x[0], x[1], quotient_of(attrs)); }),
    pointwise_op(
        {"floor_divide", 2, Operands::kInteger, 1},
        [](auto x, const Attrs& attrs) { return divided(x[0], x[1], quotient_of(attrs)); }),
    // What the two quotients leave.
    pointwise_op(
        {"remainder", 2, Operands::kInteger, 2},
        [](auto x, const Attrs&) { return x[0] - divided(x[0], x[1], Quotient::kFloor) * x[1]; }),
    pointwise_op({"fmod", 2, Operands::kInteger, 2},
                 [](auto x, const Attrs&) {
                   return x[0] - divided(x[0], x[1], Quotient::kTruncated) * x[1];
                 }),
    pointwise_op({"bitwise_and", 2, Operands::kBits, 1},
                 [](auto x, const Attrs&) { return x[0] & x[1]; }),
    pointwise_op({"bitwise_or", 2, Operands::kBits, 1},
                 [](auto x, const Attrs&) { return x[0] | x[1]; }),
    pointwise_op({"bitwise_xor", 2, Operands::kBits, 1},
                 [](auto x, const Attrs&) { return x[0] ^ x[1]; }),
    pointwise_op({"bitwise_left_shift", 2, Operands::kInteger, 1},
                 [](auto x, const Attrs&) { return x[0] << x[1]; }),
    pointwise_op({"bitwise_right_shift", 2, Operands::kInteger, 1},
                 [](auto x, const Attrs&) { return x[0] >> x[1]; }),
    pointwise_op({"pow", 2, Operands::kFloat, 8},
                 [](auto x, const Attrs&) { return pow(x[0], x[1]); }),
    pointwise_op({"hypot", 2, Operands::kFloat, 6},
                 [](auto x, const Attrs&) { return hypot(x[0], x[1]); }),
    pointwise_op({.name = "copysign",
                  .operands = 2,
                  .takes = Operands::kFloat,
                  .flops = 1,
                  .promotes = Promotes::kFloats},
                 [](auto x, const Attrs&) { return copysign(x[0], x[1]); }),
    pointwise_op({"logaddexp", 2, Operands::kFloat, 12},
                 [](auto x, const Attrs&) {
                   const auto most = maximum(x[0], x[1]);
                   const auto sum = most + log1p(exp(-abs(x[0] - x[1])));
                   // The difference of equal infinities is NaN.
                   const auto infinity = like(most, std::numeric_limits<double>::infinity());
                   return select(equal(abs(most), infinity), most, sum);
                 }),
    pointwise_op({"maximum", 2, Operands::kNumber, 1},
                 [](auto x, const Attrs&) { return maximum(x[0], x[1]); }),
    pointwise_op({"minimum", 2, Operands::kNumber, 1},
                 [](auto x, const Attrs&) { return minimum(x[0], x[1]); }),
    pointwise_op({"neg", 1, Operands::kNumber, 1}, [](auto x, const Attrs&) { return -x[0]; }),
    pointwise_op({"abs", 1, Operands::kNumber, 1}, [](auto x, const Attrs&) { return abs(x[0]); }),
    pointwise_op({"sign", 1, Operands::kNumber, 2},
                 [](auto x, const Attrs&) {
                   const auto zero = like(x[0], 0.0);
                   return less(zero, x[0]) - less(x[0], zero);
                 }),
    pointwise_op(float_function("exp", 1), [](auto x, const Attrs&) { return exp(x[0]); }),
    pointwise_op(float_function("expm1", 8), [](auto x, const Attrs&) { return expm1(x[0]); }),
    pointwise_op(float_function("cos", 8), [](auto x, const Attrs&) { return cos(x[0]); }),
    pointwise_op(float_function("sin", 8), [](auto x, const Attrs&) { return sin(x[0]); }),
    pointwise_op(float_function("tan", 10), [](auto x, const Attrs&) { return tan(x[0]); }),
    pointwise_op(float_function("acos", 12), [](auto x, const Attrs&) { return acos(x[0]); }),
    pointwise_op(float_function("asin", 12), [](auto x, const Attrs&) { return asin(x[0]); }),
    pointwise_op(float_function("atan", 12), [](auto x, const Attrs&) { return atan(x[0]); }),
    pointwise_op({.name = "atan2",
                  .operands = 2,
                  .takes = Operands::kFloat,
                  .flops = 14,
                  .promotes = Promotes::kFloats},
                 [](auto x, const Attrs&) { return atan2(x[0], x[1]); }),
    pointwise_op(float_function("cosh", 8), [](auto x, const Attrs&) { return cosh(x[0]); }),
    pointwise_op(float_function("sinh", 8), [](auto x, const Attrs&) { return sinh(x[0]); }),
    pointwise_op(float_function("acosh", 10), [](auto x, const Attrs&) { return acosh(x[0]); }),
    pointwise_op(float_function("asinh", 10), [](auto x, const Attrs&) { return asinh(x[0]); }),
    pointwise_op(float_function("atanh", 10), [](auto x, const Attrs&) { return atanh(x[0]); }),
    pointwise_op(float_function("log", 1), [](auto x, const Attrs&) { return log(x[0]); }),
    pointwise_op(float_function("log1p", 8), [](auto x, const Attrs&) { return log1p(x[0]); }),
    pointwise_op(float_function("sqrt", 1), [](auto x, const Attrs&) { return sqrt(x[0]); }),
    pointwise_op(float_function("rsqrt", 1), [](auto x, const Attrs&) { return rsqrt(x[0]); }),
    pointwise_op(float_function("tanh", 4), [](auto x, const Attrs&) { return tanh(x[0]); }),
    pointwise_op(float_function("erf", 8), [](auto x, const Attrs&) { return erf(x[0]); }),
    pointwise_op(float_function("erfc", 10), [](auto x, const Attrs&) { return erfc(x[0]); }),
    pointwise_op({"floor", 1, Operands::kFloat, 1},
                 [](auto x, const Attrs&) { return floor(x[0]); }),
    pointwise_op({"round", 1, Operands::kFloat, 1},
                 [](auto x, const Attrs&) { return rint(x[0]); }),
    pointwise_op({"relu", 1, Operands::kNumber, 1},
                 [](auto x, const Attrs&) {  // uses a comparison: NaN and -0 are kept
                   const auto zero = like(x[0], 0.0);
                   return select(less(x[0], zero), zero, x[0]);
                 }),
    pointwise_op(
        float_function("sigmoid", 3),
        [](auto x, const Attrs&) { return like(x[0], 1.0) / (like(x[0], 1.0) + exp(-x[0])); }),
    pointwise_op({"silu", 1, Operands::kFloat, 4},
                 [](auto x, const Attrs&) { return x[0] / (like(x[0], 1.0) + exp(-x[0])); }),
    pointwise_op({.name = "gelu",
                  .operands = 1,
                  .takes = Operands::kFloat,
                  .flops = 8,
                  .attrs = gelu_attributes},
                 [](auto x, const Attrs& attrs) {
                   const auto& form = std::get<std::string>(attrs.find("approximate")->second);
                   return form == "tanh" ? gelu_tanh(x[0]) : gelu_erf(x[0]);
                 }),
    pointwise_op({.name = "softplus",
                  .operands = 1,
                  .takes = Operands::kFloat,
                  .flops = 8,
                  .attrs =
                      [] {
                        return std::vector<AttrDef>{
                            {"beta", AttrType::kDouble, 1.0},
                            {"threshold", AttrType::kDouble, 20.0, false,
                             "Where beta times the element is above it, the element itself."}};
                      }},
                 [](auto x, const Attrs& attrs) {
                   const auto beta = like(x[0], std::get<double>(attrs.find("beta")->second));
                   const auto threshold =
                       like(x[0], std::get<double>(attrs.find("threshold")->second));
                   const auto scaled = x[0] * beta;
                   const auto smooth = log1p(exp(scaled)) / beta;
                   return select(less(threshold, scaled), x[0], smooth);
                 }),
    pointwise_op({.name = "clamp",
                  .operands = 1,
                  .takes = Operands::kNumber,
                  .flops = 2,
                  .attrs =
                      [] {
                        return std::vector<AttrDef>{{"min", AttrType::kNumber, {}, true},
                                                    {"max", AttrType::kNumber, {}, true}};
                      },
                  .check = check_clamp},
                 [](auto x, const Attrs& attrs) { return clamped(x[0], attrs); }),
    pointwise_op(kWhereRow, [](auto x, const Attrs&) { return select(x[0], x[1], x[2]); }),
    pointwise_op(kMaskedFillRow, [](auto x, const Attrs&) { return select(x[1], x[2], x[0]); }),
    pointwise_op({"eq", 2, Operands::kAny, 1, true},
                 [](auto x, const Attrs&) { return equal(x[0], x[1]); }),
    pointwise_op(
        {"ne", 2, Operands::kAny, 1, true},
        [](auto x, const Attrs&) { return like(equal(x[0], x[1]), 1.0) - equal(x[0], x[1]); }),
    pointwise_op({"lt", 2, Operands::kNumber, 1, true},
                 [](auto x, const Attrs&) { return less(x[0], x[1]); }),
    // Not a negation: comparisons with NaN are false.
    pointwise_op({"le", 2, Operands::kNumber, 1, true},
                 [](auto x, const Attrs&) { return maximum(less(x[0], x[1]), equal(x[0], x[1])); }),
    pointwise_op({"gt", 2, Operands::kNumber, 1, true},
                 [](auto x, const Attrs&) { return less(x[1], x[0]); }),
    pointwise_op({"ge", 2, Operands::kNumber, 1, true},
                 [](auto x, const Attrs&) { return maximum(less(x[1], x[0]), equal(x[0], x[1])); }),
    pointwise_op(truth_function("logical_and"),
                 [](auto x, const Attrs&) { return truth(x[0]) * truth(x[1]); }),
    pointwise_op(truth_function("logical_or"),
                 [](auto x, const Attrs&) { return maximum(truth(x[0]), truth(x[1])); }),
    pointwise_op(truth_function("logical_xor"),
                 [](auto x, const Attrs&) { return abs(truth(x[0]) - truth(x[1])); }),
    pointwise_op({"isnan", 1, Operands::kAny, 1, true},
                 [](auto x, const Attrs&) { return like(is_number(x[0]), 1.0) - is_number(x[0]); }),
    pointwise_op({"isinf", 1, Operands::kAny, 1, true},
                 [](auto x, const Attrs&) { return is_number(x[0]) - is_finite(x[0]); }),
    pointwise_op({"isfinite", 1, Operands::kAny, 1, true},
                 [](auto x, const Attrs&) { return is_finite(x[0]); }),
    pointwise_op({"logical_not", 1, Operands::kAny, 1, true},
                 [](auto x, const Attrs&) { return equal(x[0], like(x[0], 0.0)); }),
    // A cast only rounds to the declared dtype.
    pointwise_op({.name = "to",
                  .operands = 1,
                  .takes = Operands::kAny,
                  .flops = 0,
                  .attrs =
                      [] {
                        return std::vector<AttrDef>{{"dtype", AttrType::kDType, {}}};
                      },
                  .infer = infer_cast},
                 [](auto x, const Attrs&) { return x[0]; }),
    pointwise_op({.name = "copy",
                  .operands = 1,
                  .takes = Operands::kAny,
                  .flops = 0,
                  .infer = infer_same,
                  .op_class = OpClass::kCopy},
                 [](auto x, const Attrs&) { return x[0]; }));

inline constexpr std::size_t kPointwiseCount = std::tuple_size_v<decltype(kPointwiseOps)>;

template <class T>
using Arithmetic = T (*)(std::span<const T> x, const Attrs& attrs);

/// The arithmetic of each entry on numbers of type T; null where the op does not take them.
template <class T>
constexpr std::array<Arithmetic<T>, kPointwiseCount> pointwise_table() {
  const auto instance = [](auto index) -> Arithmetic<T> {
    constexpr std::size_t kIndex = decltype(index)::value;
    constexpr Operands kTakes = std::get<kIndex>(kPointwiseOps).row.takes;
    if constexpr ((std::is_same_v<T, Int> && kTakes == Operands::kFloat) ||
                  (std::is_same_v<T, double> &&
                   (kTakes == Operands::kInteger || kTakes == Operands::kBits))) {
      return nullptr;
    } else {
      return [](std::span<const T> x, const Attrs& attrs) -> T {
        return std::get<kIndex>(kPointwiseOps).arithmetic(x, attrs);
      };
    }
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Arithmetic<T>, kPointwiseCount>{
        instance(std::integral_constant<std::size_t, I>())...};
  }
  (std::make_index_sequence<kPointwiseCount>());
}

/// The arithmetic of the op with that index (OpDef::entry).
template <class T>
Arithmetic<T> arithmetic_of(const OpDef& op) {
  static constexpr auto kTable = pointwise_table<T>();
  return kTable[op.entry];
}

}  // namespace braid
