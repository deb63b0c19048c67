#pragma once

#include <cstdint>
#include <numeric>

#include "braid/error.h"

namespace braid {

/// 64-bit arithmetic on numbers that come from users. Throws kInvalidArgument on overflow.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) throw_invalid("", "a size does not fit 64 bits");
  return r;
}
inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) throw_invalid("", "a size does not fit 64 bits");
  return r;
}
/// The result is not negative.
inline std::int64_t checked_gcd(std::int64_t a, std::int64_t b) {
  if (a == INT64_MIN || b == INT64_MIN) throw_invalid("", "a size does not fit 64 bits");
  return std::gcd(a, b);
}
/// Both must be positive.
inline std::int64_t checked_lcm(std::int64_t a, std::int64_t b) {
  return checked_mul(a / std::gcd(a, b), b);
}

}  // namespace braid
