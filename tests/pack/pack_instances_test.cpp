// Hard instances: cut out of a full rectangle, with 0 to 6 % of room above it.

#include <cstdlib>

#include "pack/cut_rectangle.h"
#include "pack/heuristics.h"
#include "pack/pack.h"
#include "pack/pack_testing.h"

namespace braid::testing {
namespace {

constexpr std::int64_t kNodes = 20'000;

/// In time, and by size: what a planner that does not search does.
std::int64_t total_without_search(const std::vector<Interval>& intervals) {
  const Neighbours neighbours = neighbours_of(intervals, SIZE_MAX);
  return std::min(pack_by_time(intervals).total,
                  pack_in_order(intervals, neighbours, PackOrder::kSize).total);
}

struct Score {
  int tight = 0, tight_met = 0;  ///< without room: instances, and those at the bound
  int loose = 0, loose_met = 0;
};

Score pack_instances(int count, bool pinwheels) {
  Score score;
  for (std::uint64_t seed = 0; score.tight + score.loose < count; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Interval> intervals =
        RectangleCutter(seed, pinwheels).cut(150 + 37 * seed % 301);
    if (5 * total_without_search(intervals) < 6 * kRectangleBytes) continue;  // not hard
    EXPECT_EQ(most_live(intervals), kRectangleBytes);
    const int percent = (score.tight + score.loose) % 7;
    const std::int64_t capacity = kRectangleBytes + kRectangleBytes * percent / 100;
    const PackResult result = pack(intervals, {.capacity = capacity, .nodes = kNodes});
    expect_valid(intervals, result.packing);
    EXPECT_LE(result.nodes, kNodes);
    const int met = result.packing.total <= capacity ? 1 : 0;
    (percent == 0 ? score.tight : score.loose) += 1;
    (percent == 0 ? score.tight_met : score.loose_met) += met;
    EXPECT_FALSE(result.impossible);
    EXPECT_EQ(pack(intervals, {.capacity = capacity, .nodes = 500}).packing.offsets,
              pack(intervals, {.capacity = capacity, .nodes = 500}).packing.offsets);
  }
  return score;
}

int instances() {
  const char* count = std::getenv("BRAID_PACKINGS");
  return count == nullptr ? 50 : std::atoi(count);
}

TEST(PackInstances, CutStraightMeetTheirCapacity) {
  const Score score = pack_instances(instances(), /*pinwheels=*/false);
  EXPECT_EQ(score.loose_met, score.loose);
  EXPECT_GE(10 * score.tight_met, 6 * score.tight);
}

TEST(PackInstances, CutIntoPinwheelsMostlyMeetTheirCapacity) {
  const Score score = pack_instances(instances(), /*pinwheels=*/true);
  EXPECT_GE(10 * score.loose_met, 6 * score.loose);
  EXPECT_GE(10 * score.tight_met, 6 * score.tight);
}

// Few bytes and times: pieces that do not belong together often fit.
TEST(PackInstances, FineCutsMeetTheirCapacityToTheByte) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    constexpr std::int64_t kTime = 200, kBytes = 4096;
    const std::vector<Interval> intervals = RectangleCutter(seed, false, kTime, kBytes).cut(360);
    const PackResult result = pack(intervals, {.capacity = kBytes, .nodes = 100'000});
    expect_valid(intervals, result.packing);
    EXPECT_EQ(result.packing.total, kBytes);
  }
}

TEST(PackInstances, ALowerCapacityNeverEndsAtMore) {
  for (const std::uint64_t seed : {2, 3, 5, 9}) {
    SCOPED_TRACE(seed);
    const std::vector<Interval> intervals = RectangleCutter(seed, true).cut(130);
    std::int64_t last = 0;
    for (const std::int64_t percent : {2, 4, 6, 9, 12, 15}) {
      const std::int64_t capacity = kRectangleBytes + kRectangleBytes * percent / 100;
      const PackResult result = pack(intervals, {.capacity = capacity, .nodes = 3'000});
      EXPECT_GE(result.packing.total, last) << percent;
      last = result.packing.total;
    }
  }
}

}  // namespace
}  // namespace braid::testing
