#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace braid::cpu {

/// Transposes 8x8 elements of 16 bits in three steps, each of which interleaves the halves of the
/// rows.
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

/// Widens 16 adjacent elements of `bits` bits to bytes.
inline __m128i widen(__m128i row, unsigned bits) {
  unsigned __int128 packed = 0;
  std::uint8_t bytes[16];
  std::memcpy(&packed, &row, sizeof packed);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(packed & ((1U << bits) - 1));
    packed >>= bits;
  }
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

/// Rearranges 16 rows of bytes into two registers of a warp: lane l has, of columns l / 4 and 8 to
/// its right, rows 4 (l % 4) to the third below.
inline void exchange_bytes(__m128i (&rows)[16]) {
  std::uint8_t from[16][16];
  std::uint8_t to[2][32][4];
  std::memcpy(from, rows, sizeof from);
  for (int r = 0; r < 2; ++r) {
    for (int l = 0; l < 32; ++l) {
      for (int k = 0; k < 4; ++k) to[r][l][k] = from[4 * (l % 4) + k][l / 4 + 8 * r];
    }
  }
  std::memcpy(rows, to, sizeof to);
}

}  // namespace braid::cpu
