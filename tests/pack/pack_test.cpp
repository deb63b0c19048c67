#include "pack/pack.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "pack/blocks.h"
#include "pack/cut_rectangle.h"
#include "pack/heuristics.h"
#include "pack/pack_testing.h"
#include "pack/search.h"
#include "pack/sections.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

struct Shape {
  std::size_t most = 6;        ///< intervals
  std::int64_t times = 6;      ///< they lie in [0, times]
  std::int64_t bytes = 8;      ///< the largest
  std::int64_t alignment = 1;  ///< the largest, a power of two
};

std::vector<Interval> random_intervals(std::mt19937_64& random, const Shape& shape) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  std::vector<Interval> intervals(1 + random() % shape.most);
  for (Interval& interval : intervals) {
    interval.lower = below(shape.times);
    interval.upper = interval.lower + 1 + below(shape.times - interval.lower);
    interval.size = 1 + below(shape.bytes);
    while (interval.alignment < shape.alignment && below(2) == 0) interval.alignment *= 2;
  }
  return intervals;
}

/// The least total, by putting intervals in every order as low as they go.
std::int64_t least_total(std::span<const Interval> intervals) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t least = INT64_MAX;
  do {
    std::vector<std::int64_t> offsets(intervals.size(), -1);
    std::int64_t total = 0;
    for (const std::size_t i : order) {
      std::int64_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t j = 0; j < intervals.size(); ++j) {
          const std::int64_t end = offsets[j] + intervals[j].size;
          if (offsets[j] < 0 || !meet(intervals[i], intervals[j]) || offset >= end ||
              offsets[j] >= offset + intervals[i].size) {
            continue;
          }
          offset = round_up(end, intervals[i].alignment);
          moved = true;
        }
      }
      offsets[i] = offset;
      total = std::max(total, offset + intervals[i].size);
    }
    least = std::min(least, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

PackSearch::Outcome search(const std::vector<Interval>& intervals, std::int64_t capacity) {
  PackSearch search(intervals, capacity);
  SearchBudget budget{.nodes = 100'000};
  const PackSearch::Outcome outcome = search.run(budget, budget.nodes);
  if (outcome == PackSearch::Outcome::kFound) {
    Packing packing{search.offsets(), 0};
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      packing.total = std::max(packing.total, packing.offsets[i] + intervals[i].size);
    }
    expect_valid(intervals, packing);
    EXPECT_LE(packing.total, capacity);
  }
  return outcome;
}

TEST(Sections, AreTheLargestSetsThatLiveTogether) {
  const std::vector<Interval> intervals{{0, 4, 1}, {0, 1, 1}, {2, 6, 1}, {4, 6, 1}, {7, 8, 1}};
  const Sections sections = sections_of(intervals);
  EXPECT_EQ(sections.count, 4);  // {0, 1}, {0, 2}, {2, 3}, {4}
  EXPECT_THAT(sections.first, ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT(sections.last, ElementsAre(1, 0, 2, 2, 3));
  EXPECT_THAT(components_of(intervals), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4)));
  EXPECT_EQ(most_live(intervals), 2);
}

TEST(Blocks, JoinWhatBelongsTogether) {
  // 0 and 1 have one lifetime; on each other they are as large as 2, which follows them alone.
  const std::vector<Interval> intervals{{0, 3, 4}, {0, 3, 6}, {3, 5, 10}, {0, 5, 1}};
  EXPECT_EQ(join(intervals, Joining::kNone).size(), 4U);
  EXPECT_EQ(join(intervals, Joining::kStacks).size(), 3U);
  const std::vector<Block> blocks = join(intervals, Joining::kChains);
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].whole.size, 11);
  const std::vector<std::int64_t> offsets = offsets_of(blocks, std::vector<std::int64_t>{100});
  EXPECT_THAT(offsets, ElementsAre(100, 104, 100, 110));
}

// At 3 two end and two begin, and sizes decide which follow each other; not at 4.
TEST(Blocks, FollowEachOtherBySize) {
  const std::vector<Interval> intervals{{0, 3, 5}, {1, 3, 7}, {3, 6, 7}, {3, 5, 5},
                                        {2, 4, 4}, {0, 4, 4}, {4, 6, 4}};
  const std::vector<Block> blocks = join(intervals, Joining::kChains);
  ASSERT_EQ(blocks.size(), 5U);
  EXPECT_EQ(blocks[0].whole.upper, 5);
  EXPECT_EQ(blocks[1].whole.upper, 6);
  const std::vector<std::int64_t> offsets =
      offsets_of(blocks, std::vector<std::int64_t>{0, 5, 12, 16, 20});
  EXPECT_THAT(offsets, ElementsAre(0, 5, 5, 0, 12, 16, 20));
}

