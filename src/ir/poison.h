#pragma once

#include <cstdint>

#include "braid/dtype.h"

namespace braid {

/// The bits of an element that nobody wrote, set by Executable::poison_outputs and detected by
/// checks. For floats a NaN that no kernel computes: a signalling one, or the negative one where
/// the format has none (a cast writes 0x7f). For bool neither 0 nor 1; for integers an unlikely
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
      return 0xA5A5A5A5A5A5A5A5U;  // truncated to the dtype's size
  }
}

}  // namespace braid
