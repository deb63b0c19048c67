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
                          double collective_hint = 0, PipelinedDim dim = PipelinedDim::kM,
                          std::int64_t ranks = 4) {
  Graph graph("test");
  graph.add_group("tp", {ranks, true, {}});
  const auto matrix = [](std::int64_t m, std::int64_t c) {
    return TensorType{DType::kBF16, {m, c}};
  };
  const ValueId x = graph.add_input({.name = "x", .type = matrix(rows / ranks, k)});
  const ValueId w = graph.add_input({.name = "w", .type = matrix(k, n)});
  const NodeId gather =
      graph.add_node("g", "all_gather_into_tensor", {x}, {{"group", std::string("tp")}});
  if (collective_hint > 0) graph.set_hint(gather, "runtime_ns", collective_hint);
  const NodeId wait = graph.add_node("y", "wait_tensor", graph.node(gather).outputs);
  const NodeId m = graph.add_node("m", "mm", {graph.node(wait).outputs[0], w});
  const NodeId ids[] = {m};
  return estimate_pipeline(graph, graph.node(gather), ids, dim, {}, *find_device_model("H100"));
}

// C-10, C-31: few rows do not fill a chunk, many hide their transfer.
TEST(PipelineCost, ManyRowsGainAndFewDoNot) {
  const PipelineEstimate few = estimate(64, 4096, 4096);
  EXPECT_GT(few.pipelined_ns.value(), few.plain_ns);
  const PipelineEstimate many = estimate(16384, 8192, 8192);
  EXPECT_LT(many.pipelined_ns.value(), many.plain_ns);
  EXPECT_GT(many.intensity, few.intensity);
}

TEST(PipelineCost, NeverFasterThanTheSlowerOfTheTwo) {
  const PipelineEstimate slow_links = estimate(16384, 8192, 8192, 1e8);
  EXPECT_GE(slow_links.pipelined_ns.value(), 1e8);
  EXPECT_LT(slow_links.pipelined_ns.value(), slow_links.plain_ns);
}

// One block copies a panel of 64 rows, however many others are idle.
TEST(PipelineCost, WithinAKernelManyRowsGainAndOnePanelTakesABlocksTime) {
  const PipelineEstimate few = estimate(256, 65536, 64);
  EXPECT_GT(few.in_kernel_ns.value(), 64.0 * 65536 * 2 / 44);
  const PipelineEstimate many = estimate(16384, 4096, 1024);
  EXPECT_LT(many.in_kernel_ns.value(), many.plain_ns);
  EXPECT_LE(many.best_ns(), *many.in_kernel_ns);
  EXPECT_FALSE(estimate(4096, 4096, 4096, 0, PipelinedDim::kK).in_kernel_ns);
}

// A chunk has fewer tiles than there are multiprocessors, and smaller ones: eight of them multiply
// for longer than the whole. By counts the whole takes 5 + 75 us of the gather and 234 of the
// product, the chunks 5 + 7 and eight times 34.
TEST(PipelineCost, ChunksPayForTilesOfTheirOwn) {
  const PipelineEstimate eight = estimate(4096, 4096, 4096, 0, PipelinedDim::kM, 8);
  EXPECT_LT(eight.pipelined_ns.value(), eight.plain_ns);
  EXPECT_GT(eight.pipelined_ns.value(), 0.8 * eight.plain_ns);
  EXPECT_NEAR(eight.plain_ns, 314e3, 0.15 * 314e3);
  EXPECT_NEAR(eight.pipelined_ns.value(), 284e3, 0.16 * 284e3);
}

TEST(PipelineCost, OnlyRowsAreCut) {
  for (const PipelinedDim dim : {PipelinedDim::kN, PipelinedDim::kK}) {
    const PipelineEstimate other = estimate(16384, 8192, 8192, 0, dim);
    EXPECT_FALSE(other.pipelined_ns);
    EXPECT_FALSE(other.best_ns());
  }
}

/// A product of few rows, with a collective of four ranks in front of it or behind.
Graph decode_of(const char* op, std::int64_t m, std::int64_t k, std::int64_t n) {
  Graph graph("test");
  graph.add_group("tp", {4, true, {}});
  const bool gathers = std::string_view(op).starts_with("all_gather");
  const ValueId x = graph.add_input(
      {.name = "x", .type = {DType::kBF16, {gathers ? m / 4 : m, k}}, .per_rank = true});
  const ValueId w = graph.add_input({.name = "w", .type = {DType::kBF16, {k, n}}});
  const auto collective = [&](ValueId of) {
    Attrs attrs{{"group", std::string("tp")}};
    if (!gathers) attrs.emplace("reduce_op", std::string("sum"));
    const NodeId c = graph.add_node("c", op, {of}, std::move(attrs));
    return graph.node(graph.add_node("y", "wait_tensor", graph.node(c).outputs)).outputs[0];
  };
  const auto multiply = [&](ValueId left) {
    return graph.node(graph.add_node("m", "mm", {left, w})).outputs[0];
  };
  graph.add_output(gathers ? multiply(collective(x)) : collective(multiply(x)));
  return graph;
}

/// Of all kernels, after these passes.
double lowered_ns(Graph graph, std::initializer_list<const Pass*> passes) {
  PassContext context{.target = Target::parse("H100")};
  for (const Pass* pass : passes) graph = (*pass)(graph, context);
  double ns = 0;
  for (const Node& node : graph.nodes()) {
    ns += node_ns(graph, node, {}, device_model(context.target));
  }
  return ns;
}

