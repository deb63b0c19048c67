// Joined kernels: values, bits, checks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "findings.h"
#include "ir/groups.h"
#include "lowering/llama_layer.h"
#include "lowering/passes.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid::testing {
namespace {

constexpr std::int64_t kMost = 200;
const Dim kT = Dim::symbol("T");

PassConfig joining() { return {.enable = {"join_kernels"}}; }

/// A residual with a norm whose rows need more warps than the matmul has, and that matmul.
Graph norm_and_matmul(DType dtype) {
  GraphBuilder b(kMost);
  const ValueId x = b.in(dtype, {kT, 1500});
  const ValueId sum = b.op("add", {x, b.in(dtype, {kT, 1500})});
  const ValueId norm = b.op("rms_norm", {sum, b.in(dtype, {1500})}, {{"eps", 1e-5}});
  return b.take({b.op("mm", {norm, b.in(dtype, {1500, 520})}), sum});
}

/// Parts of a matmul, and what adds them.
Graph matmul_and_rows() {
  GraphBuilder b(kMost);
  const ValueId y = b.op("mm", {b.in(DType::kBF16, {kT, 96}), b.in(DType::kBF16, {96, 520})});
  return b.take({b.op("softmax", {y}, {{"dim", std::int64_t{-1}}})});
}

/// Three in a row, of which the last reads the first, too.
Graph three() {
  GraphBuilder b(kMost);
  const ValueId x = b.in(DType::kF16, {kT, 256});
  const ValueId norm = b.op("rms_norm", {x, b.in(DType::kF16, {256})}, {{"eps", 1e-5}});
  const ValueId y = b.op("mm", {norm, b.in(DType::kF16, {256, 256})});
  const ValueId all = b.op("softmax", {b.op("add", {y, norm})}, {{"dim", std::int64_t{-1}}});
  return b.take({all, norm});
}

std::size_t launches(const Graph& graph, const PassConfig& passes = joining()) {
  PassContext context;
  context.config = passes;
  return lower(graph, context).steps.size();
}

TEST(JoinKernels, HaveTheBitsOfKernelsApart) {
  for (const auto& graph :
       {norm_and_matmul(DType::kBF16), norm_and_matmul(DType::kF16), matmul_and_rows(), three()}) {
    EXPECT_LT(launches(graph), launches(graph, {}));
    for (const std::int64_t t : {1, 17, 130, 200}) {
      EXPECT_TRUE(matches_reference_and_unfused(graph, {{"T", t}}, 1, joining())) << t;
    }
  }
}

/// Each bucket's counters are its own, and keep their values while others run.
TEST(JoinKernels, OfSeveralBucketsRunInTurns) {
  GraphBuilder b(kMost);
  const ValueId x = b.in(DType::kBF16, {kT, 256});
  const ValueId norm = b.op("rms_norm", {x, b.in(DType::kBF16, {256})}, {{"eps", 1e-5}});
  const ValueId y = b.op("mm", {norm, b.in(DType::kBF16, {256, 256})});
  const Graph whole = b.take({b.op("softmax", {y}, {{"dim", std::int64_t{-1}}})});
  SymbolTable symbols = whole.symbols();
  symbols.at("T").buckets = {{8}, {64}};
  const Graph graph = with_tables(whole, symbols, {});
  WorldOptions options = cpu_world_options(1);
  options.sanitize = kCheckAll;
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world, joining());
  EXPECT_LT(launches(graph), launches(graph, {}));
  for (const std::int64_t t : {3, 150, 8, 64, 200, 5, 9}) {
    const RankTensors inputs = random_inputs(graph, {{"T", t}}, t);
    const RankTensors got = run_once(executable, graph, {{"T", t}}, inputs);
    EXPECT_TRUE(same_as_reference(graph, got, evaluate(graph, inputs, {{"T", t}}))) << t;
  }
}

TEST(JoinKernels, PassEveryCheck) {
  for (const auto& graph : {norm_and_matmul(DType::kBF16), matmul_and_rows(), three()}) {
    for (const std::int64_t t : {3, 200}) {
      EXPECT_TRUE(runs_clean(graph, {{"T", t}}, 1, joining())) << t;
    }
  }
}

