#include "lowering/schedule/memory_guard.h"

#include <gmock/gmock.h>

#include <random>

#include "lowering/schedule/order.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

/// The nodes taken, then `next`, then the others of the order.
std::int64_t peak_with(const MemoryUse& use, std::vector<NodeId> taken, NodeId next,
                       const std::vector<NodeId>& order) {
  taken.push_back(next);
  for (NodeId id : order) {
    if (std::find(taken.begin(), taken.end(), id) == taken.end()) taken.push_back(id);
  }
  return peak_memory(use, taken);
}

TEST(MemoryGuard, TakesExactlyWhatLeavesAWayToTheEnd) {
  int refused = 0, passed = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = random_costs(seed, 30);
    const MemoryUse use(graph);
    const std::vector<NodeId> order = given_order(graph);
    const Predecessors needs(graph);
    const std::int64_t limit = peak_memory(use, order) * (seed % 2 == 0 ? 100 : 105) / 100;
    MemoryGuard guard(use, order, limit);
    std::mt19937_64 random(seed);
    std::vector<NodeId> taken;
    const auto is_taken = [&](NodeId id) {
      return std::find(taken.begin(), taken.end(), id) != taken.end();
    };
    while (guard.next() >= 0 && !HasFailure()) {
      const auto id = static_cast<NodeId>(random() % order.size());
      const std::span<const NodeId> needed = needs.of(id);
      if (is_taken(id) || !std::all_of(needed.begin(), needed.end(), is_taken)) continue;
      const bool fits = peak_with(use, taken, id, order) <= limit;
      passed += fits && id != guard.next() ? 1 : 0;
      EXPECT_EQ(guard.take(id), fits);
      if (fits) taken.push_back(id);
      refused += fits ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(passed, 100);
}

}  // namespace
}  // namespace braid::testing
