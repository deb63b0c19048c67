#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/cpu/run/lanes.h"

namespace braid::cpu {

/// A float of up to 8 bits: fraction bits, exponent of the smallest normal, and the codes of the
/// largest number and of NaN (the largest if there is no NaN).
struct SmallFloat {
  int fraction, lowest;
  std::uint32_t largest, nan;
  int bits;
};
/// In the order of "e4m3x2|e5m2x2|e2m1x2|e2m3x2|e3m2x2", and f16 and bf16.
inline constexpr SmallFloat kSmallFloats[] = {
    {3, -6, 0x7e, 0x7f, 8},       {2, -14, 0x7b, 0x7f, 8}, {1, 0, 0x7, 0x7, 4},
    {3, 0, 0x1f, 0x1f, 6},        {2, -2, 0x1f, 0x1f, 6},  {10, -14, 0x7bff, 0x7fff, 16},
    {7, -126, 0x7f7f, 0x7fff, 16}};

/// Converts the bits of the n-th small float to those of an f32; higher bits are ignored.
inline std::uint32_t from_small_float(std::uint32_t code, std::uint32_t n) {
  if (n < 2) return from_float8(code & 0xff, n == 1);
  // Neither NaN nor infinity.
  const SmallFloat& type = kSmallFloats[n];
  const std::uint32_t size = code & ((1U << (type.bits - 1)) - 1);
  const std::uint32_t field = size >> type.fraction;
  const std::uint32_t fraction = size & ((1U << type.fraction) - 1);
  const std::uint32_t hidden = field == 0 ? 0 : 1U << type.fraction;
  const int exponent = type.lowest + static_cast<int>(std::max(field, 1U)) - 1 - type.fraction;
  const float value = std::ldexp(static_cast<float>(hidden | fraction), exponent);
  const std::uint32_t sign = (code >> (type.bits - 1) & 1U) << 31;
  return std::bit_cast<std::uint32_t>(value) | sign;
}

}  // namespace braid::cpu
