#pragma once

#include <compare>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lowering/plan/pack/interval.h"

namespace braid {

/// Intervals that are packed as one.
struct Block {
  Interval whole;
  std::vector<std::pair<int, std::int64_t>> parts;  ///< (interval, its offset in the block)
};

/// How far intervals are joined. Each step leaves less to decide, and may lose packings.
enum class Joining : std::uint8_t {
  kNone,
  kStacks,  ///< those with the same lifetime lie on top of each other
  kChains,  ///< and where one alone of its size ends when one alone of it begins, they follow
};

/// Two blocks, by their first intervals, become one: the second lies on the first or follows it.
struct Join {
  int first = 0, second = 0;
  bool follows = false;
  auto operator<=>(const Join&) const = default;
};
/// As many as there are, one after the other, but none of those that are refused.
[[nodiscard]] std::vector<Join> joins_of(std::span<const Interval> intervals, Joining joining,
                                         const std::set<Join>& refused = {});
[[nodiscard]] std::vector<Block> join(std::span<const Interval> intervals,
                                      std::span<const Join> joins);
[[nodiscard]] inline std::vector<Block> join(std::span<const Interval> intervals, Joining joining) {
  return join(intervals, joins_of(intervals, joining));
}

/// Looks for joins that leave few blocks. A wrong one stands in the way of others: where intervals
/// were cut out of larger ones the right ones leave the fewest.
class JoinSearch {
 public:
  explicit JoinSearch(std::span<const Interval> intervals)
      : intervals_(intervals.begin(), intervals.end()) {
    restart();
  }
  [[nodiscard]] const std::vector<Join>& joins() const { return joins_; }
  /// Refuses a join or two, or no longer; goes back where that leaves more blocks.
  void step();
  void restart();

 private:
  [[nodiscard]] std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  std::vector<Interval> intervals_;
  std::set<Join> refused_;
  std::vector<Join> joins_;
  std::mt19937_64 random_{1};
};

/// Offsets of the intervals from those of the blocks.
[[nodiscard]] std::vector<std::int64_t> offsets_of(std::span<const Block> blocks,
                                                   std::span<const std::int64_t> offsets);

}  // namespace braid
