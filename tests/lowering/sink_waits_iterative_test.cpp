#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

struct Outcome {
  std::vector<std::string> order;
  std::vector<MoveRecord> records;
};

Outcome sink(const Graph& graph, PassContext context = plain_costs()) {
  Outcome outcome;
  context.move_records = &outcome.records;
  const Graph result = sink_waits_iterative(graph, context);
  verify(result);
  outcome.order = node_names(result);
  return outcome;
}

PassContext by_estimates() {
  PassContext context = plain_costs();
  context.config.options["sink-iterative-use-runtime-estimations"] = "true";
  context.config.options["sink-iterative-peak-memory-budget"] = "1";
  return context;
}

std::string why(const Outcome& outcome, const std::string& node) {
  return record_of(outcome.records, node).limiting_factor.text();
}

// A3-40, A3-18
TEST(SinkWaitsIterative, AWaitPassesWhatDoesNotNeedIt) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .compute("a", {"x"}, 8, 30, "gemm")
                          .compute("b", {"x"}, 8, 40)
                          .graph({"w", "a", "b"});
  const Outcome outcome = sink(graph);
  EXPECT_THAT(outcome.order, ElementsAre("c", "a", "b", "w"));
  const MoveRecord& record = record_of(outcome.records, "w");
  EXPECT_EQ(record.moves, 2);
  EXPECT_EQ(record.moved_past, "+a+b");
  EXPECT_TRUE(record.limiting_factor.empty());
  EXPECT_EQ(record.initial_exposed_ns, 100);
  EXPECT_EQ(record.final_exposed_ns, 30);
  EXPECT_EQ(record.overlap, "+b[40]+a[30]");
}

// A3-40, A3-41: who needs the wait comes along, but for matmuls; by estimates these, too.
TEST(SinkWaitsIterative, WhoNeedsItIsTakenAlong) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .compute("cast", {"w"}, 8, 5)
                          .compute("a", {"x"}, 8, 30)
                          .compute("mm", {"cast"}, 8, 40, "gemm")
                          .compute("b", {"x"}, 8, 30)
                          .graph({"mm", "a", "b"});
  const Outcome outcome = sink(graph);
  EXPECT_THAT(outcome.order, ElementsAre("c", "a", "w", "cast", "mm", "b"));
  EXPECT_EQ(record_of(outcome.records, "w").grouped, 1);
  EXPECT_EQ(why(outcome, "w"),
            "data dependency detected: candidate 'mm', non_group_reason: contains_gemm_like");
  EXPECT_THAT(sink(graph, by_estimates()).order, ElementsAre("c", "a", "b", "w", "cast", "mm"));
}

// A3-40, step c, and A3-41: collectives and waits.
TEST(SinkWaitsIterative, CollectivesStopIt) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .collective("d", "x", 100)
                          .compute("a", {"x"}, 8, 30)
                          .wait("v", "d")
                          .graph({"w", "v", "a"});
  const Outcome outcome = sink(graph);
  EXPECT_THAT(outcome.order, ElementsAre("c", "w", "d", "a", "v"));
  EXPECT_EQ(why(outcome, "w"), "candidate 'd' contains_async_collective");
  EXPECT_TRUE(record_of(outcome.records, "v").limiting_factor.empty());
  PassContext context = plain_costs();
  context.config.options["sink-waits-iterative-swap-with-collectives"] = "true";
  EXPECT_THAT(sink(graph, context).order, ElementsAre("c", "d", "a", "v", "w"));
  context.config.options["sink-waits-iterative-debug-limit-to-sink"] = "1";
  EXPECT_THAT(sink(graph, context).order, ElementsAre("c", "w", "d", "a", "v"));
}

TEST(SinkWaitsIterative, AWaitForAWaitedOneStops) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .compute("a", {"w"}, 8, 30)
                          .wait("again", "a")
                          .graph({"again"});
  EXPECT_EQ(why(sink(graph), "w"),
            "data dependency detected: candidate 'again', non_group_reason: contains a wait");
}

/// A wait whose group has a synchronous collective, and another one, or compute, behind them.
Costs with_a_collective() {
  return Costs()
      .input("x", 8)
      .compute("m", {"x"}, 8, 0)
      .compute("n", {"x"}, 8, 0)
      .collective("c", "x", 100)
      .wait("w", "c")
      .compute("a", {"w"}, 8, 10)
      .synchronous("s", "a", 40);
}

// A3-40, step d: in safe mode a group with a collective passes none.
TEST(SinkWaitsIterative, CollectivesKeepTheirOrder) {
  const Graph graph = with_a_collective().collective("d", "x", 70).wait("v", "d").graph({"s", "v"});
  PassContext context = by_estimates();
  context.config.options["sink-waits-iterative-swap-with-collectives"] = "true";
  EXPECT_EQ(why(sink(graph, context), "w"), "collective ordering: 'd' is one");
  context.config.options["sink-waits-iterative-unsafe-collectives-reorder"] = "true";
  EXPECT_NE(why(sink(graph, context), "w"), "collective ordering: 'd' is one");
}

