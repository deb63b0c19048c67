#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "braid/error.h"
#include "braid/graph.h"

namespace braid {

// The arithmetic of every pointwise op, written once: instantiated for `double` and `Int` by the
// evaluator and for a tile expression by codegen. A `T` offers + - *, unary -, and by
// argument-dependent lookup abs, maximum, minimum, less, equal, select and `like(T, number)` (a
// constant of the same kind). One of floats also has / and exp, log, sqrt, rsqrt, tanh, erf, erfc,
// pow, floor and nearbyint. A truth value is 0 or 1.

/// An integer of any dtype: i64 arithmetic that wraps around, which the low bits of narrower dtypes
/// do not see.
struct Int {
  std::int64_t value;
};
inline Int wrapped(std::uint64_t bits) { return {static_cast<std::int64_t>(bits)}; }
inline std::uint64_t bits_of(Int x) { return static_cast<std::uint64_t>(x.value); }
inline Int operator+(Int a, Int b) { return wrapped(bits_of(a) + bits_of(b)); }
inline Int operator-(Int a, Int b) { return wrapped(bits_of(a) - bits_of(b)); }
inline Int operator*(Int a, Int b) { return wrapped(bits_of(a) * bits_of(b)); }
inline Int operator-(Int a) { return wrapped(0 - bits_of(a)); }
inline Int abs(Int a) { return a.value < 0 ? -a : a; }
inline Int maximum(Int a, Int b) { return a.value < b.value ? b : a; }
inline Int minimum(Int a, Int b) { return b.value < a.value ? b : a; }
inline Int less(Int a, Int b) { return {a.value < b.value ? 1 : 0}; }
inline Int equal(Int a, Int b) { return {a.value == b.value ? 1 : 0}; }
inline Int select(Int condition, Int a, Int b) { return condition.value != 0 ? a : b; }
inline Int like(Int, double constant) { return {static_cast<std::int64_t>(constant)}; }
inline Int like(Int, std::int64_t constant) { return {constant}; }

inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
/// NaN wins, as in torch.maximum, and -0 is below +0, as in PTX.
inline double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a < b || (a == b && std::signbit(a)) ? b : a;
}
inline double minimum(double a, double b) { return -maximum(-a, -b); }
inline double less(double a, double b) { return a < b ? 1 : 0; }
inline double equal(double a, double b) { return a == b ? 1 : 0; }
inline double select(double condition, double a, double b) { return condition != 0 ? a : b; }
inline double like(double, double constant) { return constant; }
/// An integer becomes a float by way of f32.
inline double like(double, std::int64_t constant) { return static_cast<float>(constant); }

/// torch's gelu with approximate = "tanh": x / 2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3),
/// as x sigmoid(2u), which keeps its digits where 1 + tanh u cancels.
template <class T>
T gelu_tanh(T x) {
  using std::exp;
  const T twice = x * like(x, 1.5957691216057308) * (like(x, 1.0) + x * x * like(x, 0.044715));
  return x / (like(x, 1.0) + exp(-twice));
}

/// The ops that take floats alone; nothing for another op.
template <class T>
std::optional<T> pointwise_of_floats(std::string_view name, std::span<const T> x,
                                     const Attrs& attrs) {
  using std::erf;
  using std::erfc;
  using std::exp;
  using std::floor;
  using std::log;
  using std::nearbyint;
  using std::pow;
  using std::sqrt;
  using std::tanh;
  const auto one = [&] { return like(x[0], 1.0); };
  if (name == "div") return x[0] / x[1];
  if (name == "pow") return pow(x[0], x[1]);
  if (name == "exp") return exp(x[0]);
  if (name == "log") return log(x[0]);
  if (name == "sqrt") return sqrt(x[0]);
  if (name == "rsqrt") return rsqrt(x[0]);
  if (name == "tanh") return tanh(x[0]);
  if (name == "erf") return erf(x[0]);
  if (name == "floor") return floor(x[0]);
  if (name == "round") return nearbyint(x[0]);
  if (name == "sigmoid") return one() / (one() + exp(-x[0]));
  if (name == "silu") return x[0] / (one() + exp(-x[0]));
  if (name == "gelu") {
    if (std::get<std::string>(attrs.find("approximate")->second) == "tanh") return gelu_tanh(x[0]);
    // 1 + erf(a) is erfc(-a), which does not cancel.
    return x[0] * like(x[0], 0.5) * erfc(-x[0] * like(x[0], 0.70710678118654752));
  }
  return std::nullopt;
}

/// A constant that is `number`, an attribute, of the kind of `x`: of floats by way of f32.
template <class T>
T number_like(T x, const AttrValue& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return like(x, *integer);
  return like(x, round_to(DType::kF32, std::get<double>(number)));
}

/// The value of a full, as an integer dtype holds it.
inline std::int64_t integer_of(DType dtype, const AttrValue& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return wrap_to(dtype, *integer);
  return to_integer(dtype, std::get<double>(number));
}

/// The result of pointwise op `name` on `x`, before it is rounded to the declared dtype. Casts
/// (`to`, `copy`) are the identity here.
template <class T>
T pointwise(std::string_view name, std::span<const T> x, const Attrs& attrs) {
  using std::abs;
  const auto one = [&] { return like(x[0], 1.0); };
  const auto zero = [&] { return like(x[0], 0.0); };
  const auto truth = [&](T a) { return one() - equal(a, zero()); };
  if (name == "add") return x[0] + x[1];
  if (name == "sub") return x[0] - x[1];
  if (name == "mul") return x[0] * x[1];
  if (name == "maximum") return maximum(x[0], x[1]);
  if (name == "minimum") return minimum(x[0], x[1]);
  if (name == "neg") return -x[0];
  if (name == "abs") return abs(x[0]);
  // By comparison, so that NaN and -0 stay what they are.
  if (name == "relu") return select(less(x[0], zero()), zero(), x[0]);
  if (name == "clamp") {
    T y = x[0];
    if (const auto low = attrs.find("min"); low != attrs.end()) {
      const T bound = number_like(y, low->second);
      y = select(less(y, bound), bound, y);
    }
    if (const auto high = attrs.find("max"); high != attrs.end()) {
      const T bound = number_like(y, high->second);
      y = select(less(bound, y), bound, y);
    }
    return y;
  }
  if (name == "where") return select(x[0], x[1], x[2]);
  if (name == "eq") return equal(x[0], x[1]);
  if (name == "ne") return like(equal(x[0], x[1]), 1.0) - equal(x[0], x[1]);
  if (name == "lt") return less(x[0], x[1]);
  if (name == "gt") return less(x[1], x[0]);
  // Not by negation: a comparison with NaN is false.
  if (name == "le") return maximum(less(x[0], x[1]), equal(x[0], x[1]));
  if (name == "ge") return maximum(less(x[1], x[0]), equal(x[0], x[1]));
  if (name == "logical_not") return equal(x[0], zero());
  if (name == "logical_and") return truth(x[0]) * truth(x[1]);
  if (name == "logical_or") return maximum(truth(x[0]), truth(x[1]));
  if (name == "to" || name == "copy") return x[0];
  if constexpr (!std::is_same_v<T, Int>) {
    if (const std::optional<T> y = pointwise_of_floats(name, x, attrs)) return *y;
  }
  throw_internal(std::string(name), "not a pointwise op of these operands");
}

}  // namespace braid
