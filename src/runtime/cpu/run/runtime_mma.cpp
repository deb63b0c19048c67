#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/mma.h"
#include "runtime/cpu/run/runtime_helpers.h"

// mma.sync over register fragments as they lie in the 32 lanes. Products are exact in f32 and are
// added to C one k after the other, k ascending, by fused multiply-add: every host computes the
// same bits. (k runs over the pairs of a lane first: 0,1 of lane 0, then of lane 1, ..)

namespace braid::cpu {
namespace {

using Words = const std::uint32_t*;

/// Where the registers of one A and of `count` products lie, by their offsets in the register file:
/// 4 of A, then per product 2 of B, 4 of C and 4 of D. Short shapes leave some of them unused.
class Operands {
 public:
  Operands(std::uint8_t* file, Words places, std::uint32_t count)
      : file_(file), places_(places), count_(count) {}

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] Words a(int r) const { return word(static_cast<std::uint32_t>(r)); }
  [[nodiscard]] Words b(std::uint32_t m, int r) const { return word(4 + 10 * m + offset(r)); }
  [[nodiscard]] const float* c(std::uint32_t m, int r) const {
    return reinterpret_cast<const float*>(word(6 + 10 * m + offset(r)));
  }
  [[nodiscard]] float* d(std::uint32_t m, int r) const {
    return reinterpret_cast<float*>(word(10 + 10 * m + offset(r)));
  }

 private:
  static std::uint32_t offset(int r) { return static_cast<std::uint32_t>(r); }
  [[nodiscard]] std::uint32_t* word(std::uint32_t place) const {
    return reinterpret_cast<std::uint32_t*>(file_ + places_[place]);
  }

  std::uint8_t* file_;
  Words places_;
  std::uint32_t count_;
};

/// C of one product, then D: they may share registers in any order, so D is written at the end.
template <class T>
struct Sums {
  Sums(const Operands& operands, std::uint32_t m) {
    for (int r = 0; r < 4; ++r) std::memcpy(values[r], operands.c(m, r), 128);
  }
  /// The place of a row and column.
  T& at(int row, int column) {
    return values[(row >= 8 ? 2 : 0) + (column & 1)][row % 8 * 4 + column / 2];
  }
  void store(const Operands& operands, std::uint32_t m) const {
    for (int r = 0; r < 4; ++r) std::memcpy(operands.d(m, r), values[r], 128);
  }
  T values[4][32];
};

/// Decodes the 16-bit elements of one fragment register: low and high halves of each lane.
void decode_lane(std::uint32_t word, bool bfloat, float& low, float& high) {
  const auto half = [](std::uint32_t bits) {
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t size = bits & 0x7fffU;
    float value = 0;
    std::uint32_t wide = size << 13;
    if (size >= 0x7c00) {
      wide |= 0x7f800000U;
      std::memcpy(&value, &wide, 4);
    } else {
      std::memcpy(&value, &wide, 4);
      value *= 0x1p112F;
    }
    std::uint32_t out = 0;
    std::memcpy(&out, &value, 4);
    out |= sign;
    std::memcpy(&value, &out, 4);
    return value;
  };
  if (bfloat) {
    const std::uint32_t l = word << 16;
    const std::uint32_t h = word & 0xffff0000U;
    std::memcpy(&low, &l, 4);
    std::memcpy(&high, &h, 4);
  } else {
    low = half(word & 0xffffU);
    high = half(word >> 16);
  }
}

/// Plain version for any host; AVX2 hosts get a vectorised clone of it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=haswell", "default")))
#endif
void mma_portable(const Operands& operands, bool bfloat, int depth) {
  float rows[16][16];
  const int a_registers = depth / 4;
  for (int r = 0; r < a_registers; ++r) {
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4 + 8 * (r & 1);
      const int k = 2 * (lane % 4) + 8 * (r >> 1);
      decode_lane(operands.a(r)[lane], bfloat, rows[row][k], rows[row][k + 1]);
    }
  }
  for (std::uint32_t m = 0; m < operands.count(); ++m) {
    float columns[16][8];
    for (int r = 0; r < depth / 8; ++r) {
      for (int lane = 0; lane < 32; ++lane) {
        const int k = 2 * (lane % 4) + 8 * r;
        decode_lane(operands.b(m, r)[lane], bfloat, columns[k][lane / 4], columns[k + 1][lane / 4]);
      }
    }
    Sums<float> sums(operands, m);
    for (int row = 0; row < 16; ++row) {
      float sum[8];
      for (int n = 0; n < 8; ++n) sum[n] = sums.at(row, n);
      for (int k = 0; k < depth; ++k) {
        for (int n = 0; n < 8; ++n) sum[n] = __builtin_fmaf(rows[row][k], columns[k][n], sum[n]);
      }
      for (int n = 0; n < 8; ++n) sums.at(row, n) = sum[n];
    }
    sums.store(operands, m);
  }
}

