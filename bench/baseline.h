#pragma once

#include <cstdint>

namespace braid::bench {

/// The pinned baselines of the cpu device: what a C++ programmer writes first. One thread. The same
/// source under two settings of the compiler, see CMakeLists.txt.

/// c = a b for row-major n x n floats, loops in ikj order.
using BaselineGemm = void(const float* a, const float* b, float* c, std::int64_t n);

/// y = x * rsqrt(mean(x^2) + eps) * g on bf16[rows, width], row by row.
using BaselineRmsNorm = void(const std::uint16_t* x, const std::uint16_t* g, std::uint16_t* y,
                             std::int64_t rows, std::int64_t width, float eps);

namespace o3 {
BaselineGemm gemm;
BaselineRmsNorm rms_norm;
}  // namespace o3

namespace ofast {
BaselineGemm gemm;
BaselineRmsNorm rms_norm;
}  // namespace ofast

}  // namespace braid::bench
