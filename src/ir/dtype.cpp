#include "braid/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

namespace braid {
namespace {

/// In the order of the enumerators.
constexpr std::string_view kNames[] = {"f32", "f16", "bf16", "f8e4m3", "f8e5m2",
                                       "i32", "i64", "i8",   "u8",     "bool"};

/// Rounds to a binary format of `precision` bits (including the implicit one) with normal exponents
/// in [min_exponent, max_exponent], ties to even.
double round_to_format(double value, int precision, int min_exponent, int max_exponent) {
  if (!std::isfinite(value) || value == 0) return value;
  constexpr int kBias = 1023;
  constexpr int kDoubleMantissa = 52;
  int exponent =
      static_cast<int>(std::bit_cast<std::uint64_t>(value) >> kDoubleMantissa & 0x7FFU) - kBias;
  if (exponent > max_exponent) return std::copysign(std::numeric_limits<double>::infinity(), value);
  if (exponent < min_exponent) exponent = min_exponent;  // subnormals share one quantum
  // Adding a number whose last place is the format's quantum makes the hardware round there. Its
  // mantissa is even, so that ties go to the even neighbour.
  const int magic_exponent = exponent - (precision - 1) + kDoubleMantissa;
  const double magic =
      1.5 *
      std::bit_cast<double>(static_cast<std::uint64_t>(magic_exponent + kBias) << kDoubleMantissa);
  const double rounded = (value + magic) - magic;
  const double limit = std::bit_cast<double>(static_cast<std::uint64_t>(max_exponent + 1 + kBias)
                                             << kDoubleMantissa);
  if (std::fabs(rounded) >= limit) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return std::copysign(rounded, value);
}

template <class Int>
std::int64_t saturate(double value) {
  using Limits = std::numeric_limits<Int>;
  // One past the maximum, which a double may not hold.
  const double end = std::ldexp(1.0, Limits::digits);
  if (std::isnan(value)) return Limits::digits == 63 ? Limits::min() : 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= end) return Limits::max();
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string_view dtype_name(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  const auto* known = std::ranges::find(kNames, name);
  if (known == std::end(kNames)) return std::nullopt;
  return static_cast<DType>(known - kNames);
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return round_to_format(value, 24, -126, 127);
    case DType::kF16:
      return round_to_format(value, 11, -14, 15);
    case DType::kBF16:
      return round_to_format(value, 8, -126, 127);
    case DType::kF8E4M3: {
      constexpr double kLargest = 448;
      const double rounded = round_to_format(value, 4, -6, 8);
      return std::fabs(rounded) > kLargest ? std::copysign(kLargest, value) : rounded;
    }
    case DType::kF8E5M2:
      return round_to_format(value, 3, -14, 15);
    default:
      return static_cast<double>(to_integer(dtype, value));
  }
}

std::int64_t to_integer(DType dtype, double value) {
  switch (dtype) {
    case DType::kI32:
      return saturate<std::int32_t>(value);
    case DType::kI8:
      return saturate<std::int8_t>(value);
    case DType::kU8:
      return saturate<std::uint8_t>(value);
    case DType::kBool:
      return value != 0 ? 1 : 0;
    default:
      return saturate<std::int64_t>(value);
  }
}

std::int64_t wrap_to(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::kI32:
      return static_cast<std::int32_t>(value);
    case DType::kI8:
      return static_cast<std::int8_t>(value);
    case DType::kU8:
      return static_cast<std::uint8_t>(value);
    case DType::kBool:
      return value != 0 ? 1 : 0;
    default:
      return value;
  }
}

}  // namespace braid
