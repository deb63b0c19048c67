#pragma once

#include <emmintrin.h>

#include <algorithm>

namespace braid::cpu {

/// Exchanges rows and columns of 8x8 elements of 16 bits: three times, each half of the rows joins
/// the other, element by element.
inline void transpose(__m128i (&rows)[8]) {
  for (int step = 0; step < 3; ++step) {
    __m128i joined[8];
    for (int r = 0; r < 4; ++r) {
      joined[2 * r] = _mm_unpacklo_epi16(rows[r], rows[r + 4]);
      joined[2 * r + 1] = _mm_unpackhi_epi16(rows[r], rows[r + 4]);
    }
    std::copy(joined, joined + 8, rows);
  }
}

}  // namespace braid::cpu
