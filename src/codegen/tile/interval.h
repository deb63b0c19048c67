#pragma once

#include <cstdint>
#include <limits>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Bounds of the numbers that an integer value holds; those of all 64-bit integers where nothing
/// is known.
struct Interval {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
[[nodiscard]] Interval interval_of(const Program& program, Id value);
[[nodiscard]] Interval interval_of(DType dtype);

/// Whether all are multiples of the factor.
[[nodiscard]] bool is_multiple(const Program& program, Id value, std::int64_t factor);

}  // namespace braid::tile
