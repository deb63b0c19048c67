#include <array>
#include <bit>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "runtime/cpu/runtime_helpers.h"

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
constexpr std::array<int, 4> kHostRounding = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/// Sets the host's rounding mode while it lives.
class RoundingScope {
 public:
  explicit RoundingScope(std::uint32_t mode) : saved_(std::fegetround()) {
    std::fesetround(kHostRounding[mode & 3]);
  }
  ~RoundingScope() { std::fesetround(saved_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int saved_;
};

/// Keeps the compiler from moving arithmetic out of the rounding scope.
template <class T>
T opaque(T value) {
  volatile T copy = value;
  return copy;
}

template <class T, class Operation>
void rounded(T* out, const T* a, const T* b, std::uint32_t mode, Operation&& operation) {
  const RoundingScope scope(mode);
  for (int l = 0; l < kLanes; ++l) out[l] = opaque(operation(opaque(a[l]), opaque(b[l])));
}

template <class T, class Operation>
void each(T* out, const T* in, Operation&& operation) {
  for (int l = 0; l < kLanes; ++l) out[l] = operation(in[l]);
}

/// 2^x within 2 ulp: a polynomial on [-0.5, 0.5], scaled in two steps so that subnormal results
/// come out right.
inline float exp2_lane(float x) {
  const float clamped = x < -160.0F ? -160.0F : (x > 130.0F ? 130.0F : x);
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = clamped + kMagic;
  const int n = std::bit_cast<int>(shifted) - std::bit_cast<int>(kMagic);
  const float f = clamped - (shifted - kMagic);
  float p = 1.5403530e-4F;
  p = p * f + 1.3333558e-3F;
  p = p * f + 9.6181291e-3F;
  p = p * f + 5.5504109e-2F;
  p = p * f + 2.4022651e-1F;
  p = p * f + 6.9314718e-1F;
  p = p * f + 1.0F;
  const int half = n >> 1;
  const int rest = n - half;
  const float low = std::bit_cast<float>((half + 127) << 23);
  const float high = std::bit_cast<float>((rest + 127) << 23);
  const float result = p * low * high;
  return x != x ? x : result;
}

BRAID_CPU_CLONES void exp2_lanes(float* out, const float* in) {
  for (int l = 0; l < kLanes; ++l) out[l] = exp2_lane(in[l]);
}

}  // namespace
}  // namespace braid::cpu

