#include <gmock/gmock.h>

#include "braid/error.h"
#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The pass's result: names in order, and its records.
struct Outcome {
  std::vector<std::string> order;
  std::vector<MoveRecord> records;
};

Outcome reorder(const Graph& graph, PassContext context = plain_costs()) {
  Outcome outcome;
  context.move_records = &outcome.records;
  const Graph result = reorder_communication_preserving_peak_memory(graph, context);
  verify(result);
  outcome.order = node_names(result);
  return outcome;
}

PassContext by_estimates() {
  PassContext context = plain_costs();
  context.config.options["reorder-iterative-use-runtime-estimations"] = "true";
  return context;
}

std::string why(const Outcome& outcome, const std::string& node) {
  return record_of(outcome.records, node).limiting_factor.text();
}

// A3-30, A3-31, A3-18: to the front, with what is beside it before and after.
TEST(ReorderCommunication, ACollectivePassesWhatItDoesNotNeed) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 30, "gemm")
                          .compute("b", {"x"}, 8, 40)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .graph({"w", "a", "b"});
  const Outcome outcome = reorder(graph);
  EXPECT_THAT(outcome.order, ElementsAre("c", "a", "b", "w"));
  const MoveRecord& record = record_of(outcome.records, "c");
  EXPECT_EQ(record.moves, 2);
  EXPECT_EQ(record.grouped, 0);
  EXPECT_TRUE(record.limiting_factor.empty());
  EXPECT_EQ(record.comm_ns, 100);
  EXPECT_EQ(record.comp_ns, 70);
  EXPECT_EQ(record.initial_exposed_ns, 100);
  EXPECT_EQ(record.final_exposed_ns, 30);
  EXPECT_EQ(record.improvement_ns(), 70);
  EXPECT_EQ(record.moved_past, "+b+a");
  EXPECT_EQ(record.overlap, "+a[30]+b[40]");

  PassContext context = plain_costs();
  reorder_communication_preserving_peak_memory(graph, context);
  EXPECT_THAT(
      remarks_of(context, "c"),
      ElementsAre("applied: passes 2 nodes, with 0 that it takes along; exposed 0.0 us, 0.1 "
                  "before"));
}

// A3-31: nothing to do, nothing worked out.
TEST(ReorderCommunication, WithoutCollectivesTheGraphStays) {
  const Graph graph = Costs().input("x", 8).compute("a", {"x"}, 8, 30).graph({"a"});
  PassContext context = plain_costs();
  EXPECT_FALSE(reorder_communication_preserving_peak_memory.run(graph, context).has_value());
  EXPECT_FALSE(context.base_peak.has_value());
}

// A3-31: what the collective needs moves with it, but for matmuls; by estimates these, too.
TEST(ReorderCommunication, WhatItNeedsIsTakenAlong) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("mm", {"x"}, 8, 30, "gemm")
                          .compute("a", {"x"}, 8, 10)
                          .compute("b", {"x"}, 8, 10)
                          .compute("cast", {"mm"}, 8, 5)
                          .collective("c", "cast", 100)
                          .wait("w", "c")
                          .graph({"w", "a", "b"});
  const Outcome outcome = reorder(graph);
  EXPECT_THAT(outcome.order, ElementsAre("mm", "cast", "c", "a", "b", "w"));
  EXPECT_EQ(record_of(outcome.records, "c").grouped, 1);
  EXPECT_EQ(why(outcome, "c"),
            "data dependency detected: candidate 'mm', non_group_reason: contains_gemm_like");
  const Outcome estimated = reorder(graph, by_estimates());
  EXPECT_EQ(record_of(estimated.records, "c").grouped, 2);
  EXPECT_TRUE(record_of(estimated.records, "c").limiting_factor.empty());
}

