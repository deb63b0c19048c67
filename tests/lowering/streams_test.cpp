// Which stream a step runs on, and what a kernel that waits leaves to what waits beside it.

#include "lowering/schedule/streams.h"

#include <gmock/gmock.h>

#include "codegen/device_model.h"
#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/plan/residency.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

TEST(Streams, WhatIsInFlightIsLeftRoom) {
  Costs costs;
  costs.input("x", 8).compute("a", {"x"}, 8, 1).collective("c", "a", 1);
  costs.compute("b", {"a"}, 8, 1).collective("d", "b", 1).wait("w", "c");
  costs.compute("e", {"w"}, 8, 1).wait("v", "d").compute("f", {"v"}, 8, 1);
  const Graph graph = costs.graph({"e", "f"});
  const auto leaves = [&](int ranks_per_device) {
    std::vector<std::int64_t> all;
    for (const Placement& place : place_on_streams(graph, ranks_per_device)) {
      all.push_back(place.stream == kCommunicationStream ? -1 : place.leaves);
    }
    return all;
  };
  const std::int64_t n = kCommunicatorBlocks;
  EXPECT_THAT(leaves(1), ::testing::ElementsAre(0, -1, n, -1, 0, n, 0, 0));
  EXPECT_THAT(leaves(2), ::testing::ElementsAre(0, -1, 0, -1, 0, 0, 0, 0));
}

/// A product that is scattered in its kernel, which would fill the device; `beside` has nodes of a
/// value s.
Program with_scatter(const std::string& beside) {
  const Graph graph = parse_graph(
      R"({"braid": 1, "symbols": {"T": {"min": 1, "max": 4096}},
    "groups": {"tp": {"size": 4},
               "far": {"size": 2, "symmetric": false, "ranks": [[0, 2], [1, 3]]}},
    "inputs": [)" +
      input("x", R"("4*T", 64)") + "," + input("y", "4096, 4096") + "," + input("w", "64, 512") +
      R"(], "nodes": [)" + beside + "," + node("p", "mm", R"("x", "w")") + "," +
      node("r", "reduce_scatter_tensor", R"("p")", R"("group": "tp", "reduce_op": "sum")") + "," +
      node("q", "wait_tensor", R"("r")") + R"(], "outputs": ["q", "s"]})");
  PassContext context = sm80();
  context.config.enable = {"micro_pipeline"};
  context.config.always_pipeline = context.config.in_kernel = true;
  return lower(graph, context);
}

std::int64_t most_waiting_blocks(const Program& program) {
  std::int64_t most = 0;
  for (const Step& step : program.steps) {
    if (comm_group(program, step) != "tp") continue;
    const Expr& grid = program.kernels[static_cast<std::size_t>(step.kernel)].needs.grid;
    most = std::max(most, grid.evaluate({}));
  }
  return most;
}

// `lower` verifies that both find room.
TEST(Streams, AKernelThatWaitsLeavesRoomToACommunicator) {
  const int sms = device_model(sm80().target).sms;
  EXPECT_EQ(most_waiting_blocks(with_scatter(node("s", "neg", R"("y")"))), sms);
  EXPECT_EQ(most_waiting_blocks(with_scatter(all_reduce("c", "y", "far") + "," +
                                             node("s", "wait_tensor", R"("c")"))),
            sms - kCommunicatorBlocks);
}

}  // namespace
}  // namespace braid::testing
