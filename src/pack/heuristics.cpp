#include "pack/heuristics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace braid {
namespace {

/// Limit of overlapping pairs, and of their inspections over all orders: about half a second.
constexpr std::size_t kMaxPairs = 4'000'000;
constexpr std::size_t kMaxLooks = 16'000'000;

/// Non-empty intervals in order of start; for equal starts the largest first.
std::vector<int> by_start(std::span<const Interval> intervals) {
  std::vector<int> order;
  order.reserve(intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].size > 0) order.push_back(i);
  }
  auto key = [&](int i) { return std::tuple(intervals[i].lower, -intervals[i].size, i); };
  std::ranges::sort(order, [&](int a, int b) { return key(a) < key(b); });
  return order;
}

/// A list of free blocks below a growing end; neighbours are merged.
class FreeList {
 public:
  std::int64_t take(std::int64_t size, std::int64_t alignment) {
    for (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end(); ++it) {
      const auto [bytes, offset] = *it;
      const std::int64_t start = round_up(offset, alignment);
      if (start + size > offset + bytes) continue;
      remove(offset, bytes);
      add(offset, start - offset);
      add(start + size, offset + bytes - start - size);
      return start;
    }
    // If the last free block reaches the end, only the rest is new.
    std::int64_t start = end_;
    if (!blocks_.empty()) {
      const auto [offset, bytes] = *blocks_.rbegin();
      if (offset + bytes == end_) {
        start = offset;
        remove(offset, bytes);
      }
    }
    const std::int64_t aligned = round_up(start, alignment);
    add(start, aligned - start);
    end_ = aligned + size;
    return aligned;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    auto next = blocks_.lower_bound(offset);
    if (next != blocks_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    auto previous = blocks_.lower_bound(offset);
    if (previous != blocks_.begin()) {
      --previous;
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        remove(previous->first, previous->second);
      }
    }
    add(offset, bytes);
  }

  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  void add(std::int64_t offset, std::int64_t bytes) {
    if (bytes == 0) return;
    blocks_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::int64_t offset, std::int64_t bytes) {
    blocks_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> blocks_;              ///< offset -> bytes
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  ///< (bytes, offset)
  std::int64_t end_ = 0;
};

}  // namespace

Packing pack_by_time(std::span<const Interval> intervals) {
  Packing packing{std::vector<std::int64_t>(intervals.size(), 0), 0};
  FreeList free;
  std::set<std::pair<std::int64_t, int>> active;  // (end, interval)
  for (const int i : by_start(intervals)) {
    const Interval& interval = intervals[i];
    while (!active.empty() && active.begin()->first <= interval.lower) {
      const int done = active.begin()->second;
      free.give(packing.offsets[done], intervals[done].size);
      active.erase(active.begin());
    }
    packing.offsets[i] = free.take(interval.size, interval.alignment);
    active.emplace(interval.upper, i);
  }
  packing.total = free.end();
  return packing;
}

Neighbours neighbours_of(std::span<const Interval> intervals, std::size_t limit) {
  Neighbours neighbours(intervals.size());
  std::vector<int> active;
  std::size_t pairs = 0;
  for (const int i : by_start(intervals)) {
    const std::int64_t now = intervals[i].lower;
    std::erase_if(active, [&](int j) { return intervals[j].upper <= now; });
    pairs += active.size();
    if (pairs > limit) return {};
    for (const int j : active) {
      neighbours[i].push_back(j);
      neighbours[j].push_back(i);
    }
    active.push_back(i);
  }
  return neighbours;
}

