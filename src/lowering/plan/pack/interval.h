#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// What is to be placed: `size` bytes in [lower, upper) of time, at an offset that `alignment`
/// divides.
struct Interval {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t size = 0;
  std::int64_t alignment = 1;
};

/// Offsets for intervals, such that no two that meet in time overlap.
struct Packing {
  std::vector<std::int64_t> offsets;
  std::int64_t total = 0;  ///< the highest end
};

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

inline bool meet(const Interval& a, const Interval& b) {
  return a.lower < b.upper && b.lower < a.upper;
}

/// The most bytes that live at one time: no packing is smaller.
[[nodiscard]] std::int64_t most_live(std::span<const Interval> intervals);

}  // namespace braid
