#pragma once

#include <cstdint>

namespace braid {

/// A grid or block extent, or a place in one, as in CUDA.
struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

}  // namespace braid
