#include "lowering/plan/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

// plan_memory: offsets for buffers with known lifetimes.
//
// Two plans, and the smaller one wins.
//   by time:  step after step as an allocator would, best fit in a list of free blocks.
//             O(n log n) whatever the lifetimes are. Where it reaches the lower bound, as among
//             parameters, which all live together, it is the plan.
//   by size:  the largest buffer first (then the earliest), each into the smallest gap that fits
//             among the placed buffers it lives together with. Close to the lower bound on real
//             graphs. Its cost grows with the number of pairs that live together, so it is left out
//             when they are too many.
namespace braid {
namespace {

constexpr std::size_t kMaxPairs = 4'000'000;

std::int64_t rounded(const Lifetime& buffer) { return round_up(buffer.size, buffer.alignment); }

/// Buffers with bytes, in order of their first step; of equal steps the largest first.
std::vector<int> by_start(std::span<const Lifetime> buffers) {
  std::vector<int> order;
  order.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size > 0) order.push_back(static_cast<int>(i));
  }
  auto key = [&](int i) {
    const Lifetime& b = buffers[static_cast<std::size_t>(i)];
    return std::tuple(b.first, -b.size, i);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  return order;
}

/// For each buffer those that start earlier or with it and live together with it, both ways;
/// nothing when there are more than kMaxPairs.
std::optional<std::vector<std::vector<int>>> neighbours(std::span<const Lifetime> buffers) {
  std::vector<std::vector<int>> result(buffers.size());
  std::vector<int> active;
  std::size_t pairs = 0;
  for (int i : by_start(buffers)) {
    const int now = buffers[static_cast<std::size_t>(i)].first;
    std::erase_if(active, [&](int j) { return buffers[static_cast<std::size_t>(j)].last < now; });
    pairs += active.size();
    if (pairs > kMaxPairs) return std::nullopt;
    for (int j : active) {
      result[static_cast<std::size_t>(i)].push_back(j);
      result[static_cast<std::size_t>(j)].push_back(i);
    }
    active.push_back(i);
  }
  return result;
}

std::optional<MemoryPlan> plan_by_size(std::span<const Lifetime> buffers) {
  const auto together = neighbours(buffers);
  if (!together) return std::nullopt;
  std::vector<int> order = by_start(buffers);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return buffers[static_cast<std::size_t>(a)].size > buffers[static_cast<std::size_t>(b)].size;
  });

  MemoryPlan plan{.offsets = std::vector<std::int64_t>(buffers.size(), 0), .total = 0};
  std::vector<bool> placed(buffers.size(), false);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // [offset, end), by offset
  for (int i : order) {
    const auto id = static_cast<std::size_t>(i);
    taken.clear();
    for (int j : (*together)[id]) {
      const auto other = static_cast<std::size_t>(j);
      if (!placed[other]) continue;
      taken.emplace_back(plan.offsets[other], plan.offsets[other] + rounded(buffers[other]));
    }
    std::sort(taken.begin(), taken.end());

    const std::int64_t size = rounded(buffers[id]);
    std::int64_t best = -1;
    std::int64_t best_gap = 0;
    std::int64_t end = 0;
    for (const auto& [from, to] : taken) {
      const std::int64_t start = round_up(end, buffers[id].alignment);
      const std::int64_t gap = from - start;
      if (gap >= size && (best < 0 || gap < best_gap)) {
        best = start;
        best_gap = gap;
      }
      end = std::max(end, to);
    }
    plan.offsets[id] = best >= 0 ? best : round_up(end, buffers[id].alignment);
    plan.total = std::max(plan.total, plan.offsets[id] + size);
    placed[id] = true;
  }
  return plan;
}

/// Free blocks below a growing end, merged with their neighbours.
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
    // The last free block may reach the end: then only the rest is new.
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

MemoryPlan plan_by_time(std::span<const Lifetime> buffers) {
  MemoryPlan plan{.offsets = std::vector<std::int64_t>(buffers.size(), 0), .total = 0};
  FreeList free;
  std::set<std::pair<int, int>> active;  // (last step, buffer)
  for (int i : by_start(buffers)) {
    const Lifetime& buffer = buffers[static_cast<std::size_t>(i)];
    while (!active.empty() && active.begin()->first < buffer.first) {
      const auto done = static_cast<std::size_t>(active.begin()->second);
      free.give(plan.offsets[done], rounded(buffers[done]));
      active.erase(active.begin());
    }
    plan.offsets[static_cast<std::size_t>(i)] = free.take(rounded(buffer), buffer.alignment);
    active.emplace(buffer.last, i);
  }
  plan.total = free.end();
  return plan;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> buffers) {
  MemoryPlan by_time = plan_by_time(buffers);
  if (by_time.total == peak_bytes(buffers)) return by_time;
  std::optional<MemoryPlan> by_size = plan_by_size(buffers);
  return by_size && by_size->total <= by_time.total ? *std::move(by_size) : by_time;
}

std::int64_t peak_bytes(std::span<const Lifetime> buffers) {
  std::vector<std::pair<int, std::int64_t>> events;
  for (const Lifetime& buffer : buffers) {
    events.emplace_back(buffer.first, rounded(buffer));
    events.emplace_back(buffer.last + 1, -rounded(buffer));
  }
  std::sort(events.begin(), events.end());  // at one step what ends goes before what starts
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const auto& [step, bytes] : events) peak = std::max(peak, live += bytes);
  return peak;
}

}  // namespace braid
