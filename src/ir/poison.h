#pragma once

#include <cstdint>

#include "braid/dtype.h"

namespace braid {

/// The bits of an element that nobody wrote, as Executable::poison_outputs leaves it and a check
/// finds it. Of floats, a NaN that no kernel computes: a signalling one, and where a format has
/// none the negative one (a cast writes 0x7f). Of bool, neither 0 nor 1; of integers, an unlikely
/// number.
[[nodiscard]] constexpr std::uint64_t poison_bits(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0x7FA5A5A5U;
    case DType::kF16:
      return 0x7D5AU;
    case DType::kBF16:
      return 0x7FA5U;
    case DType::kF8E4M3:
      return 0xFFU;
    case DType::kF8E5M2:
      return 0xFDU;
    default:
      return 0xA5A5A5A5A5A5A5A5U;  // its low bytes
  }
}

}  // namespace braid