#if defined(__x86_64__)

#define BRAID_CPU_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c")))

struct Pair {
  __m512 low, high;
};

constexpr __mmask16 kAll = 0xffff;

/// The forms with a full mask, here and below: those without start from an undefined vector, which
/// GCC's own header makes of an uninitialised one, with a warning. The code is the same.
template <bool kBfloat>
BRAID_CPU_AVX512 inline Pair decode(Words words) {
  const __m512i raw = _mm512_loadu_si512(words);
  if constexpr (kBfloat) {
    return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, raw, 16)),
            _mm512_castsi512_ps(
                _mm512_and_si512(raw, _mm512_set1_epi32(static_cast<int>(0xffff0000))))};
  }
  const __m256i low = _mm512_maskz_cvtepi32_epi16(kAll, raw);
  const __m256i high = _mm512_maskz_cvtepi32_epi16(kAll, _mm512_maskz_srli_epi32(kAll, raw, 16));
  return {_mm512_maskz_cvtph_ps(kAll, low), _mm512_maskz_cvtph_ps(kAll, high)};
}

/// Copies element T of every group of four lanes to the whole group.
template <int T>
BRAID_CPU_AVX512 inline __m512 spread(__m512 v) {
  return _mm512_maskz_permute_ps(kAll, v, T * 0x55);
}

/// Four values, four times.
BRAID_CPU_AVX512 inline __m512 repeat(const float* four) {
  return _mm512_maskz_broadcast_f32x4(kAll, _mm_load_ps(four));
}

