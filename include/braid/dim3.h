#pragma once

#include <cstdint>

namespace braid {

/// A grid or block extent, or a place in one, as in CUDA.
struct Dim3 {
  std::uint32_t x = 1;                           ///< innermost
  std::uint32_t y = 1;                           ///< next
  std::uint32_t z = 1;                           ///< outermost
  bool operator==(const Dim3&) const = default;  ///< of all three
  /// Their product.
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

}  // namespace braid
