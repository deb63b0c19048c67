#pragma once

#include <cstdint>

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

}  // namespace braid