/// In registers a lane is (row, column pair): four lanes of a 128-bit group share a row. For each k
/// the rows of A, spread over their groups, multiply four values of B that repeat in every group.
template <bool kBfloat, int kDepth>
BRAID_CPU_AVX512 void mma_avx512(const Operands& operands) {
  // expanded[k][quarter]: rows 0-3, 4-7, 8-11, 12-15 of column k of A.
  alignas(64) float expanded[16][4][16];
  for (int r = 0; r < kDepth / 4; ++r) {
    for (int half = 0; half < 2; ++half) {
      const Pair pair = decode<kBfloat>(operands.a(r) + 16 * half);
      const int quarter = 2 * (r & 1) + half;
      float(*to)[4][16] = expanded + 8 * (r >> 1);
      _mm512_store_ps(to[0][quarter], spread<0>(pair.low));
      _mm512_store_ps(to[1][quarter], spread<0>(pair.high));
      _mm512_store_ps(to[2][quarter], spread<1>(pair.low));
      _mm512_store_ps(to[3][quarter], spread<1>(pair.high));
      _mm512_store_ps(to[4][quarter], spread<2>(pair.low));
      _mm512_store_ps(to[5][quarter], spread<2>(pair.high));
      _mm512_store_ps(to[6][quarter], spread<3>(pair.low));
      _mm512_store_ps(to[7][quarter], spread<3>(pair.high));
    }
  }
  // Lane n * 4 + t of a B register holds column n: take the even and the odd columns, t outermost.
  const __m512i even = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(4));
  for (std::uint32_t m = 0; m < operands.count(); ++m) {
    // By parity of the column, then k / 8, k % 2 and (k % 8) / 2: four columns each.
    alignas(64) float columns[2][kDepth / 8][2][4][4];
    for (int r = 0; r < kDepth / 8; ++r) {
      const Pair first = decode<kBfloat>(operands.b(m, r));
      const Pair second = decode<kBfloat>(operands.b(m, r) + 16);
      for (int parity = 0; parity < 2; ++parity) {
        const __m512i order = parity == 0 ? even : odd;
        float(*to)[4][4] = columns[parity][r];
        _mm512_store_ps(to[0][0], _mm512_permutex2var_ps(first.low, order, second.low));
        _mm512_store_ps(to[1][0], _mm512_permutex2var_ps(first.high, order, second.high));
      }
    }
    __m512 s00 = _mm512_loadu_ps(operands.c(m, 0));
    __m512 s01 = _mm512_loadu_ps(operands.c(m, 0) + 16);
    __m512 s10 = _mm512_loadu_ps(operands.c(m, 1));
    __m512 s11 = _mm512_loadu_ps(operands.c(m, 1) + 16);
    __m512 s20 = _mm512_loadu_ps(operands.c(m, 2));
    __m512 s21 = _mm512_loadu_ps(operands.c(m, 2) + 16);
    __m512 s30 = _mm512_loadu_ps(operands.c(m, 3));
    __m512 s31 = _mm512_loadu_ps(operands.c(m, 3) + 16);
#pragma GCC unroll 16
    for (int k = 0; k < kDepth; ++k) {
      const __m512 e = repeat(columns[0][k / 8][k % 2][k % 8 / 2]);
      const __m512 o = repeat(columns[1][k / 8][k % 2][k % 8 / 2]);
      const __m512 a0 = _mm512_load_ps(expanded[k][0]);
      const __m512 a1 = _mm512_load_ps(expanded[k][1]);
      const __m512 a2 = _mm512_load_ps(expanded[k][2]);
      const __m512 a3 = _mm512_load_ps(expanded[k][3]);
      s00 = _mm512_fmadd_ps(a0, e, s00);
      s01 = _mm512_fmadd_ps(a1, e, s01);
      s10 = _mm512_fmadd_ps(a0, o, s10);
      s11 = _mm512_fmadd_ps(a1, o, s11);
      s20 = _mm512_fmadd_ps(a2, e, s20);
      s21 = _mm512_fmadd_ps(a3, e, s21);
      s30 = _mm512_fmadd_ps(a2, o, s30);
      s31 = _mm512_fmadd_ps(a3, o, s31);
    }
    _mm512_storeu_ps(operands.d(m, 0), s00);
    _mm512_storeu_ps(operands.d(m, 0) + 16, s01);
    _mm512_storeu_ps(operands.d(m, 1), s10);
    _mm512_storeu_ps(operands.d(m, 1) + 16, s11);
    _mm512_storeu_ps(operands.d(m, 2), s20);
    _mm512_storeu_ps(operands.d(m, 2) + 16, s21);
    _mm512_storeu_ps(operands.d(m, 3), s30);
    _mm512_storeu_ps(operands.d(m, 3) + 16, s31);
  }
}

#endif

bool host_has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
#else
  return false;
#endif
}

void multiply(const Operands& operands, bool bfloat, int depth) {
  static const bool kWide = host_has_avx512();
#if defined(__x86_64__)
  if (kWide) {
    const auto run = bfloat ? (depth == 16 ? mma_avx512<true, 16> : mma_avx512<true, 8>)
                            : (depth == 16 ? mma_avx512<false, 16> : mma_avx512<false, 8>);
    run(operands);
    return;
  }
#endif
  mma_portable(operands, bfloat, depth);
}

/// The values of all codes of an 8-bit float.
std::array<float, 256> float8_values(bool e5m2) {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 256; ++code) {
    values[code] = std::bit_cast<float>(from_float8(code, e5m2));
  }
  return values;
}

