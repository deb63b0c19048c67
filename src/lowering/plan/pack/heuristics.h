#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "lowering/plan/pack/interval.h"

namespace braid {

/// As an allocator would: in the order of time, each interval into the smallest free block that
/// fits. O(n log n).
[[nodiscard]] Packing pack_by_time(std::span<const Interval> intervals);

/// The first key decides: the largest goes first.
enum class PackOrder : unsigned char { kSize, kArea, kLength };
inline constexpr PackOrder kPackOrders[] = {PackOrder::kSize, PackOrder::kArea, PackOrder::kLength};

/// For each interval those that it meets.
using Neighbours = std::vector<std::vector<int>>;
/// Nothing where there are more than `limit` pairs.
[[nodiscard]] Neighbours neighbours_of(std::span<const Interval> intervals, std::size_t limit);

/// In the given order, each interval into the smallest gap that fits among those that it meets.
[[nodiscard]] Packing pack_in_order(std::span<const Interval> intervals,
                                    const Neighbours& neighbours, PackOrder order);

/// "Squeaky wheel" optimization (Joslin, Clements, 1999): the largest go first, each into the
/// lowest gap; those that end up too high go earlier in the next turn.
class PackInTurns {
 public:
  explicit PackInTurns(std::vector<Interval> intervals);
  [[nodiscard]] Packing turn();

 private:
  std::vector<Interval> intervals_;
  Neighbours neighbours_;
  std::vector<int> queue_;
  std::vector<double> weight_;
  std::int64_t bound_, best_;
  std::mt19937_64 random_{1};
};

/// The best of all but turns. Where many meet many, by time alone.
[[nodiscard]] Packing pack_quickly(std::span<const Interval> intervals);

}  // namespace braid