// A3-40, step f, X-11: what the wait gains counts against what the collectives in its group lose.
TEST(SinkWaitsIterative, ByEstimatesCollectivesInTheGroupCount) {
  // c gains 30 of 100, s loses 30 of the 40: neither better nor worse.
  const Graph even = with_a_collective().compute("b", {"x"}, 8, 30).graph({"s", "b"});
  EXPECT_THAT(sink(even, by_estimates()).order, ElementsAre("m", "n", "c", "b", "w", "a", "s"));
  // With c hidden already, only the loss of s counts.
  const Graph hidden = Costs()
                           .input("x", 8)
                           .collective("c", "x", 100)
                           .compute("h", {"x"}, 8, 100)
                           .wait("w", "c")
                           .compute("a", {"w"}, 8, 10)
                           .synchronous("s", "a", 40)
                           .compute("b", {"x"}, 8, 30)
                           .graph({"s", "b", "h"});
  const Outcome outcome = sink(hidden, by_estimates());
  EXPECT_THAT(outcome.order, ElementsAre("c", "h", "w", "a", "s", "b"));
  EXPECT_EQ(why(outcome, "w"),
            "candidate 'b' has compute 30, group contains collectives, total_exposed_delta 30");
}

// A3-40, step e: all compute in the group delays another wait, not that of collectives alone.
TEST(SinkWaitsIterative, ByEstimatesComputeInTheGroupStaysBesideAnotherCollective) {
  const auto program = [](double a_ns) {
    return Costs()
        .input("x", 8)
        .collective("d", "x", 80)
        .collective("c", "x", 100)
        .wait("w", "c")
        .compute("a", {"w"}, 8, a_ns)
        .wait("v", "d")
        .graph({"a", "v"});
  };
  const Outcome outcome = sink(program(50), by_estimates());
  EXPECT_THAT(outcome.order, ElementsAre("d", "c", "w", "a", "v"));
  EXPECT_EQ(why(outcome, "w"), "candidate 'v' is wait, exposed_before 80 vs exposed_after 130");
  EXPECT_THAT(sink(program(0), by_estimates()).order, ElementsAre("d", "c", "v", "w", "a"));
}

// A3-40, step a
TEST(SinkWaitsIterative, ByEstimatesItStopsWhenItsCollectiveIsHidden) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .compute("a", {"x"}, 8, 60)
                          .compute("b", {"x"}, 8, 60)
                          .compute("d", {"x"}, 8, 60)
                          .graph({"w", "a", "b", "d"});
  PassContext context = by_estimates();
  context.config.options["sink-iterative-extra-comm-comp-overlap"] = "0";
  const Outcome outcome = sink(graph, context);
  EXPECT_THAT(outcome.order, ElementsAre("c", "a", "b", "w", "d"));
  EXPECT_EQ(why(outcome, "w"), "unexposed by runtime estimations");
  EXPECT_THAT(sink(graph, by_estimates()).order, ElementsAre("c", "a", "b", "d", "w"));
}

// A3-42, A3-45: within the budget, and what a candidate frees counts.
TEST(SinkWaitsIterative, TheBudgetHolds) {
  const Graph graph = Costs()
                          .input("x", 10)
                          .compute("big", {"x"}, 100, 1)
                          .compute("m", {"big"}, 50, 1)
                          .collective("c", "m", 100)
                          .wait("w", "c")
                          .compute("a", {"w"}, 1, 1)
                          .compute("b", {"x"}, 90, 1)
                          .graph({"a", "b"});
  PassContext context = plain_costs();
  context.config.options["sink-iterative-peak-memory-budget"] = "0";
  // c has its operand until its wait: b beside them makes 200 of 160.
  EXPECT_EQ(why(sink(graph, context), "w"), "peak memory new:200 vs base:160, with 'b'");
  context.config.options["sink-iterative-peak-memory-budget"] = "0.25";
  EXPECT_THAT(sink(graph, context).order, ElementsAre("big", "m", "c", "b", "w", "a"));
}

// two waits pass the node that frees the most; what it frees is freed once.
TEST(SinkWaitsIterative, WhatAPassedNodeFreesIsCountedOnce) {
  const Graph graph = Costs()
                          .input("x", 2)
                          .compute("early", {"x"}, 20, 0)
                          .compute("big", {"x"}, 10, 0)
                          .collective("c", "x", 1)
                          .collective("d", "x", 1)
                          .wait("v", "d")
                          .compute("e", {"v", "big"}, 1, 0)
                          .wait("w", "c")
                          .compute("f", {"w", "big"}, 1, 0)
                          .compute("g", {"big"}, 1, 0)
                          .graph({"e", "f", "g"});
  PassContext context = plain_costs();
  context.config.options["sink-iterative-peak-memory-budget"] = "0";
  const Outcome outcome = sink(graph, context);
  EXPECT_THAT(outcome.order, ElementsAre("early", "big", "c", "d", "g", "w", "f", "v", "e"));
  EXPECT_EQ(record_of(outcome.records, "w").moved_past, "+g");
  EXPECT_EQ(record_of(outcome.records, "v").moved_past, "+g+w+f");
}

}  // namespace
}  // namespace braid::testing