TEST(Blocks, AreFewerWhereWrongJoinsAreRefused) {
  const std::vector<Interval> intervals = RectangleCutter(3, false, 200, 4096).cut(360);
  JoinSearch search(intervals);
  const std::size_t joins = search.joins().size();
  for (int step = 0; step < 1'500; ++step) search.step();
  EXPECT_GE(search.joins().size(), joins + 20);
  // Each block holds its intervals side by side, as long and as large as they are together.
  const std::vector<Block> blocks = join(intervals, search.joins());
  EXPECT_EQ(blocks.size(), intervals.size() - search.joins().size());
  for (const Block& block : blocks) {
    std::vector<Interval> parts;
    Packing packing;
    std::int64_t area = 0;
    for (const auto& [interval, offset] : block.parts) {
      const Interval& part = intervals[interval];
      parts.push_back(part);
      packing.offsets.push_back(offset);
      area += (part.upper - part.lower) * part.size;
    }
    packing.total = block.whole.size;
    expect_valid(parts, packing);
    EXPECT_EQ(area, (block.whole.upper - block.whole.lower) * block.whole.size);
  }
}

TEST(Blocks, ThatWouldNotBeAlignedStayApart) {
  const std::vector<Interval> intervals{{0, 3, 5, 4}, {0, 3, 8, 4}, {0, 3, 8, 8}};
  EXPECT_EQ(join(intervals, Joining::kStacks).size(), 3U);
}

TEST(PackSearch, FindsTheLeastTotalAndNoLess) {
  std::mt19937_64 random(1);
  int above_bound = 0;
  for (int k = 0; k < 3'000; ++k) {
    SCOPED_TRACE(k);
    const Shape shape{.most = 6, .times = 3 + k % 6, .bytes = 2 + k % 9, .alignment = 1 << k % 3};
    const std::vector<Interval> intervals = random_intervals(random, shape);
    const std::int64_t least = least_total(intervals);
    above_bound += least > most_live(intervals) ? 1 : 0;
    EXPECT_EQ(search(intervals, least), PackSearch::Outcome::kFound);
    EXPECT_EQ(search(intervals, least - 1), PackSearch::Outcome::kNone);
  }
  EXPECT_GT(above_bound, 100) << "the bound alone would do";
}

TEST(PackSearch, EndsWithItsBudget) {
  std::mt19937_64 random(2);
  std::vector<Interval> intervals = random_intervals(random, {.most = 1});
  while (intervals.size() < 60) {
    const auto more = random_intervals(random, {.most = 8, .times = 20, .bytes = 1'000});
    intervals.insert(intervals.end(), more.begin(), more.end());
  }
  PackSearch search(intervals, most_live(intervals));
  SearchBudget budget{.nodes = 50};
  EXPECT_EQ(search.run(budget, 20), PackSearch::Outcome::kOutOfBudget);
  EXPECT_EQ(budget.nodes, 30);
  budget.stop = [] { return true; };
  EXPECT_EQ(search.run(budget, 1'000), PackSearch::Outcome::kOutOfBudget);
  EXPECT_TRUE(budget.stopped || budget.nodes == 0);
}

TEST(Pack, SaysWhatIsImpossible) {
  // Three buffers of 2 in a ring of lifetimes around one of 1: the bound is 4, the least total 5.
  const std::vector<Interval> intervals{{0, 2, 3}, {1, 4, 1}, {3, 6, 3}, {5, 8, 1},
                                        {2, 3, 2}, {4, 5, 2}, {0, 1, 1}, {6, 8, 2}};
  const std::int64_t least = least_total(intervals);
  const PackResult good = pack(intervals, {.capacity = least, .nodes = 10'000});
  expect_valid(intervals, good.packing);
  EXPECT_LE(good.packing.total, least);
  EXPECT_FALSE(good.impossible);
  const PackResult bad = pack(intervals, {.capacity = least - 1, .nodes = 10'000});
  expect_valid(intervals, bad.packing);
  EXPECT_GE(bad.packing.total, least);
  EXPECT_TRUE(bad.impossible);
}

TEST(Pack, RandomInstancesNeverOverlap) {
  std::mt19937_64 random(3);
  int searched = 0, at_bound = 0;
  for (int k = 0; k < 10'000; ++k) {
    SCOPED_TRACE(k);
    const Shape shape{.most = static_cast<std::size_t>(4 + k % 40),
                      .times = 4 + k % 30,
                      .bytes = k % 2 == 0 ? 8 : 100'000,
                      .alignment = k % 3 == 0 ? 64 : 1};
    const std::vector<Interval> intervals = random_intervals(random, shape);
    const PackResult result = pack(intervals, {.nodes = 300});
    expect_valid(intervals, result.packing);
    EXPECT_GE(result.packing.total, result.bound);
    EXPECT_LE(result.packing.total, pack_quickly(intervals).total);
    if (HasFailure()) return;
    searched += result.nodes > 0 ? 1 : 0;
    at_bound += result.packing.total == result.bound ? 1 : 0;
  }
  EXPECT_GT(searched, 1'000);
  EXPECT_GT(at_bound, 6'000);
}

TEST(Pack, ManyBuffersByHeuristics) {
  std::mt19937_64 random(4);
  std::vector<Interval> intervals;
  for (int i = 0; i < 62'000; ++i) {
    const auto lower = static_cast<std::int64_t>(random() % 60'000);
    const auto length = static_cast<std::int64_t>(1 + random() % 40);
    intervals.push_back({lower, lower + length, static_cast<std::int64_t>(random() % 5'000), 64});
  }
  const PackResult result = pack(intervals, {.nodes = 1'000});
  EXPECT_LE(result.packing.total, result.bound + result.bound / 4);
  // Neighbours in time alone: all pairs would be 2 * 10^9.
  const Neighbours neighbours = neighbours_of(intervals, 10'000'000);
  ASSERT_EQ(neighbours.size(), intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    for (const int j : neighbours[i]) {
      const std::int64_t a = result.packing.offsets[i], b = result.packing.offsets[j];
      ASSERT_TRUE(a + intervals[i].size <= b || b + intervals[j].size <= a) << i << " and " << j;
    }
  }
}

}  // namespace
}  // namespace braid::testing
