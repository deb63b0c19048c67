#include "lowering/micro_pipeline/pipeline_cost.h"

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

// A0-02
TEST(PipelineCost, ArithmeticIntensity) {
  EXPECT_DOUBLE_EQ(arithmetic_intensity(2, 3, 4), 24.0 / (8 + 12 + 6));
  EXPECT_EQ(arithmetic_intensity(0, 3, 4), 0);
  EXPECT_EQ(arithmetic_intensity(0, 0, 0), 0);
}

PipelineEstimate estimate(std::int64_t rows, std::int64_t k, std::int64_t n,
                          double collective_hint = 0) {
  Graph graph("test");
  graph.add_group("tp", {4, true, {}});
  const auto matrix = [](std::int64_t m, std::int64_t c) {
    return TensorType{DType::kBF16, {m, c}};
  };
  const ValueId x = graph.add_input({.name = "x", .type = matrix(rows / 4, k)});
  const ValueId w = graph.add_input({.name = "w", .type = matrix(k, n)});
  const NodeId gather =
      graph.add_node("g", "all_gather_into_tensor", {x}, {{"group", std::string("tp")}});
  if (collective_hint > 0) graph.set_hint(gather, "runtime_ns", collective_hint);
  const NodeId wait = graph.add_node("y", "wait_tensor", graph.node(gather).outputs);
  const NodeId m = graph.add_node("m", "mm", {graph.node(wait).outputs[0], w});
  const NodeId ids[] = {m};
  return estimate_pipeline(graph, graph.node(gather), ids, PipelinedDim::kM, {},
                           *find_device_model("H100"));
}

// C-10, C-31: few rows do not fill a chunk, many hide their transfer.
TEST(PipelineCost, ManyRowsGainAndFewDoNot) {
  const PipelineEstimate few = estimate(64, 4096, 4096);
  EXPECT_GT(few.pipelined_ns, few.plain_ns);
  const PipelineEstimate many = estimate(16384, 8192, 8192);
  EXPECT_LT(many.pipelined_ns, many.plain_ns);
  EXPECT_GT(many.intensity, few.intensity);
}

TEST(PipelineCost, NeverFasterThanTheSlowerOfTheTwo) {
  const PipelineEstimate slow_links = estimate(16384, 8192, 8192, 1e8);
  EXPECT_GE(slow_links.pipelined_ns, 1e8);
  EXPECT_LT(slow_links.pipelined_ns, slow_links.plain_ns);
}

}  // namespace
}  // namespace braid::testing