// A3-32: another collective is taken along on request only.
TEST(ReorderCommunication, CollectivesAreTakenAlongOnRequest) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 30)
                          .collective("d", "x", 100)
                          .wait("v", "d")
                          .collective("c", "v", 100)
                          .wait("w", "c")
                          .graph({"w", "a"});
  PassContext context = plain_costs();
  context.config.options["reorder-iterative-unsafe-collectives-reorder"] = "true";
  EXPECT_EQ(why(reorder(graph, context), "c"),
            "data dependency detected: candidate 'd', non_group_reason: contains_collective");
  context.config.options["reorder-iterative-debug-limit-to-reorder"] = "0";
  EXPECT_THAT(reorder(graph, context).records, IsEmpty());
  context.config.options["reorder-iterative-debug-limit-to-reorder"] = "1";
  EXPECT_EQ(reorder(graph, context).records.size(), 1U);
  context.config.options["reorder-iterative-group-with-collectives"] = "true";
  context.config.options.erase("reorder-iterative-debug-limit-to-reorder");
  EXPECT_EQ(record_of(reorder(graph, context).records, "c").grouped, 2);
}

// the order of collectives is safe unless somebody says otherwise.
TEST(ReorderCommunication, CollectivesKeepTheirOrder) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 30)
                          .compute("m", {"a"}, 8, 30, "gemm")
                          .collective("d", "m", 100)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .wait("v", "d")
                          .graph({"w", "v"});
  const Outcome outcome = reorder(graph);
  EXPECT_THAT(outcome.order, ElementsAre("a", "m", "d", "c", "w", "v"));
  EXPECT_EQ(why(outcome, "c"), "collective ordering: 'd' is one");
  PassContext context = plain_costs();
  context.config.options["reorder-iterative-unsafe-collectives-reorder"] = "true";
  EXPECT_THAT(reorder(graph, context).order, ElementsAre("c", "a", "m", "d", "w", "v"));
}

// A3-31, step a: enough is beside it.
TEST(ReorderCommunication, ByEstimatesItStopsWhenItIsHidden) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 60)
                          .compute("b", {"x"}, 8, 60)
                          .compute("d", {"x"}, 8, 60)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .graph({"w", "a", "b", "d"});
  PassContext context = by_estimates();
  context.config.options["reorder-iterative-extra-comm-comp-overlap"] = "0";
  const Outcome outcome = reorder(graph, context);
  EXPECT_THAT(outcome.order, ElementsAre("a", "c", "b", "d", "w"));
  EXPECT_EQ(why(outcome, "c"), "unexposed by runtime estimations");
  // Half as much again, and twice the time of a collective.
  EXPECT_THAT(reorder(graph, by_estimates()).order, ElementsAre("c", "a", "b", "d", "w"));
  context.config.options["reorder-sink-runtime-estimations-comm-mult"] = "2";
  EXPECT_THAT(reorder(graph, context).order, ElementsAre("c", "a", "b", "d", "w"));
  context.config.options["reorder-sink-runtime-estimations-non-comm-mult"] = "2";
  EXPECT_THAT(reorder(graph, context).order, ElementsAre("a", "c", "b", "d", "w"));
}

// A3-31, step d: a wait in the group must not lose more than the collective gains.
TEST(ReorderCommunication, ByEstimatesWaitsInTheGroupCount) {
  const auto program = [](double needed_ns) {
    return Costs()
        .input("x", 8)
        .collective("d", "x", needed_ns)
        .compute("a", {"x"}, 8, 50)
        .wait("v", "d")
        .collective("c", "v", 30)
        .wait("w", "c")
        .graph({"w", "a"});
  };
  PassContext context = by_estimates();
  // d takes 50, which a hides: c would gain 30, d lose 50.
  const Outcome outcome = reorder(program(50), context);
  EXPECT_THAT(outcome.order, ElementsAre("d", "a", "v", "c", "w"));
  EXPECT_EQ(why(outcome, "c"),
            "candidate 'a' has compute 50, group contains waits, total_exposed_delta 20");
  // d takes 20, which a hides: c gains 30, d loses 20.
  EXPECT_THAT(reorder(program(20), context).order, ElementsAre("d", "v", "c", "a", "w"));
}

