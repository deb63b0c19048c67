#pragma once

#include <cstdint>

namespace braid {

/// An extent of a grid or a block, or an index in one, as in CUDA.
struct Dim3 {
  std::uint32_t x = 1;  ///< innermost
  std::uint32_t y = 1;
  std::uint32_t z = 1;  ///< outermost
  bool operator==(const Dim3&) const = default;
  /// x * y * z.
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

}  // namespace braid
