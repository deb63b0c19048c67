#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/run/mma.h"
#include "runtime/cpu/run/runtime_helpers.h"

// Products of fragments as they lie in the lanes: in a register of D a lane is a row and a pair of
// columns, and four lanes of 128 bits share a row. All A and B are decoded once. For each k, rows
// of A, spread over their groups of lanes, then multiply four values of B, repeated in each group,
// while the sums stay in registers.

namespace braid::cpu {
namespace {

#define BRAID_CPU_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c")))
#define BRAID_CPU_AVX512_INLINE BRAID_CPU_AVX512 __attribute__((always_inline)) inline

// The forms with a full mask, here and below: those without start from an undefined vector, which
// GCC's own header makes of an uninitialised one, with a warning. The code is the same.
constexpr __mmask16 kAll = 0xffff;

BRAID_CPU_AVX512_INLINE __m512i words_of(const std::uint32_t* lanes) {
  return _mm512_load_si512(lanes);
}
BRAID_CPU_AVX512_INLINE __m512i low_bits(__m512i v, unsigned bits) {
  return _mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(bits)));
}
/// The f16 in the low halves of words.
BRAID_CPU_AVX512_INLINE __m512 widen(__m512i words) {
  return _mm512_maskz_cvtph_ps(kAll, _mm512_maskz_cvtepi32_epi16(kAll, words));
}

// Types of elements: each word of a lane becomes kPlanes values, its lowest element first.

struct Half {
  static constexpr int kPlanes = 2;
  BRAID_CPU_AVX512_INLINE static void decode(__m512i words, __m512* planes) {
    planes[0] = widen(words);
    planes[1] = widen(_mm512_maskz_srli_epi32(kAll, words, 16));
  }
};

struct Bfloat {
  static constexpr int kPlanes = 2;
  BRAID_CPU_AVX512_INLINE static void decode(__m512i words, __m512* planes) {
    planes[0] = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, words, 16));
    planes[1] = _mm512_castsi512_ps(low_bits(words, 0xffff0000));
  }
};

struct Tf32 {
  static constexpr int kPlanes = 1;
  BRAID_CPU_AVX512_INLINE static void decode(__m512i words, __m512* planes) {
    planes[0] = _mm512_castsi512_ps(low_bits(words, 0xffffe000));
  }
};

/// Which is f16 cut short.
struct E5m2 {
  static constexpr int kPlanes = 4;
  BRAID_CPU_AVX512_INLINE static void decode(__m512i words, __m512* planes) {
    planes[0] = widen(_mm512_maskz_slli_epi32(kAll, words, 8));
    planes[1] = widen(low_bits(words, 0xff00));
    planes[2] = widen(low_bits(_mm512_maskz_srli_epi32(kAll, words, 8), 0xff00));
    planes[3] = widen(low_bits(_mm512_maskz_srli_epi32(kAll, words, 16), 0xff00));
  }
};

/// Which has an exponent of a bit less than f16, and no infinities.
struct E4m3 {
  static constexpr int kPlanes = 4;
  BRAID_CPU_AVX512_INLINE static __m512 element(__m512i words) {
    const __m512i size = low_bits(words, 0x7f);
    const __m512i sign = _mm512_maskz_slli_epi32(kAll, low_bits(words, 0x80), 8);
    const __m512 value = _mm512_mul_ps(
        widen(_mm512_or_si512(sign, _mm512_maskz_slli_epi32(kAll, size, 7))), _mm512_set1_ps(256));
    const __mmask16 nan = _mm512_cmpeq_epi32_mask(size, _mm512_set1_epi32(0x7f));
    return _mm512_mask_mov_ps(value, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff)));
  }
  BRAID_CPU_AVX512_INLINE static void decode(__m512i words, __m512* planes) {
    planes[0] = element(words);
    planes[1] = element(_mm512_maskz_srli_epi32(kAll, words, 8));
    planes[2] = element(_mm512_maskz_srli_epi32(kAll, words, 16));
    planes[3] = element(_mm512_maskz_srli_epi32(kAll, words, 24));
  }
};