/// m16n8k32 over 8-bit floats: the same order of k, four of a lane first.
void multiply_float8(const Operands& operands, std::uint32_t code) {
  static const std::array<float, 256> kE4m3 = float8_values(false);
  static const std::array<float, 256> kE5m2 = float8_values(true);
  const auto& of_a = (code & kMmaE5m2A) != 0 ? kE5m2 : kE4m3;
  const auto& of_b = (code & kMmaE5m2B) != 0 ? kE5m2 : kE4m3;
  float rows[16][32];
  for (int r = 0; r < 4; ++r) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int byte = 0; byte < 4; ++byte) {
        const std::uint32_t bits = operands.a(r)[lane] >> (8 * byte) & 0xffU;
        rows[lane / 4 + 8 * (r & 1)][4 * (lane % 4) + 16 * (r >> 1) + byte] = of_a[bits];
      }
    }
  }
  for (std::uint32_t m = 0; m < operands.count(); ++m) {
    float columns[32][8];
    for (int r = 0; r < 2; ++r) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int byte = 0; byte < 4; ++byte) {
          const std::uint32_t bits = operands.b(m, r)[lane] >> (8 * byte) & 0xffU;
          columns[4 * (lane % 4) + 16 * r + byte][lane / 4] = of_b[bits];
        }
      }
    }
    Sums<float> sums(operands, m);
    for (int row = 0; row < 16; ++row) {
      for (int n = 0; n < 8; ++n) {
        float& sum = sums.at(row, n);
        for (int k = 0; k < 32; ++k) sum = __builtin_fmaf(rows[row][k], columns[k][n], sum);
      }
    }
    sums.store(operands, m);
  }
}

/// The places of C, and of the rows of A and columns of B in fragments whose 32-bit registers hold
/// 32 / `bits` elements each: body(row, column, sum, product(k)).
template <class Sum, class Element, class Decode, class Step>
void multiply_plain(const Operands& operands, int depth, int per_register, Decode&& decode,
                    Step&& step) {
  const int half = 4 * per_register;  // of k, in one register of all lanes
  for (std::uint32_t m = 0; m < operands.count(); ++m) {
    Element rows[16][32];
    Element columns[8][32];
    for (int k = 0; k < depth; ++k) {
      const int lane = k % half / per_register;
      const int at = k % per_register;
      for (int row = 0; row < 16; ++row) {
        const int r = row / 8 + 2 * (k / half);
        rows[row][k] = decode(operands.a(r)[4 * (row % 8) + lane], at, true);
      }
      for (int n = 0; n < 8; ++n) {
        columns[n][k] = decode(operands.b(m, k / half)[4 * n + lane], at, false);
      }
    }
    Sums<Sum> sums(operands, m);
    for (int row = 0; row < 16; ++row) {
      for (int n = 0; n < 8; ++n) {
        Sum& sum = sums.at(row, n);
        sum = step(sum, rows[row], columns[n], depth);
      }
    }
    sums.store(operands, m);
  }
}

void multiply_tf32(const Operands& operands, std::uint32_t code) {
  const auto decode = [](std::uint32_t word, int, bool) {
    return std::bit_cast<float>(word & 0xffffe000U);
  };
  const auto step = [](float sum, const float* row, const float* column, int depth) {
    for (int k = 0; k < depth; ++k) sum = __builtin_fmaf(row[k], column[k], sum);
    return sum;
  };
  multiply_plain<float, float>(operands, (code & kMmaShort) != 0 ? 4 : 8, 1, decode, step);
}

