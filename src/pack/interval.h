#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// An interval to place: `size` bytes, live in [lower, upper), at an offset that is a multiple of
/// `alignment`.
struct Interval {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t size = 0;
  std::int64_t alignment = 1;
};

/// An offset for each interval, such that no two that overlap in time overlap in bytes.
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

/// The most bytes that live at one time, a lower bound of any packing.
[[nodiscard]] std::int64_t most_live(std::span<const Interval> intervals);

}  // namespace braid