namespace {

enum class Fit : unsigned char { kFirst, kBest };

/// Places the intervals in the queue's order, each into a gap among those that it overlaps.
Packing place(std::span<const Interval> intervals, const Neighbours& neighbours,
              std::span<const int> queue, Fit fit) {
  Packing packing{std::vector<std::int64_t>(intervals.size(), 0), 0};
  std::vector<bool> placed(intervals.size(), false);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // [offset, end), by offset
  for (const int i : queue) {
    const Interval& interval = intervals[i];
    taken.clear();
    for (const int j : neighbours[i]) {
      if (!placed[j]) continue;
      taken.emplace_back(packing.offsets[j], packing.offsets[j] + intervals[j].size);
    }
    std::ranges::sort(taken);
    std::int64_t best = -1;
    std::int64_t best_gap = 0;
    std::int64_t end = 0;
    for (const auto& [from, to] : taken) {
      const std::int64_t start = round_up(end, interval.alignment);
      const std::int64_t gap = from - start;
      if (gap >= interval.size && (best < 0 || (fit == Fit::kBest && gap < best_gap))) {
        best = start;
        best_gap = gap;
      }
      end = std::max(end, to);
    }
    packing.offsets[i] = best >= 0 ? best : round_up(end, interval.alignment);
    packing.total = std::max(packing.total, packing.offsets[i] + interval.size);
    placed[i] = true;
  }
  return packing;
}

}  // namespace

Packing pack_in_order(std::span<const Interval> intervals, const Neighbours& neighbours,
                      PackOrder order) {
  const auto weight = [&](int i) -> double {
    const auto size = static_cast<double>(intervals[i].size);
    const auto length = static_cast<double>(intervals[i].upper - intervals[i].lower);
    return order == PackOrder::kSize ? size : order == PackOrder::kArea ? size * length : length;
  };
  std::vector<int> queue = by_start(intervals);
  std::ranges::stable_sort(queue, [&](int a, int b) { return weight(a) > weight(b); });
  return place(intervals, neighbours, queue, Fit::kBest);
}

PackInTurns::PackInTurns(std::vector<Interval> intervals)
    : intervals_(std::move(intervals)),
      neighbours_(neighbours_of(intervals_, kMaxPairs)),
      queue_(by_start(intervals_)),
      bound_(most_live(intervals_)),
      best_(std::numeric_limits<std::int64_t>::max()) {
  for (const Interval& interval : intervals_) weight_.push_back(static_cast<double>(interval.size));
}

Packing PackInTurns::turn() {
  if (neighbours_.empty()) return pack_by_time(intervals_);
  std::ranges::stable_sort(queue_, [&](int a, int b) { return weight_[a] > weight_[b]; });
  Packing packing = place(intervals_, neighbours_, queue_, Fit::kFirst);
  best_ = std::min(best_, packing.total);
  constexpr std::int64_t kUpperPart = 3;  // above the bound, this share counts as too high
  const std::int64_t blame = best_ - (best_ - bound_) / kUpperPart;
  for (const int i : queue_) {
    if (packing.offsets[i] + intervals_[i].size < blame) continue;
    constexpr double kLeast = 1.1, kMore = 0.4 * 0x1p-53;
    weight_[i] *= kLeast + kMore * static_cast<double>(random_() >> 11U);
  }
  return packing;
}

Packing pack_quickly(std::span<const Interval> intervals) {
  Packing best = pack_by_time(intervals);
  const std::int64_t bound = most_live(intervals);
  if (best.total == bound) return best;
  const Neighbours neighbours = neighbours_of(intervals, kMaxPairs);
  if (neighbours.empty()) return best;
  std::size_t looks = 0;
  for (const std::vector<int>& met : neighbours) looks += met.size();
  std::size_t looked = 0;
  for (const PackOrder order : kPackOrders) {
    if (best.total == bound || (looked > 0 && looked + looks > kMaxLooks)) break;
    looked += looks;
    Packing packing = pack_in_order(intervals, neighbours, order);
    // Of equal totals the first order wins: ordering by size leaves the fewest holes.
    if (packing.total < best.total || (order == PackOrder::kSize && packing.total == best.total)) {
      best = std::move(packing);
    }
  }
  return best;
}

}  // namespace braid
