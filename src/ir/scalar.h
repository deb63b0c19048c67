#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "braid/graph.h"
#include "braid/tensor.h"
#include "ir/scalar_functions.h"

namespace braid {

// The scalar language of ops: generic lambdas over a number type T, instantiated with `double` and
// `Int` by the evaluator and with tile expressions by codegen. A T offers + - *, unary -, and by
// argument-dependent lookup abs, maximum, minimum, less, equal, select and `like(T, number)` (a
// constant of the same kind). Float types also have / and the functions of scalar_functions.h,
// integers & | ^ << >>. A truth value is 0 or 1.

/// The dtypes that an op accepts. 8-bit floats are only for storage and must be cast first.
enum class Operands : std::uint8_t {
  kFloat,    ///< f32, f16, bf16
  kNumber,   ///< floats and integers
  kInteger,  ///< only integers
  kBits,     ///< integers and bool
  kAny,      ///< floats, integers and bool
};

/// An integer of any dtype: wrapping i64 arithmetic, whose low bits are those of narrower dtypes.
struct Int {
  std::int64_t value;
};
inline Int wrapped(std::uint64_t bits) { return {static_cast<std::int64_t>(bits)}; }
inline std::uint64_t bits_of(Int x) { return static_cast<std::uint64_t>(x.value); }
inline Int operator+(Int a, Int b) { return wrapped(bits_of(a) + bits_of(b)); }
inline Int operator-(Int a, Int b) { return wrapped(bits_of(a) - bits_of(b)); }
inline Int operator*(Int a, Int b) { return wrapped(bits_of(a) * bits_of(b)); }
inline Int operator-(Int a) { return wrapped(0 - bits_of(a)); }
inline Int operator&(Int a, Int b) { return {a.value & b.value}; }
inline Int operator|(Int a, Int b) { return {a.value | b.value}; }
inline Int operator^(Int a, Int b) { return {a.value ^ b.value}; }
/// By less than 0, or by more bits than there are, everything is shifted out.
inline Int operator<<(Int a, Int b) {
  return bits_of(b) < 64 ? wrapped(bits_of(a) << bits_of(b)) : Int{0};
}
inline Int operator>>(Int a, Int b) { return {a.value >> (bits_of(b) < 63 ? b.value : 63)}; }
inline Int abs(Int a) { return a.value < 0 ? -a : a; }
inline Int truncated_quotient(Int a, Int b) { return {a.value / b.value}; }
inline Int maximum(Int a, Int b) { return a.value < b.value ? b : a; }
inline Int minimum(Int a, Int b) { return b.value < a.value ? b : a; }
inline Int less(Int a, Int b) { return {a.value < b.value ? 1 : 0}; }
inline Int equal(Int a, Int b) { return {a.value == b.value ? 1 : 0}; }
inline Int select(Int condition, Int a, Int b) { return condition.value != 0 ? a : b; }
inline Int like(Int, double constant) { return {static_cast<std::int64_t>(constant)}; }
inline Int like(Int, std::int64_t constant) { return {constant}; }

inline double abs(double a) { return std::fabs(a); }
/// NaN wins, as in torch.maximum; -0 is below +0, as in PTX.
inline double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a < b || (a == b && std::signbit(a)) ? b : a;
}
inline double minimum(double a, double b) { return -maximum(-a, -b); }
inline double less(double a, double b) { return a < b ? 1 : 0; }
inline double equal(double a, double b) { return a == b ? 1 : 0; }
inline double select(double condition, double a, double b) { return condition != 0 ? a : b; }
inline double like(double, double constant) { return constant; }
/// Integers convert to floats via f32.
inline double like(double, std::int64_t constant) { return static_cast<float>(constant); }

/// The rounding of an integer quotient.
enum class Quotient : std::uint8_t { kTruncated, kFloor };
/// The result is 0 where b is 0.
template <class T>
T divided_integers(T a, T b, Quotient quotient) {
  const T zero = like(a, std::int64_t{0});
  const T is_zero = equal(b, zero);
  const T is_minus_one = equal(b, like(a, std::int64_t{-1}));
  // The machine divides by neither 0 nor -1: the first is undefined, the second may overflow.
  const T by = select(is_zero + is_minus_one, like(a, std::int64_t{1}), b);
  T result = truncated_quotient(a, by);
  if (quotient == Quotient::kFloor) {
    const T rest = a - result * by;
    const T is_above = less(zero, abs(rest)) * abs(less(rest, zero) - less(by, zero));
    result = result - is_above;
  }
  return select(is_zero, zero, select(is_minus_one, -a, result));
}
inline double divided(double a, double b, Quotient) { return a / b; }
inline Int divided(Int a, Int b, Quotient quotient) { return divided_integers(a, b, quotient); }

/// A constant of x's type with the value of an attribute; floats go through f32.
template <class T>
T number_like(T x, const AttrValue& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return like(x, *integer);
  return like(x, round_to(DType::kF32, std::get<double>(number)));
}

/// Whether x is not 0; NaN is not.
template <class T>
T truth(T x) {
  const auto is_zero = equal(x, like(x, 0.0));
  return like(is_zero, 1.0) - is_zero;  // a truth value may be an integer where x is none
}

inline double choose(bool condition, double a, double b) { return condition ? a : b; }
/// One element of a rotary embedding, from its pair and their row of the tables. `choose(condition,
/// a, b)` selects by a condition.
template <class T, class Condition>
T rotated(T x, T partner, T cosine, T sine, Condition is_first) {
  const T turned = partner * sine;
  return x * cosine + choose(is_first, -turned, turned);
}

/// The value of a `full`, as an integer dtype holds it.
inline std::int64_t integer_of(DType dtype, const AttrValue& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return wrap_to(dtype, *integer);
  return to_integer(dtype, std::get<double>(number));
}

}  // namespace braid