// A3-31, step e: compute in the group must not leave a collective that it passes.
TEST(ReorderCommunication, ByEstimatesItDoesNotTakeComputeFromACollective) {
  const auto program = [](double d_ns) {
    return Costs()
        .input("x", 8)
        .collective("d", "x", d_ns)
        .compute("a", {"x"}, 8, 50)
        .collective("c", "a", 30)
        .wait("w", "c")
        .wait("v", "d")
        .graph({"w", "v"});
  };
  PassContext context = by_estimates();
  context.config.options["reorder-iterative-unsafe-collectives-reorder"] = "true";
  const Outcome outcome = reorder(program(50), context);
  EXPECT_EQ(why(outcome, "c"), "candidate 'd' is collective, group_runtime 50");
  EXPECT_THAT(outcome.order, ElementsAre("d", "a", "c", "w", "v"));
}

// A3-33, X-8: each test sees the group where it is now. Past f and e, c stands beside both.
TEST(ReorderCommunication, TheBudgetHoldsAfterEveryMove) {
  const Graph graph = Costs()
                          .input("x", 10)
                          .compute("big", {"x"}, 100, 1, "gemm")
                          .compute("large", {"x"}, 50, 1, "gemm")
                          .compute("e", {"large"}, 1, 1)
                          .compute("f", {"big"}, 1, 1)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .graph({"w"});
  PassContext context = plain_costs();
  context.config.options["reorder-iterative-peak-memory-budget"] = "0";
  const Outcome outcome = reorder(graph, context);
  EXPECT_THAT(outcome.order, ElementsAre("big", "large", "e", "c", "f", "w"));
  EXPECT_EQ(why(outcome, "c"), "peak memory new:171 vs base:161, with 'e'");
  context.config.options["reorder-iterative-peak-memory-budget"] = "0.1";
  EXPECT_THAT(reorder(graph, context).order, ElementsAre("c", "big", "large", "e", "f", "w"));
}

TEST(ReorderCommunication, LooksAsFarAsItIsTold) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 30)
                          .compute("b", {"x"}, 8, 30)
                          .collective("c", "x", 100)
                          .wait("w", "c")
                          .graph({"w", "a", "b"});
  PassContext context = plain_costs();
  context.config.options["reorder-sink-window"] = "1";
  const Outcome outcome = reorder(graph, context);
  EXPECT_THAT(outcome.order, ElementsAre("a", "c", "b", "w"));
  EXPECT_EQ(why(outcome, "c"), "1 nodes are as far as it looks");
  context.config.options["reorder-sink-window"] = "0";
  EXPECT_THAT(reorder(graph, context).order, ElementsAre("c", "a", "b", "w"));
}

// A3-35: one record for each collective, also for those that stay.
TEST(ReorderCommunication, EveryCollectiveHasARecord) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("a", {"x"}, 8, 0)
                          .collective("c", "x", 100)
                          .collective("d", "x", 100)
                          .synchronous("s", "a", 5)
                          .wait("w", "c")
                          .wait("v", "d")
                          .graph({"w", "v", "s"});
  const Outcome outcome = reorder(graph);
  ASSERT_EQ(outcome.records.size(), 2U);  // s is over when it ends
  EXPECT_EQ(outcome.records[1].node, "d");
  EXPECT_EQ(outcome.records[1].moves, 1);
  EXPECT_EQ(why(outcome, "d"), "collective ordering: 'c' is one");
  PassContext context = plain_costs();
  reorder_communication_preserving_peak_memory(
      Costs().input("x", 8).collective("c", "x", 1).wait("w", "c").graph({"w"}), context);
  EXPECT_THAT(remarks_of(context, "c"), ElementsAre("missed: nothing stands where it could move"));
}

}  // namespace
}  // namespace braid::testing
