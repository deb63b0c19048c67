#include "baseline.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace braid::bench::BRAID_BASELINE {

namespace {

float to_float(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

void gemm(const float* a, const float* b, float* c, std::int64_t n) {
  std::memset(c, 0, static_cast<std::size_t>(n * n) * sizeof(float));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < n; ++k) {
      const float x = a[i * n + k];
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += x * b[k * n + j];
    }
  }
}

void rms_norm(const std::uint16_t* x, const std::uint16_t* g, std::uint16_t* y, std::int64_t rows,
              std::int64_t width, float eps) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    float sum = 0;
    for (std::int64_t i = 0; i < width; ++i) sum += to_float(x[i]) * to_float(x[i]);
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
    for (std::int64_t i = 0; i < width; ++i)
      y[i] = to_bf16(to_float(x[i]) * scale * to_float(g[i]));
  }
}

}  // namespace braid::bench::BRAID_BASELINE