/// Integers go in pairs of 16 bits: bytes 0 and 2, and 1 and 3, as their order does not matter.
template <bool kSigned>
struct Int8 {
  static constexpr int kPlanes = 2;
  BRAID_CPU_AVX512_INLINE static __m512 high_bytes(__m512i words) {
    return _mm512_castsi512_ps(kSigned ? _mm512_srai_epi16(words, 8) : _mm512_srli_epi16(words, 8));
  }
  BRAID_CPU_AVX512_INLINE static void decode(__m512i words, __m512* planes) {
    planes[0] = high_bytes(_mm512_slli_epi16(words, 8));
    planes[1] = high_bytes(words);
  }
};

/// A and B of a plan, decoded. Of a fragment: for each half of its k, and each plane, A by rows
/// 0-3, 4-7, 8-11 and 12-15; and B by columns 0, 2, 4, 6 and then 1, 3, 5, 7, the lanes that share
/// a row of A outermost.
template <int kPlanes>
struct Decoded {
  alignas(64) float a[kMaxMmaA][2 * kPlanes][4][16];
  alignas(64) float b[kMaxMmaB][2 * kPlanes][2][16];
};

template <class Type>
BRAID_CPU_AVX512 void decode_a(const MmaPlan& plan, int halves, Decoded<Type::kPlanes>& to) {
  for (std::uint32_t n = 0; n < plan.a_count(); ++n) {
    for (int r = 0; r < 2 * halves; ++r) {
      const std::uint32_t* lanes = plan.a(n, static_cast<std::uint32_t>(r));
      for (int part = 0; part < 2; ++part) {
        __m512 planes[Type::kPlanes];
        Type::decode(words_of(lanes + 16 * part), planes);
        for (int p = 0; p < Type::kPlanes; ++p) {
          _mm512_store_ps(to.a[n][(r >> 1) * Type::kPlanes + p][2 * (r & 1) + part], planes[p]);
        }
      }
    }
  }
}

template <class Type>
BRAID_CPU_AVX512 void decode_b(const MmaPlan& plan, int halves, Decoded<Type::kPlanes>& to) {
  // Lane n * 4 + t holds column n.
  const __m512i even = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(4));
  for (std::uint32_t n = 0; n < plan.b_count(); ++n) {
    for (int r = 0; r < halves; ++r) {
      const std::uint32_t* lanes = plan.b(n, static_cast<std::uint32_t>(r));
      __m512 first[Type::kPlanes];
      __m512 second[Type::kPlanes];
      Type::decode(words_of(lanes), first);
      Type::decode(words_of(lanes + 16), second);
      for (int p = 0; p < Type::kPlanes; ++p) {
        float(*columns)[16] = to.b[n][r * Type::kPlanes + p];
        _mm512_store_ps(columns[0], _mm512_permutex2var_ps(first[p], even, second[p]));
        _mm512_store_ps(columns[1], _mm512_permutex2var_ps(first[p], odd, second[p]));
      }
    }
  }
}

struct FloatSums {
  BRAID_CPU_AVX512_INLINE static __m512 add(__m512 a, __m512 b, __m512 sum) {
    return _mm512_fmadd_ps(a, b, sum);
  }
  /// Which of two NaN a fused multiply-add hands on is up to the compiler: here it is always one.
  BRAID_CPU_AVX512_INLINE static __m512 finish(__m512 sum) {
    const __mmask16 nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(sum, nan, _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MAX)));
  }
};

struct IntSums {
  BRAID_CPU_AVX512_INLINE static __m512 add(__m512 a, __m512 b, __m512 sum) {
    const __m512i products = _mm512_madd_epi16(_mm512_castps_si512(a), _mm512_castps_si512(b));
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(sum), products));
  }
  BRAID_CPU_AVX512_INLINE static __m512 finish(__m512 sum) { return sum; }
};

/// Indexed by 2 x register + half of its lanes.
using Sums = __m512[8];

