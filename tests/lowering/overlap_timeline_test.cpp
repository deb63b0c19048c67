#include "lowering/schedule/overlap_timeline.h"

#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

OverlapTimeline timeline_of(const Graph& graph) {
  return overlap_timeline(graph, estimate_nodes(graph, Target{}));
}

// A3-51: a collective and what is beside it take as long as the longer of both.
TEST(OverlapTimeline, ComputeBesideACollectiveIsNotFree) {
  const auto program = [](double comm, double comp) {
    return Costs()
        .input("x", 8)
        .compute("before", {"x"}, 8, 5)
        .collective("c", "x", comm)
        .compute("a", {"x"}, 8, comp)
        .wait("w", "c")
        .compute("after", {"w"}, 8, 7)
        .graph({"after", "a"});
  };
  const OverlapTimeline hidden = timeline_of(program(100, 250));
  EXPECT_EQ(hidden.total_ns, 5 + 250 + 7);
  EXPECT_EQ(hidden.exposed_ns, 0);
  const OverlapTimeline exposed = timeline_of(program(100, 30));
  EXPECT_EQ(exposed.total_ns, 5 + 100 + 7);
  EXPECT_EQ(exposed.exposed_ns, 70);
  EXPECT_EQ(exposed.comm_ns, 100);
  EXPECT_TRUE(exposed.steps[2].in_flight);
  EXPECT_FALSE(exposed.steps[4].in_flight);
}

// A3-51: a wait ends its own collective, and collectives come one after the other.
TEST(OverlapTimeline, AWaitWaitsForItsOwnCollective) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .collective("d", "x", 50)
                          .compute("a", {"x"}, 8, 30)
                          .wait("w", "c")
                          .compute("b", {"w"}, 8, 20)
                          .wait("v", "d")
                          .wait("of_an_input", "x")
                          .graph({"b", "v"});
  const OverlapTimeline timeline = timeline_of(graph);
  EXPECT_EQ(timeline.steps[1].begin_ns, 100);
  EXPECT_EQ(timeline.steps[1].end_ns, 150);
  EXPECT_EQ(timeline.steps[3].end_ns, 100);
  EXPECT_TRUE(timeline.steps[4].in_flight);  // d goes on
  EXPECT_EQ(timeline.steps[5].end_ns, 150);
  EXPECT_EQ(timeline.exposed_ns, 70 + 30);
  EXPECT_EQ(timeline.total_ns, 150);
}

// A3-50, A3-51
TEST(OverlapTimeline, IsPrinted) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 1000)
                          .compute("a", {"x"}, 16, 250)
                          .wait("w", "c")
                          .graph({"w", "a"});
  const std::string text = visualize_overlap(graph, Target{});
  EXPECT_THAT(text,
              HasSubstr("    0        0.000        1.000 > all_reduce c(x): u8[8] (1.000 us)\n"
                        "    1        0.000        0.250 | opaque a(x): u8[16] (0.250 us)\n"
                        "    2        0.250        1.000 | wait_tensor w(c): u8[8] (0.000 us)\n"
                        "total 1.000 us; collectives 1.000 us, exposed 0.750 us\n"));
  PassContext context = sm80();
  const Graph fused =
      fuse(graph_of(input("y", "4"), node("e", "exp", R"("y")") + "," + node("n", "neg", R"("e")"),
                    R"("n")"),
           context);
  EXPECT_EQ(node_summary(fused, fused.nodes()[0], 1500), "kernel{exp+neg} n(y): f32[4] (1.500 us)");
}

}  // namespace
}  // namespace braid::testing
