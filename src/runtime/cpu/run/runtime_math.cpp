#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/rounding_scope.h"
#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/run/small_float.h"

// Elementwise helpers over 32 lanes. The hot ones are cloned for the vector units of the host.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    defined(__GNUC__) && !defined(__clang__)
#define BRAID_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BRAID_CPU_CLONES
#endif

namespace braid::cpu {
namespace {

constexpr int kLanes = 32;
/// `.ftz`: a subnormal becomes a zero of its sign.
inline float flushed(float x, bool ftz) {
  return ftz && std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
}

template <auto kFunction>
void each(float* out, const float* in, std::uint32_t ftz) {
  for (int l = 0; l < kLanes; ++l) {
    out[l] = flushed(kFunction(flushed(in[l], ftz != 0)), ftz != 0);
  }
}

/// Rounds by `round`, of a number of steps, beyond the largest to `most`.
template <class Round>
std::uint32_t to_small_float(std::uint32_t bits, const SmallFloat& type, std::uint32_t most,
                             const Round& round) {
  const std::uint32_t sign = (bits >> 31) << (type.bits - 1);
  const float size = std::fabs(std::bit_cast<float>(bits));
  if (size != size) return type.nan;
  if (std::isinf(size)) return sign | most;
  const int exponent = std::max(size == 0 ? type.lowest : std::ilogb(size), type.lowest);
  // A power of two scales exactly, so only this rounds.
  const double steps = round(std::ldexp(double{size}, type.fraction - exponent));
  const auto code = static_cast<std::uint32_t>(steps) +
                    (static_cast<std::uint32_t>(exponent - type.lowest) << type.fraction);
  return sign | std::min(code, most);
}

/// The exponent of an f32 alone, up where `mode` has bit 0, and finite where it has bit 1.
std::uint32_t to_exponent(std::uint32_t bits, std::uint32_t mode) {
  const std::uint32_t size = bits & 0x7fffffffU;
  if (size > 0x7f800000) return 0xff;
  std::uint32_t code = size >> 23;
  // The least that there is is 2^-127, half of an f32's smallest normal.
  if ((mode & 1U) != 0 && (size & 0x7fffffU) != 0 && size > 0x400000) ++code;
  return (mode & 2U) != 0 ? std::min(code, 0xfeU) : code;
}

/// fns: the bit of the n-th one at or above (n > 0) or below (n < 0) `base`, or all ones.
std::uint32_t find_set(std::uint32_t mask, std::uint32_t base, std::int32_t n) {
  if (base > 31) return ~0U;
  if (n == 0) return ((mask >> base) & 1) != 0 ? base : ~0U;
  std::int64_t left = n > 0 ? n : -std::int64_t{n};
  const std::int32_t step = n > 0 ? 1 : -1;
  for (auto at = static_cast<std::int32_t>(base); at >= 0 && at < 32; at += step) {
    if (((mask >> at) & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
  }
  return ~0U;
}

BRAID_CPU_CLONES void fma_lanes(float* out, const float* a, const float* b, const float* c) {
  for (int l = 0; l < kLanes; ++l) out[l] = std::fma(a[l], b[l], c[l]);
}

template <class T, class Operation>
void rounded(T* out, const T* a, const T* b, std::uint32_t mode) {
  const RoundingScope scope(mode);
  for (int l = 0; l < kLanes; ++l) out[l] = Operation{}(a[l], b[l]);
}

template <class T>
void rounded_root(T* out, const T* a, std::uint32_t mode) {
  const RoundingScope scope(mode);
  for (int l = 0; l < kLanes; ++l) out[l] = std::sqrt(a[l]);
}

void each_to_small_float(std::uint32_t* out, const std::uint32_t* in, std::uint32_t type) {
  const SmallFloat& to = kSmallFloats[type];
  for (int l = 0; l < kLanes; ++l) {
    out[l] = to_small_float(in[l], to, to.largest, [](double x) { return std::nearbyint(x); });
  }
}
/// Up where the 16 random bits carry when they are added to the highest bits that are cut off.
/// `mode`: the type, and 16 where what is beyond the largest becomes that.
void round_by_bits(std::uint32_t* out, const std::uint32_t* in, const std::uint32_t* random,
                   std::uint32_t mode) {
  const SmallFloat& to = kSmallFloats[mode & 15U];
  const std::uint32_t most = to.largest + ((mode & 16U) != 0 ? 0 : 1);
  for (int l = 0; l < kLanes; ++l) {
    out[l] = to_small_float(in[l], to, most, [&](double x) {
      return std::floor(x + std::ldexp(static_cast<double>(random[l]), -16));
    });
  }
}
void each_from_small_float(std::uint32_t* out, const std::uint32_t* in, std::uint32_t type) {
  for (int l = 0; l < kLanes; ++l) {
    out[l] = from_small_float(in[l], type);
  }
}
void each_to_exponent(std::uint32_t* out, const std::uint32_t* in, std::uint32_t mode) {
  for (int l = 0; l < kLanes; ++l) out[l] = to_exponent(in[l], mode);
}
void each_find_set(std::uint32_t* out, const std::uint32_t* mask, const std::uint32_t* base,
                   const std::uint32_t* n) {
  for (int l = 0; l < kLanes; ++l) {
    out[l] = find_set(mask[l], base[l], static_cast<std::int32_t>(n[l]));
  }
}

void fma_f32(float* out, const float* a, const float* b, const float* c, std::uint32_t mode) {
  const RoundingScope scope(mode);
  fma_lanes(out, a, b, c);
}
void fma_f64(double* out, const double* a, const double* b, const double* c, std::uint32_t mode) {
  const RoundingScope scope(mode);
  for (int l = 0; l < kLanes; ++l) out[l] = std::fma(a[l], b[l], c[l]);
}

/// The f32 result lies in the low half of each 64-bit lane.
void f64_to_f32(std::uint64_t* out, const double* in, std::uint32_t mode) {
  const RoundingScope scope(mode);
  for (int l = 0; l < kLanes; ++l) {
    const auto value = static_cast<float>(in[l]);
    out[l] = std::bit_cast<std::uint32_t>(value);
  }
}

/// mode: the rounding, 4 for signed input, 8 to truncate with a sticky last bit.
void int_to_f32(std::uint64_t* out, const std::uint64_t* in, std::uint32_t mode) {
  const bool sticky = (mode & 8) != 0;
  const RoundingScope scope(sticky ? 1 : mode);
  for (int l = 0; l < kLanes; ++l) {
    const long double wide = (mode & 4) != 0
                                 ? static_cast<long double>(static_cast<std::int64_t>(in[l]))
                                 : static_cast<long double>(in[l]);
    const auto value = static_cast<float>(wide);
    const bool inexact = sticky && static_cast<long double>(value) != wide;
    out[l] = std::bit_cast<std::uint32_t>(value) | static_cast<std::uint32_t>(inexact);
  }
}

void int_to_f64(std::uint64_t* out, const std::uint64_t* in, std::uint32_t mode) {
  const RoundingScope scope(mode);
  for (int l = 0; l < kLanes; ++l) {
    const long double wide = (mode & 4) != 0
                                 ? static_cast<long double>(static_cast<std::int64_t>(in[l]))
                                 : static_cast<long double>(in[l]);
    const auto value = static_cast<double>(wide);
    out[l] = std::bit_cast<std::uint64_t>(value);
  }
}

std::uint64_t clock() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

std::vector<RuntimeHelper> math_helpers() {
  return {{"lg2", each<[](float x) { return std::log2(x); }>},
          {"sin", each<[](float x) { return std::sin(x); }>},
          {"cos", each<[](float x) { return std::cos(x); }>},
          {"tanh", each<[](float x) { return std::tanh(x); }>},
          {"add_f32", rounded<float, std::plus<>>},
          {"sub_f32", rounded<float, std::minus<>>},
          {"mul_f32", rounded<float, std::multiplies<>>},
          {"div_f32", rounded<float, std::divides<>>},
          {"add_f64", rounded<double, std::plus<>>},
          {"sub_f64", rounded<double, std::minus<>>},
          {"mul_f64", rounded<double, std::multiplies<>>},
          {"div_f64", rounded<double, std::divides<>>},
          {"sqrt_f32", rounded_root<float>},
          {"sqrt_f64", rounded_root<double>},
          {"fma_f32", fma_f32},
          {"fma_f64", fma_f64},
          {"f64_to_f32", f64_to_f32},
          {"int_to_f32", int_to_f32},
          {"int_to_f64", int_to_f64},
          {"clock", clock},
          {"to_small_float", each_to_small_float},
          {"round_by_bits", round_by_bits},
          {"from_small_float", each_from_small_float},
          {"to_exponent", each_to_exponent},
          {"find_set", each_find_set}};
}

}  // namespace braid::cpu
