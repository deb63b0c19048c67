#include "lowering/plan/plan_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace braid::testing {
namespace {

/// Checks the plan by sweeping over the steps with the live buffers in order of offset.
void expect_valid(const std::vector<Lifetime>& buffers, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), buffers.size());
  std::multimap<int, std::pair<bool, std::size_t>> events;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % buffers[i].alignment, 0);
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_LE(plan.offsets[i] + buffers[i].size, plan.total);
    if (buffers[i].size == 0) continue;
    events.emplace(2 * buffers[i].first + 1, std::pair(true, i));
    events.emplace(2 * buffers[i].last + 2, std::pair(false, i));
  }
  std::map<std::int64_t, std::size_t> live;
  for (const auto& [time, event] : events) {
    const auto [starts, i] = event;
    if (!starts) {
      live.erase(plan.offsets[i]);
      continue;
    }
    const auto after = live.lower_bound(plan.offsets[i]);
    if (after != live.end()) {
      EXPECT_LE(plan.offsets[i] + buffers[i].size, after->first);
    }
    if (after != live.begin()) {
      const std::size_t below = std::prev(after)->second;
      EXPECT_LE(plan.offsets[below] + buffers[below].size, plan.offsets[i]);
    }
    live.emplace(plan.offsets[i], i);
  }
}

std::vector<Lifetime> random_lifetimes(std::uint64_t seed, int count, int longest) {
  std::mt19937_64 random(seed);
  std::vector<Lifetime> buffers;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % static_cast<std::uint64_t>(count));
    const int length = static_cast<int>(random() % static_cast<std::uint64_t>(longest));
    const auto size = static_cast<std::int64_t>(random() % 100'000);
    buffers.push_back({size, first, first + length, 256});
  }
  return buffers;
}

TEST(PlanMemory, NothingTakesNothing) {
  EXPECT_EQ(plan_memory({}).total, 0);
  const std::vector<Lifetime> empty{{0, 0, 5, 256}};
  EXPECT_EQ(plan_memory(empty).total, 0);
}

TEST(PlanMemory, ReusesWhatIsFree) {
  const std::vector<Lifetime> chain{
      {1000, 0, 1, 256}, {1000, 1, 2, 256}, {1000, 2, 3, 256}, {1000, 3, 4, 256}};
  const MemoryPlan plan = plan_memory(chain);
  expect_valid(chain, plan);
  EXPECT_EQ(plan.total, 2048);
}

TEST(PlanMemory, TakesTheSmallestGapThatFits) {
  // At step 1 there are gaps of 2048 and 1280 bytes between live buffers; the smaller one is used.
  const std::vector<Lifetime> buffers{{4096, 0, 2, 256}, {2048, 0, 0, 256}, {1536, 0, 2, 256},
                                      {1280, 0, 0, 256}, {1024, 0, 2, 256}, {1000, 1, 2, 256}};
  const MemoryPlan plan = plan_memory(buffers);
  expect_valid(buffers, plan);
  EXPECT_EQ(plan.total, plan.bound);
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
}

TEST(PlanMemory, RandomLifetimes) {
  for (std::uint64_t seed = 0; seed < 300; seed += 4) {
    SCOPED_TRACE(seed);
    const auto buffers =
        random_lifetimes(seed, 20 + static_cast<int>(seed), 3 + static_cast<int>(seed % 40));
    const MemoryPlan plan = plan_memory(buffers);
    expect_valid(buffers, plan);
    EXPECT_GE(plan.total, plan.bound);
    EXPECT_LE(static_cast<double>(plan.total), 1.2 * static_cast<double>(plan.bound));
    EXPECT_EQ(plan.offsets, plan_memory(buffers).offsets);
  }
}

TEST(PlanMemory, OtherAlignmentsHold) {
  std::vector<Lifetime> buffers = random_lifetimes(7, 200, 20);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].alignment = 256 << (i % 4);
  expect_valid(buffers, plan_memory(buffers));
}

TEST(PlanMemory, LargePlansAreValid) {
  // Short lives, and 60,000 buffers of which most live together.
  for (int longest : {30, 60'000}) {
    const auto buffers = random_lifetimes(1, 60'000, longest);
    expect_valid(buffers, plan_memory(buffers));
  }
}

}  // namespace
}  // namespace braid::testing
