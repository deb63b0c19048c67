#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/cpu/run/runtime_helpers.h"

// The sums of an H100's tensor cores with f32 accumulators, to the bit.
//
// An instruction multiplies exactly; a product has the sum of its operands' exponents, each with a
// significand in [1, 2). Let e be the largest exponent of all its products and of the accumulator;
// zeros have none. Each term is cut toward zero to a multiple of 2^(e - F), the terms are added
// exactly, and the sum is cut toward zero to R significant bits. A sum of zero is +0.
//
//   f16, bf16, tf32 (mma.sync and wgmma)   F = 25, R = 24
//   f8 (wgmma)                             F = 13, R = 14
//   f8 (mma.sync)                          as f16, first the products with k % 4 of 0 and 1 to +0,
//                                          then the others to that; the result is added to the
//                                          accumulator in f32, to nearest
//
// This was measured on an H100 for normal numbers, by the method of Fasi, Higham, Mikaitis and
// Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021. Not measured: subnormals, which here
// have the exponent of the smallest normal; overflow, here to infinity; shapes with half of the k;
// e5m2 in wgmma.

namespace braid::cpu {

struct HopperRule {
  int kept;                ///< F
  int significant;         ///< R
  int lowest_a, lowest_b;  ///< the exponents of the smallest normal operands
  bool halves;             ///< mma.sync of f8
};

/// `code` has bits kMma.. of runtime_helpers.h.
inline HopperRule hopper_rule(std::uint32_t code) {
  constexpr int kLowestF16 = -14, kLowestE4m3 = -6, kLowestF32 = -126;
  if ((code & kMmaFloat8) != 0 && (code & kMmaOfGroup) != 0) {
    return {13, 14, (code & kMmaE5m2A) != 0 ? kLowestF16 : kLowestE4m3,
            (code & kMmaE5m2B) != 0 ? kLowestF16 : kLowestE4m3, false};
  }
  const int lowest = (code & (kMmaTf32 | kMmaBfloat)) != 0 ? kLowestF32 : kLowestF16;
  return {25, 24, lowest, lowest, (code & kMmaFloat8) != 0};
}

/// Eight at once: the compiler does not come to this by itself.
using Eight = std::int32_t __attribute__((vector_size(32)));

/// significand * 2^(exponent - fraction bits), of eight finite numbers.
struct HopperTerms {
  static constexpr int kZero = -1000;  ///< the exponent of zero, below that of any other product
  Eight significands, exponents;
};

/// The terms of eight floats; 10 bits of fraction are enough for all types of elements. `others`
/// gets ones where one is not finite.
inline void to_terms(const float* values, int lowest, int fraction, HopperTerms& terms,
                     Eight& others) {
  Eight bits;
  std::memcpy(&bits, values, sizeof bits);
  const Eight sign = bits >> 31, size = bits & INT32_MAX;
  const Eight field = size >> 23;
  const Eight hidden = (field != 0) & (1 << 23);
  const Eight own = (field == 0 ? Eight{} + 1 : field) - 127;
  const Eight exponents = own < lowest ? Eight{} + lowest : own;
  const Eight down = exponents - own + (23 - fraction);
  const Eight significands = ((size & 0x7fffff) | hidden) >> (down > 31 ? Eight{} + 31 : down);
  terms.significands = (significands ^ sign) - sign;
  terms.exponents = size == 0 ? Eight{} + HopperTerms::kZero : exponents;
  others |= field == 255;
}

/// sum * 2^last, cut toward zero to so many bits and to those of f32.
inline float cut_to_float(std::int64_t sum, int last, int significant) {
  if (sum == 0) return 0;
  const auto unit = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + last) << 52U);
  const auto exact = std::bit_cast<std::uint64_t>(static_cast<double>(sum) * unit);
  const auto value = std::bit_cast<double>(exact & ~std::uint64_t{0} << (53 - significant));
  constexpr double kLast = 0x1p-149;  // of f32
  if (std::fabs(value) < 0x1p-126) return static_cast<float>(std::trunc(value / kLast) * kLast);
  return static_cast<float>(value);
}

/// Adds the products of a row of A, `depth` up to 32 of it (16 where F is 25), with eight columns
/// of B to their sums, as one instruction does. A has eight k in a place of `a`; each place of `b`
/// is one k.
inline void add_as_hopper(const HopperRule& rule, const HopperTerms* a, const HopperTerms* b,
                          std::uint32_t depth, float (&sums)[8]) {
  HopperTerms addends;
  Eight others{};
  to_terms(sums, -126, 23, addends, others);
  Eight largest = addends.exponents;
  for (std::uint32_t k = 0; k < depth; ++k) {
    const Eight exponents = a[k / 8].exponents[k % 8] + b[k].exponents;
    largest = exponents > largest ? exponents : largest;
  }
  // `fraction`: of the terms' significands.
  const auto add = [&](const Eight& significands, const Eight& exponents, int fraction, Eight& to) {
    const Eight sign = significands >> 31;
    const Eight size = ((significands ^ sign) - sign) << std::max(rule.kept - fraction, 0);
    const Eight down = largest - exponents + std::max(fraction - rule.kept, 0);
    const Eight kept = size >> (down > 31 ? Eight{} + 31 : down);
    to += (kept ^ sign) - sign;
  };
  // 16 products of (2 - 2^-10)^2 * 2^25 are just below 2^31; with the addend it is more.
  Eight products{}, cut_addends{};
  for (std::uint32_t k = 0; k < depth; ++k) {
    add(a[k / 8].significands[k % 8] * b[k].significands,
        a[k / 8].exponents[k % 8] + b[k].exponents, 20, products);
  }
  add(addends.significands, addends.exponents, 23, cut_addends);
  for (int n = 0; n < 8; ++n) {
    const std::int64_t sum = std::int64_t{products[n]} + cut_addends[n];
    sums[n] = cut_to_float(sum, largest[n] - rule.kept, rule.significant);
  }
}

}  // namespace braid::cpu
