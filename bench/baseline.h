#pragma once

#include <cstdint>

namespace braid::bench {

/// The pinned baselines of the cpu device: what a C++ programmer writes first. One thread. Their
/// compile options are set in CMakeLists.txt.

/// c = a b for row-major n x n floats, loops in ikj order.
void baseline_gemm(const float* a, const float* b, float* c, std::int64_t n);

/// y = x * rsqrt(mean(x^2) + eps) * g on bf16[rows, width], row by row.
void baseline_rms_norm(const std::uint16_t* x, const std::uint16_t* g, std::uint16_t* y,
                       std::int64_t rows, std::int64_t width, float eps);

}  // namespace braid::bench