// C-10, C-31: a fused matmul is never cut along K, where it would be when apart.
TEST(PipelineCost, FusesNothingThatIsQuickerInParts) {
  constexpr double kSum = 1.04;  // of parts, whose latency the price of a kernel leaves out
  int fused = 0;
  for (const char* op : {"all_reduce", "reduce_scatter_tensor", "all_gather_into_tensor"}) {
    for (const auto& [m, k, n] : {std::tuple{8, 1024, 1024},
                                  {4, 2048, 2048},
                                  {64, 4096, 256},
                                  {8, 7168, 4096},
                                  {128, 2048, 256},
                                  {512, 2048, 256},
                                  {256, 4096, 1024},
                                  {1024, 8192, 1024}}) {
      const Graph graph = decode_of(op, m, k, n);
      const double apart = lowered_ns(graph, {&split_reductions, &lower_collectives, &fuse});
      const double together =
          lowered_ns(graph, {&micro_pipeline, &split_reductions, &lower_collectives, &fuse});
      EXPECT_LE(together, kSum * apart) << op << " " << m << " " << k << " " << n;
      fused += together < apart ? 1 : 0;
    }
  }
  EXPECT_GT(fused, 3);
}

// A kernel that multiplies has too few warps for rows of 4096 elements. Apart, the kernel of the
// all-reduce computes the norm.
TEST(PipelineCost, CountsTheNormThatTheKernelOfAMatmulCannotTake) {
  const auto totals = [](std::int64_t columns) {
    Graph graph("test");
    graph.add_group("tp", {2, true, {}});
    const auto in = [&](const char* name, Shape shape) {
      return graph.add_input(
          {.name = name, .type = {DType::kBF16, std::move(shape)}, .per_rank = true});
    };
    const NodeId m = graph.add_node("m", "mm", {in("x", {8, 1024}), in("w", {1024, columns})});
    const NodeId c =
        graph.add_node("c", "all_reduce", graph.node(m).outputs,
                       {{"group", std::string("tp")}, {"reduce_op", std::string("sum")}});
    const NodeId y = graph.add_node("y", "wait_tensor", graph.node(c).outputs);
    const NodeId r = graph.add_node("r", "add", {graph.node(y).outputs[0], in("s", {8, columns})});
    const NodeId n = graph.add_node("n", "rms_norm", {graph.node(r).outputs[0], in("g", {columns})},
                                    {{"eps", 1e-5}});
    graph.add_output(graph.node(n).outputs[0]);
    graph.add_output(graph.node(r).outputs[0]);
    return std::pair(lowered_ns(graph, {&lower_collectives, &fuse}),
                     lowered_ns(graph, {&micro_pipeline, &lower_collectives, &fuse}));
  };
  const auto [apart, together] = totals(4096);
  EXPECT_LE(together, apart);
  const auto [short_apart, short_together] = totals(2048);
  EXPECT_LT(short_together, short_apart);
}

TEST(PipelineCost, OfAGraphCountsTheCutOfItsMatmuls) {
  const Graph graph = decode_of("all_reduce", 1, 2048, 2048);
  const PassContext context{.target = Target::parse("H100")};
  const double told = graph_ns(graph, context);
  EXPECT_LT(told, lowered_ns(graph, {&lower_collectives, &fuse}) - 1000);
  EXPECT_NEAR(told, lowered_ns(graph, {&split_reductions, &lower_collectives, &fuse}), 1000);
}

/// On a device where the kernel that scatters has the tiles of the plain one.
PipelineEstimate estimate_scatter(std::int64_t batch, std::int64_t dim,
                                  double collective_hint = 0) {
  Graph graph("test");
  graph.add_group("tp", {4, true, {}});
  const std::int64_t rows = 4096 / batch;
  const ValueId a = graph.add_input({.name = "a", .type = {DType::kBF16, {batch, rows, 4096}}});
  const ValueId w = graph.add_input({.name = "w", .type = {DType::kBF16, {4096, 4096}}});
  const NodeId m = graph.add_node("m", "matmul", {a, w});
  const NodeId r = graph.add_node(
      "r", "reduce_scatter_tensor", graph.node(m).outputs,
      {{"group", std::string("tp")}, {"dim", dim}, {"reduce_op", std::string("sum")}});
  if (collective_hint > 0) graph.set_hint(r, "runtime_ns", collective_hint);
  const NodeId ids[] = {m};
  return estimate_pipeline(graph, graph.node(r), ids, PipelinedDim::kM, {},
                           *find_device_model("A100"));
}

// A4-14 to A4-16: the dim that is cut must lie in front of the others.
TEST(PipelineCost, MovingADimTakesTime) {
  EXPECT_EQ(estimate_scatter(1, 1).pipelined_ns, estimate_scatter(4, 0).pipelined_ns);
  EXPECT_GT(estimate_scatter(4, 1).pipelined_ns.value(),
            estimate_scatter(4, 0).pipelined_ns.value());
}

// A4-17: tiles are sent while others are multiplied.
TEST(PipelineCost, AScatterWithinAKernelHidesItsTransfer) {
  const PipelineEstimate scatter = estimate_scatter(4, 0);
  EXPECT_LT(scatter.in_kernel_ns.value(), scatter.plain_ns);
  EXPECT_EQ(scatter.in_kernel_ns, estimate_scatter(1, 1).in_kernel_ns);
  EXPECT_FALSE(estimate_scatter(4, 1).in_kernel_ns);
  const PipelineEstimate slow_links = estimate_scatter(4, 0, 1e8);
  EXPECT_GE(slow_links.in_kernel_ns.value(), 1e8);
  EXPECT_LT(slow_links.in_kernel_ns.value(), slow_links.plain_ns);
}

}  // namespace
}  // namespace braid::testing
