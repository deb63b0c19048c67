#include "lowering/plan/plan_memory.h"

#include <algorithm>

#include "ir/mapped.h"
#include "pack/pack.h"

namespace braid {
namespace {

/// Search budget for one arena where heuristics miss the bound. A node costs more with more
/// buffers, and a compile should not wait for longer than some tenths of a second.
constexpr std::int64_t kNodesTimesBuffers = 1'000'000;
constexpr std::int64_t kMostNodes = 5'000;

std::int64_t nodes_for(std::size_t buffers) {
  return std::min(kMostNodes, kNodesTimesBuffers / static_cast<std::int64_t>(buffers + 1));
}

std::vector<Interval> intervals_of(std::span<const Lifetime> buffers) {
  return mapped(buffers, [](const Lifetime& b) {
    return Interval{b.first, std::int64_t{b.last} + 1, round_up(b.size, b.alignment), b.alignment};
  });
}

}  // namespace

std::int64_t memory_bound(std::span<const Lifetime> buffers) {
  return most_live(intervals_of(buffers));
}

MemoryPlan plan_memory(std::span<const Lifetime> buffers) {
  PackResult result = pack(intervals_of(buffers), {.nodes = nodes_for(buffers.size())});
  return {std::move(result.packing.offsets), result.packing.total, result.bound};
}

}  // namespace braid