/// The values of B at one k for the even and the odd columns, against all rows of A.
template <class Sum>
BRAID_CPU_AVX512_INLINE void add_products(const __m512* rows, const float (*columns)[16],
                                          std::size_t at, Sums& sums) {
  const __m512 even = _mm512_maskz_broadcast_f32x4(kAll, _mm_load_ps(columns[0] + at));
  const __m512 odd = _mm512_maskz_broadcast_f32x4(kAll, _mm_load_ps(columns[1] + at));
  sums[0] = Sum::add(rows[0], even, sums[0]);
  sums[1] = Sum::add(rows[1], even, sums[1]);
  sums[2] = Sum::add(rows[0], odd, sums[2]);
  sums[3] = Sum::add(rows[1], odd, sums[3]);
  sums[4] = Sum::add(rows[2], even, sums[4]);
  sums[5] = Sum::add(rows[3], even, sums[5]);
  sums[6] = Sum::add(rows[2], odd, sums[6]);
  sums[7] = Sum::add(rows[3], odd, sums[7]);
}

/// The k of lane `kLane` of those that share a row of A.
template <class Sum, int kPlanes, int kWidth, int kLane>
BRAID_CPU_AVX512_INLINE void add_lane(const float (*a)[4][16],
                                      const float (*const (&b)[kWidth])[2][16],
                                      Sums (&sums)[kWidth]) {
#pragma GCC unroll 4
  for (int p = 0; p < kPlanes; ++p) {
    __m512 rows[4];
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; ++quarter) {
      rows[quarter] = _mm512_maskz_permute_ps(kAll, _mm512_load_ps(a[p][quarter]), kLane * 0x55);
    }
#pragma GCC unroll 2
    for (int w = 0; w < kWidth; ++w) add_products<Sum>(rows, b[w][p], 4 * kLane, sums[w]);
  }
}

/// f16 sums are two registers of pairs: they are widened, and rounded once, to one NaN.
BRAID_CPU_AVX512_INLINE void load_halves(const MmaPlan& plan, const MmaTile& tile, std::uint32_t w,
                                         Sums& sums) {
#pragma GCC unroll 4
  for (std::uint32_t n = 0; n < 4; ++n) {
    __m512 pair[2];
    Half::decode(words_of(plan.c(tile, w, n / 2) + n % 2 * 16), pair);
    sums[n / 2 * 4 + n % 2] = pair[0];
    sums[n / 2 * 4 + 2 + n % 2] = pair[1];
  }
}

BRAID_CPU_AVX512_INLINE __m512i to_half(__m512 value) {
  const __m256i half =
      _mm512_maskz_cvtps_ph(kAll, value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(_mm512_maskz_cvtepu16_epi32(kAll, half), nan,
                               _mm512_set1_epi32(0x7fff));
}

BRAID_CPU_AVX512_INLINE void store_halves(const MmaPlan& plan, const MmaTile& tile, std::uint32_t w,
                                          const Sums& sums) {
#pragma GCC unroll 4
  for (std::uint32_t n = 0; n < 4; ++n) {
    const __m512i low = to_half(sums[n / 2 * 4 + n % 2]);
    const __m512i high = to_half(sums[n / 2 * 4 + 2 + n % 2]);
    _mm512_store_si512(plan.d(tile, w, n / 2) + n % 2 * 16,
                       _mm512_or_si512(low, _mm512_maskz_slli_epi32(kAll, high, 16)));
  }
}

/// C + sum of integers; the greatest or the least where that is more or less.
BRAID_CPU_AVX512_INLINE __m512 add_saturating(__m512i c, __m512i sum) {
  const __m512i total = _mm512_add_epi32(c, sum);
  const __m512i wrong = _mm512_and_si512(_mm512_xor_si512(c, total), _mm512_xor_si512(sum, total));
  const __m512i limit =
      _mm512_xor_si512(_mm512_maskz_srai_epi32(kAll, c, 31), _mm512_set1_epi32(INT32_MAX));
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(total, _mm512_movepi32_mask(wrong), limit));
}

