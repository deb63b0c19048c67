#include "lowering/schedule/memory_timeline.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "lowering/schedule/order.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> during(const std::vector<MemoryLevel>& levels) {
  std::vector<std::int64_t> result;
  for (const MemoryLevel& level : levels) result.push_back(level.during);
  return result;
}

// A3-09, A3-11: what is made, used for the last time, and never freed.
TEST(MemoryTimeline, CountsWhatIsInUse) {
  const Graph graph = Costs()
                          .input("x", 1000)
                          .compute("a", {"x"}, 10, 0)
                          .compute("b", {"a"}, 20, 0)
                          .compute("dead", {"b"}, 5, 0)
                          .compute("out", {"a", "b"}, 40, 0)
                          .graph({"out"});
  const MemoryUse use(graph);
  EXPECT_EQ(use.inputs(), 1000);
  const std::vector<MemoryLevel> levels = memory_levels(use, given_order(graph));
  EXPECT_THAT(during(levels), ElementsAre(1010, 1030, 1035, 1070));
  EXPECT_EQ(levels[2].after, 1030);  // nobody reads it
  EXPECT_EQ(levels[3].after, 1040);  // outputs stay
  EXPECT_EQ(peak_memory(use, given_order(graph)), 1070);
}

// A2-17: a collective has its operand until its wait, which makes nothing.
TEST(MemoryTimeline, ACollectivesOperandIsInUseUntilItsWait) {
  const Graph graph = Costs()
                          .input("x", 1)
                          .compute("a", {"x"}, 10, 0)
                          .collective("c", "a", 0)
                          .compute("b", {"x"}, 100, 0)
                          .wait("w", "c")
                          .compute("out", {"w", "b"}, 7, 0)
                          .graph({"out"});
  EXPECT_THAT(during(memory_levels(MemoryUse(graph), given_order(graph))),
              ElementsAre(11, 21, 121, 121, 118));
}

// a graph input is nobody's: whoever comes first, it is there.
TEST(MemoryTimeline, InputsAreNotChargedToTheFirstNode) {
  const Graph graph =
      Costs().input("x", 1000).compute("a", {"x"}, 10, 0).compute("b", {"x"}, 20, 0).graph({"b"});
  const MemoryUse use(graph);
  MemoryTimeline timeline(use, given_order(graph));
  EXPECT_TRUE(timeline.move_back(0, 1, kNoLimit).done);
  EXPECT_THAT(timeline.order(), ElementsAre(1, 0));
  EXPECT_THAT(during(timeline.levels()), ElementsAre(1020, 1030));
}

TEST(MemoryTimeline, AMoveAboveTheLimitIsUndone) {
  const Graph graph = Costs()
                          .input("x", 1)
                          .compute("a", {"x"}, 100, 0)
                          .compute("b", {"a"}, 1, 0)
                          .compute("c", {"x"}, 50, 0)
                          .graph({"b", "c"});
  const MemoryUse use(graph);
  MemoryTimeline timeline(use, given_order(graph));
  const std::vector<MemoryLevel> before = timeline.levels();
  const MemoryTimeline::Move move = timeline.move_forward(1, 2, 120);
  EXPECT_FALSE(move.done);
  EXPECT_EQ(move.peak, 152);
  EXPECT_EQ(timeline.move_back(1, 2, 120).peak, 152);
  EXPECT_EQ(timeline.levels(), before);
  EXPECT_THAT(timeline.order(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(timeline.move_back(1, 2, 152).done);
  // Above the limit already, a move that adds nothing is fine.
  EXPECT_TRUE(timeline.move_forward(1, 2, 120).done);
}

/// Moves single nodes past blocks, wherever no dependence is in the way, and compares.
void check_random_moves(std::uint64_t seed) {
  const Graph graph = random_costs(seed, 40);
  const MemoryUse use(graph);
  const Predecessors predecessors(graph);
  MemoryTimeline timeline(use, given_order(graph));
  std::mt19937_64 random(seed);
  const auto needs = [&](NodeId later, NodeId earlier) {
    const std::span<const NodeId> all = predecessors.of(later);
    return std::find(all.begin(), all.end(), earlier) != all.end();
  };
  for (int i = 0; i < 200; ++i) {
    const std::size_t first = random() % (timeline.order().size() - 1);
    std::size_t last = first + 1 + random() % 5;
    last = std::min(last, timeline.order().size() - 1);
    const bool back = random() % 2 == 0;
    bool legal = true;
    for (std::size_t at = first + (back ? 1 : 0); at < last + (back ? 1 : 0); ++at) {
      const NodeId other = timeline.order()[at];
      legal = legal && (back ? !needs(other, timeline.order()[first])
                             : !needs(timeline.order()[last], other));
    }
    if (!legal) continue;
    const std::int64_t limit =
        timeline.peak() * static_cast<std::int64_t>(90 + random() % 30) / 100;
    const MemoryTimeline::Move move =
        back ? timeline.move_back(first, last, limit) : timeline.move_forward(first, last, limit);
    ASSERT_EQ(timeline.levels(), memory_levels(use, timeline.order())) << "move " << i;
    if (move.done) {
      ASSERT_EQ(move.peak, timeline.peak(first, last));
    }
  }
}

// A3-33, A3-34, A3-42, A3-43, X-8, X-10: tracked memory is memory, however often a node was passed.
TEST(MemoryTimeline, IsWhatARecomputationGives) {
  for (std::uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check_random_moves(seed);
  }
}

}  // namespace
}  // namespace braid::testing