void multiply_int8(const Operands& operands, std::uint32_t code) {
  const auto decode = [&](std::uint32_t word, int at, bool of_a) -> std::int32_t {
    const auto byte = static_cast<std::uint8_t>(word >> (8 * at));
    const bool is_signed = (code & (of_a ? kMmaSignedA : kMmaSignedB)) != 0;
    return is_signed ? static_cast<std::int8_t>(byte) : byte;
  };
  const auto step = [&](std::int32_t start, const std::int32_t* row, const std::int32_t* column,
                        int depth) {
    std::int64_t sum = start;
    for (int k = 0; k < depth; ++k) sum += row[k] * column[k];
    if ((code & kMmaSaturate) != 0) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
    return static_cast<std::int32_t>(sum);
  };
  multiply_plain<std::int32_t, std::int32_t>(operands, (code & kMmaShort) != 0 ? 16 : 32, 4, decode,
                                             step);
}

std::uint32_t to_half(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  bits &= 0x7fffffffU;
  float size = 0;
  std::memcpy(&size, &bits, 4);
  if (size != size) return 0x7fff;
  if (size >= 65520.0F) return sign | 0x7c00;
  if (size < 0x1p-14F) {
    const float sum = size + 0.5F;
    std::memcpy(&bits, &sum, 4);
    return sign | (bits - 0x3f000000U);
  }
  bits -= 112U << 23;
  bits += 0xfffU + ((bits >> 13) & 1U);
  return sign | (bits >> 13);
}

/// f16 sums are two registers of pairs: widen, accumulate in f32, round once.
void multiply_half_sum(const Operands& operands, std::uint32_t code) {
  // A, B and the wide sums of one product.
  static constexpr std::uint32_t kPlaces[] = {0,   128,  256,  384, 512, 640,  768,
                                              896, 1024, 1152, 768, 896, 1024, 1152};
  alignas(64) std::uint8_t file[1280];
  float* wide = reinterpret_cast<float*>(file + 768);
  for (std::uint32_t m = 0; m < operands.count(); ++m) {
    const int halves = (code & kMmaShort) != 0 ? 1 : 2;
    for (int r = 0; r < 2 * halves; ++r) std::memcpy(file + 128 * r, operands.a(r), 128);
    for (int r = 0; r < halves; ++r) std::memcpy(file + 512 + 128 * r, operands.b(m, r), 128);
    for (int r = 0; r < 2; ++r) {
      std::uint32_t packed[32];
      std::memcpy(packed, operands.c(m, r), sizeof(packed));
      for (int l = 0; l < 32; ++l) {
        decode_lane(packed[l], false, wide[64 * r + l], wide[64 * r + 32 + l]);
      }
    }
    multiply_fragments(file, kPlaces, 1, code & ~kMmaHalfSum);
    for (int r = 0; r < 2; ++r) {
      std::uint32_t packed[32];
      for (int l = 0; l < 32; ++l) {
        packed[l] = to_half(wide[64 * r + l]) | (to_half(wide[64 * r + 32 + l]) << 16);
      }
      std::memcpy(operands.d(m, r), packed, sizeof(packed));
    }
  }
}

}  // namespace

void multiply_fragments(std::uint8_t* registers, const std::uint32_t* places, std::uint32_t count,
                        std::uint32_t code) {
  const Operands operands(registers, places, count);
  if ((code & kMmaHalfSum) != 0) {
    multiply_half_sum(operands, code);
  } else if ((code & kMmaFloat8) != 0) {
    multiply_float8(operands, code);
  } else if ((code & kMmaTf32) != 0) {
    multiply_tf32(operands, code);
  } else if ((code & kMmaInt8) != 0) {
    multiply_int8(operands, code);
  } else {
    multiply(operands, (code & kMmaBfloat) != 0, (code & kMmaShort) != 0 ? 8 : 16);
  }
}

}  // namespace braid::cpu

extern "C" {
static void braid_cpu_mma(std::uint8_t* registers, const std::uint32_t* places, std::uint32_t count,
                          std::uint32_t code) {
  braid::cpu::multiply_fragments(registers, places, count, code);
}
}

namespace braid::cpu {

std::span<const RuntimeHelper> mma_helpers() {
  static const std::array kHelpers = {
      RuntimeHelper{"braid_cpu_mma", reinterpret_cast<void*>(&braid_cpu_mma)}};
  return kHelpers;
}

}  // namespace braid::cpu
