#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/run/small_float.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BRAID_CPU_FMA_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define BRAID_CPU_FMA_CLONES
#endif

// What the bits of a matrix's elements mean.

namespace braid::cpu {

/// The values of all codes of a float of up to 8 bits.
using SmallValues = std::array<float, 256>;
inline SmallValues small_values(std::uint32_t type, unsigned shift) {
  SmallValues values{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    values[code] = std::bit_cast<float>(from_small_float(code >> shift, type));
  }
  return values;
}

inline const SmallValues& values_of(Element type) {
  static const SmallValues kE4m3 = small_values(0, 0), kE5m2 = small_values(1, 0),
                           kE2m1 = small_values(2, 2), kE2m1Packed = small_values(2, 0),
                           kE2m3 = small_values(3, 0), kE3m2 = small_values(4, 0);
  return type == Element::kE4m3   ? kE4m3
         : type == Element::kE5m2 ? kE5m2
         : type == Element::kE3m2 ? kE3m2
         : type == Element::kE2m3 ? kE2m3
         : type == Element::kE2m1 ? kE2m1
                                  : kE2m1Packed;
}

inline float decode_float(Element type, std::uint64_t bits) {
  const auto word = static_cast<std::uint32_t>(bits);
  switch (type) {
    case Element::kF16:
      return half_to_float(static_cast<std::uint16_t>(bits));
    case Element::kBf16:
      return bfloat_to_float(static_cast<std::uint16_t>(bits));
    case Element::kTf32:
      return std::bit_cast<float>(word & 0xffffe000U);
    case Element::kF32:
      return std::bit_cast<float>(word);
    default:
      return values_of(type)[bits & 0xff];
  }
}

inline std::int64_t decode_integer(Element type, std::uint64_t bits) {
  const unsigned unused = 64 - element_bits(type);
  const bool is_signed = type == Element::kS8 || type == Element::kS4 || type == Element::kS32;
  return is_signed ? static_cast<std::int64_t>(bits << unused) >> unused
                   : static_cast<std::int64_t>(bits);
}

/// A scale of a part of k: of type ue4m3 if `fine`, else ue8m0.
inline double scale_value(bool fine, std::uint32_t bits) {
  if (fine) return std::bit_cast<float>(from_float8(bits & 0x7fU, false));
  return bits == 0xff ? std::nan("") : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

}  // namespace braid::cpu