TEST(JoinKernels, AreRightInManyInterleavings) {
  const Graph graph = three();
  const RankTensors inputs = random_inputs(graph, {{"T", 40}}, 1);
  const RankTensors expected = evaluate(graph, inputs, {{"T", 40}});
  for (const char* schedule : {"1", "2", "3", "4", "5", "delay:1", "delay:2", "delay:3"}) {
    WorldOptions options = cpu_world_options(1);
    options.sanitize = kCheckAll;
    options.schedule = parse_schedule(schedule);
    const World world = World::open(options);
    Executable executable = Executable::compile(graph, world, joining());
    // A run begins with the counter as the one before it left it.
    for (int i = 0; i < 3; ++i) {
      const RankTensors got = run_once(executable, graph, {{"T", 40}}, inputs);
      EXPECT_TRUE(same_as_reference(graph, got, expected)) << schedule;
    }
    EXPECT_EQ(found_by(world.device()).size(), 0U) << schedule;
  }
}

constexpr LayerSizes kSmall{.tokens = 24,
                            .hidden = 256,
                            .inner = 352,
                            .heads = 4,
                            .key_heads = 2,
                            .width = 64,
                            .page = 16,
                            .pages = 4};

// An index of a kernel behind another one.
TEST(JoinKernels, AnErrorNamesItsNode) {
  const Graph graph = llama_layer(kSmall);
  RankTensors inputs = random_inputs(graph, {}, 1);
  HostTensor& slots = inputs[0][3];
  ASSERT_EQ(graph.inputs()[3].name, "slots");
  std::vector<double> values = slots.to_doubles();
  values[7] = 64;
  slots = HostTensor::from_doubles(slots.dtype, slots.shape, values);
  const std::string expected = error_of([&] { (void)evaluate(graph, inputs, {}); });
  EXPECT_NE(expected.find("append"), std::string::npos) << expected;
  const World world = World::open(world_options(1));
  Executable executable = Executable::compile(graph, world, joining());
  executable.prepare({});
  set_inputs(executable, graph, inputs);
  executable.run();
  EXPECT_EQ(error_of([&] { executable.synchronize(); }), expected);
}

TEST(JoinKernels, ALlamaLayerAppendsAndAttends) {
  const Graph graph = llama_layer(kSmall);
  EXPECT_LE(launches(graph), 3);
  EXPECT_TRUE(matches_reference_and_unfused(graph, {}, 1, joining()));
  EXPECT_TRUE(runs_clean(graph, {}, 1, joining()));
}

// The update would lie in the place of what the next kernel reads as it was.
TEST(JoinKernels, WhatIsUpdatedIsNotReadBesideIt) {
  GraphBuilder b(kMost);
  const ValueId table =
      b.op("softmax", {b.in(DType::kF32, {64, 256})}, {{"dim", std::int64_t{-1}}});
  const ValueId rows = b.in(DType::kF32, {3, 256});
  const ValueId index = b.op("arange", {},
                             {{"start", std::int64_t{5}},
                              {"end", std::int64_t{8}},
                              {"step", std::int64_t{1}},
                              {"dtype", DType::kI64}});
  const ValueId now = b.op("index_copy", {table, index, rows}, {{"dim", std::int64_t{0}}});
  const ValueId change = b.op("sub", {now, table});
  const Graph graph = b.take({b.op("sum", {change}, {{"dim", std::vector<std::int64_t>{1}}})});
  EXPECT_TRUE(matches_reference_and_unfused(graph, {{"T", 1}}, 1, joining()));
}

/// A row's sum has one order, however many warps add it.
TEST(JoinKernels, RowsHaveTheSameBitsWithAnyNumberOfWarps) {
  for (const std::int64_t width : {2048, 4096, 3000, 8192}) {
    std::vector<HostTensor> results;
    for (const std::int64_t warps : {1, 2, 4, 8, 16, 32}) {
      auto body = std::make_shared<Graph>();
      const ValueId x = body->add_input({"i0", {DType::kF32, {3, width}}});
      const NodeId sum = body->add_node("v0", "sum", {x}, {{"dim", std::vector<std::int64_t>{1}}});
      body->add_output(body->node(sum).outputs[0]);
      GraphBuilder b(1);
      const ValueId y =
          b.op("kernel", {b.in(DType::kF32, {3, width})},
               {{"body", std::shared_ptr<const Graph>(body)},
                {"config", std::map<std::string, std::int64_t>{{"num_warps", warps}}}});
      const Graph graph = b.take({y});
      const World world = World::open(world_options(1));
      Executable executable = Executable::compile(graph, world);
      results.push_back(run_once(executable, graph, {}, random_inputs(graph, {}, 1))[0][0]);
      EXPECT_EQ(results.back().data, results.front().data) << width << " by " << warps;
    }
  }
}

}  // namespace
}  // namespace braid::testing
