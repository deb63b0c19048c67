#pragma once

#include <compare>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "pack/interval.h"

namespace braid {

/// Intervals that are packed as a unit.
struct Block {
  Interval whole;
  std::vector<std::pair<int, std::int64_t>> parts;  ///< (interval, its offset in the block)
};

/// How intervals are joined. Each level leaves fewer decisions, and may lose packings.
enum class Joining : std::uint8_t {
  kNone,
  kStacks,  ///< intervals of equal lifetime are stacked
  kChains,  ///< also, where a unique interval of its size ends when another unique one begins, they
            ///< are chained
};

/// Joins two blocks, named by their first intervals: the second is stacked on the first or follows
/// it.
struct Join {
  int first = 0, second = 0;
  bool follows = false;
  auto operator<=>(const Join&) const = default;
};
/// All possible joins, one after the other, except refused ones.
[[nodiscard]] std::vector<Join> joins_of(std::span<const Interval> intervals, Joining joining,
                                         const std::set<Join>& refused = {});
[[nodiscard]] std::vector<Block> join(std::span<const Interval> intervals,
                                      std::span<const Join> joins);
[[nodiscard]] inline std::vector<Block> join(std::span<const Interval> intervals, Joining joining) {
  return join(intervals, joins_of(intervals, joining));
}

/// Searches for joins that leave few blocks. A wrong join prevents others: where intervals were cut
/// out of larger ones, the right joins leave the fewest blocks.
class JoinSearch {
 public:
  explicit JoinSearch(std::span<const Interval> intervals)
      : intervals_(intervals.begin(), intervals.end()) {
    restart();
  }
  [[nodiscard]] const std::vector<Join>& joins() const { return joins_; }
  /// Refuses a join or two more, or fewer; undoes that where it leaves more blocks.
  void step();
  void restart();

 private:
  [[nodiscard]] std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  std::vector<Interval> intervals_;
  std::set<Join> refused_;
  std::vector<Join> joins_;
  std::mt19937_64 random_{1};
};

/// The offsets of intervals, given those of the blocks.
[[nodiscard]] std::vector<std::int64_t> offsets_of(std::span<const Block> blocks,
                                                   std::span<const std::int64_t> offsets);

}  // namespace braid
