#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "pack/interval.h"

namespace braid {

/// Packs as an allocator would: in time order, each interval into the smallest free block that
/// fits. O(n log n).
[[nodiscard]] Packing pack_by_time(std::span<const Interval> intervals);

/// The primary sort key; largest first.
enum class PackOrder : unsigned char { kSize, kArea, kLength };
inline constexpr PackOrder kPackOrders[] = {PackOrder::kSize, PackOrder::kArea, PackOrder::kLength};

/// For each interval those that overlap it in time.
using Neighbours = std::vector<std::vector<int>>;
/// Empty where there are more than `limit` pairs.
[[nodiscard]] Neighbours neighbours_of(std::span<const Interval> intervals, std::size_t limit);

/// Places the intervals in the given order, each into the smallest gap among those that it
/// overlaps.
[[nodiscard]] Packing pack_in_order(std::span<const Interval> intervals,
                                    const Neighbours& neighbours, PackOrder order);

/// "Squeaky wheel" optimization (Joslin, Clements, 1999): starts with the largest first, each into
/// the lowest gap; intervals that end up too high move forward in the next turn.
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

/// The best of all heuristics except PackInTurns. Where too many pairs overlap, pack_by_time alone.
[[nodiscard]] Packing pack_quickly(std::span<const Interval> intervals);

}  // namespace braid