extern "C" {

static void braid_cpu_ex2(float* out, const float* in) { braid::cpu::exp2_lanes(out, in); }
static void braid_cpu_lg2(float* out, const float* in) {
  braid::cpu::each(out, in, [](float x) { return std::log2(x); });
}
static void braid_cpu_sin(float* out, const float* in) {
  braid::cpu::each(out, in, [](float x) { return std::sin(x); });
}
static void braid_cpu_cos(float* out, const float* in) {
  braid::cpu::each(out, in, [](float x) { return std::cos(x); });
}
static void braid_cpu_tanh(float* out, const float* in) {
  braid::cpu::each(out, in, [](float x) { return std::tanh(x); });
}

#define BRAID_CPU_ROUNDED(name, type, expression)                                            \
  static void name(type* out, const type* a, const type* b, std::uint32_t mode) {            \
    braid::cpu::rounded(out, a, b, mode, [](type x, type y) -> type { return expression; }); \
  }
BRAID_CPU_ROUNDED(braid_cpu_add_f32, float, x + y)
BRAID_CPU_ROUNDED(braid_cpu_sub_f32, float, x - y)
BRAID_CPU_ROUNDED(braid_cpu_mul_f32, float, x* y)
BRAID_CPU_ROUNDED(braid_cpu_div_f32, float, x / y)
BRAID_CPU_ROUNDED(braid_cpu_add_f64, double, x + y)
BRAID_CPU_ROUNDED(braid_cpu_sub_f64, double, x - y)
BRAID_CPU_ROUNDED(braid_cpu_mul_f64, double, x* y)
BRAID_CPU_ROUNDED(braid_cpu_div_f64, double, x / y)
#undef BRAID_CPU_ROUNDED

static void braid_cpu_sqrt_f32(float* out, const float* a, std::uint32_t mode) {
  braid::cpu::rounded(out, a, a, mode, [](float x, float) { return std::sqrt(x); });
}
static void braid_cpu_sqrt_f64(double* out, const double* a, std::uint32_t mode) {
  braid::cpu::rounded(out, a, a, mode, [](double x, double) { return std::sqrt(x); });
}
static void braid_cpu_fma_f32(float* out, const float* a, const float* b, const float* c,
                              std::uint32_t mode) {
  const braid::cpu::RoundingScope scope(mode);
  for (int l = 0; l < braid::cpu::kLanes; ++l) {
    out[l] = braid::cpu::opaque(std::fma(braid::cpu::opaque(a[l]), b[l], c[l]));
  }
}
static void braid_cpu_fma_f64(double* out, const double* a, const double* b, const double* c,
                              std::uint32_t mode) {
  const braid::cpu::RoundingScope scope(mode);
  for (int l = 0; l < braid::cpu::kLanes; ++l) {
    out[l] = braid::cpu::opaque(std::fma(braid::cpu::opaque(a[l]), b[l], c[l]));
  }
}

/// The f32 result lies in the low half of each 64-bit lane.
static void braid_cpu_f64_to_f32(std::uint64_t* out, const double* in, std::uint32_t mode) {
  const braid::cpu::RoundingScope scope(mode);
  for (int l = 0; l < braid::cpu::kLanes; ++l) {
    const auto value = braid::cpu::opaque(static_cast<float>(braid::cpu::opaque(in[l])));
    out[l] = std::bit_cast<std::uint32_t>(value);
  }
}

static void braid_cpu_int_to_f32(std::uint64_t* out, const std::uint64_t* in, std::uint32_t mode) {
  const braid::cpu::RoundingScope scope(mode);
  for (int l = 0; l < braid::cpu::kLanes; ++l) {
    const long double wide = (mode & 4) != 0
                                 ? static_cast<long double>(static_cast<std::int64_t>(in[l]))
                                 : static_cast<long double>(in[l]);
    const auto value = braid::cpu::opaque(static_cast<float>(braid::cpu::opaque(wide)));
    out[l] = std::bit_cast<std::uint32_t>(value);
  }
}

static void braid_cpu_int_to_f64(std::uint64_t* out, const std::uint64_t* in, std::uint32_t mode) {
  const braid::cpu::RoundingScope scope(mode);
  for (int l = 0; l < braid::cpu::kLanes; ++l) {
    const long double wide = (mode & 4) != 0
                                 ? static_cast<long double>(static_cast<std::int64_t>(in[l]))
                                 : static_cast<long double>(in[l]);
    const auto value = braid::cpu::opaque(static_cast<double>(braid::cpu::opaque(wide)));
    out[l] = std::bit_cast<std::uint64_t>(value);
  }
}

static std::uint64_t braid_cpu_clock() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
static std::uint64_t braid_cpu_globaltimer() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

}  // extern "C"

namespace braid::cpu {

#define BRAID_CPU_HELPER(name) \
  RuntimeHelper { #name, reinterpret_cast < void*>(&name) }

std::span<const RuntimeHelper> math_helpers() {
  static const std::array kHelpers = {
      BRAID_CPU_HELPER(braid_cpu_ex2),        BRAID_CPU_HELPER(braid_cpu_lg2),
      BRAID_CPU_HELPER(braid_cpu_sin),        BRAID_CPU_HELPER(braid_cpu_cos),
      BRAID_CPU_HELPER(braid_cpu_tanh),       BRAID_CPU_HELPER(braid_cpu_add_f32),
      BRAID_CPU_HELPER(braid_cpu_sub_f32),    BRAID_CPU_HELPER(braid_cpu_mul_f32),
      BRAID_CPU_HELPER(braid_cpu_div_f32),    BRAID_CPU_HELPER(braid_cpu_add_f64),
      BRAID_CPU_HELPER(braid_cpu_sub_f64),    BRAID_CPU_HELPER(braid_cpu_mul_f64),
      BRAID_CPU_HELPER(braid_cpu_div_f64),    BRAID_CPU_HELPER(braid_cpu_sqrt_f32),
      BRAID_CPU_HELPER(braid_cpu_sqrt_f64),   BRAID_CPU_HELPER(braid_cpu_fma_f32),
      BRAID_CPU_HELPER(braid_cpu_fma_f64),    BRAID_CPU_HELPER(braid_cpu_f64_to_f32),
      BRAID_CPU_HELPER(braid_cpu_int_to_f32), BRAID_CPU_HELPER(braid_cpu_int_to_f64),
      BRAID_CPU_HELPER(braid_cpu_clock),      BRAID_CPU_HELPER(braid_cpu_globaltimer),
  };
  return kHelpers;
}

#undef BRAID_CPU_HELPER

}  // namespace braid::cpu