template <class Sum, int kPlanes, int kWidth>
BRAID_CPU_AVX512 void multiply_tile(const MmaPlan& plan, const MmaTile& tile,
                                    const Decoded<kPlanes>& decoded, std::uint32_t code) {
  const int halves = (code & kMmaShort) != 0 ? 1 : 2;
  const bool half_sums = (code & kMmaHalfSum) != 0;
  const bool saturates = (code & kMmaSaturate) != 0;
  Sums sums[kWidth];
#pragma GCC unroll 2
  for (std::uint32_t w = 0; w < kWidth; ++w) {
    if (half_sums) {
      load_halves(plan, tile, w, sums[w]);
      continue;
    }
#pragma GCC unroll 8
    for (std::uint32_t n = 0; n < 8; ++n) {
      sums[w][n] = saturates ? _mm512_setzero_ps()
                             : _mm512_castsi512_ps(words_of(plan.c(tile, w, n / 2) + n % 2 * 16));
    }
  }
  for (std::uint32_t step = 0; step < tile.steps; ++step) {
    const float(*a)[4][16] = decoded.a[tile.a(step)];
    const float(*b[kWidth])[2][16];
#pragma GCC unroll 2
    for (std::uint32_t w = 0; w < kWidth; ++w) b[w] = decoded.b[tile.b(step, w)];
    for (int half = 0; half < halves; ++half) {
      add_lane<Sum, kPlanes, kWidth, 0>(a, b, sums);
      add_lane<Sum, kPlanes, kWidth, 1>(a, b, sums);
      add_lane<Sum, kPlanes, kWidth, 2>(a, b, sums);
      add_lane<Sum, kPlanes, kWidth, 3>(a, b, sums);
      a += kPlanes;
#pragma GCC unroll 2
      for (int w = 0; w < kWidth; ++w) b[w] += kPlanes;
    }
  }
#pragma GCC unroll 2
  for (std::uint32_t w = 0; w < kWidth; ++w) {
    if (half_sums) {
      store_halves(plan, tile, w, sums[w]);
      continue;
    }
    // D may lie in the registers of C, in any order.
#pragma GCC unroll 8
    for (std::uint32_t n = 0; saturates && n < 8; ++n) {
      sums[w][n] = add_saturating(words_of(plan.c(tile, w, n / 2) + n % 2 * 16),
                                  _mm512_castps_si512(sums[w][n]));
    }
#pragma GCC unroll 8
    for (std::uint32_t n = 0; n < 8; ++n) {
      _mm512_store_si512(plan.d(tile, w, n / 2) + n % 2 * 16,
                         _mm512_castps_si512(Sum::finish(sums[w][n])));
    }
  }
}

template <class Sum, class A, class B>
BRAID_CPU_AVX512 void multiply(const MmaPlan& plan, std::uint32_t code) {
  Decoded<A::kPlanes> decoded;
  const int halves = (code & kMmaShort) != 0 ? 1 : 2;
  decode_a<A>(plan, halves, decoded);
  decode_b<B>(plan, halves, decoded);
  plan.for_each_tile([&](const MmaTile& tile) {
    const auto run =
        tile.width == 2 ? multiply_tile<Sum, A::kPlanes, 2> : multiply_tile<Sum, A::kPlanes, 1>;
    run(plan, tile, decoded, code);
  });
}

template <class Sum, class Second, class First>
auto choose(bool second_a, bool second_b) {
  return second_a ? (second_b ? multiply<Sum, Second, Second> : multiply<Sum, Second, First>)
                  : (second_b ? multiply<Sum, First, Second> : multiply<Sum, First, First>);
}

}  // namespace

void multiply_fragments_avx512(const MmaPlan& plan, std::uint32_t code) {
  const auto has = [&](std::uint32_t bit) { return (code & bit) != 0; };
  const auto run =
      has(kMmaFloat8) ? choose<FloatSums, E5m2, E4m3>(has(kMmaE5m2A), has(kMmaE5m2B))
      : has(kMmaInt8) ? choose<IntSums, Int8<true>, Int8<false>>(has(kMmaSignedA), has(kMmaSignedB))
      : has(kMmaTf32) ? multiply<FloatSums, Tf32, Tf32>
      : has(kMmaBfloat) ? multiply<FloatSums, Bfloat, Bfloat>
                        : multiply<FloatSums, Half, Half>;
  run(plan, code);
}

}  // namespace braid::cpu
