#include "lowering/plan/cost.h"

#include <gtest/gtest.h>

#include "braid/error.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

TEST(Cost, DevicesByArchitectureAndName) {
  EXPECT_EQ(device_model({.sm = 80}).name, "A100");
  EXPECT_EQ(device_model({.sm = 86}).name, "A10");
  EXPECT_EQ(device_model({.sm = 89}).name, "L40S");
  EXPECT_EQ(device_model({.sm = 90, .arch_specific = true}).name, "H100");
  EXPECT_EQ(device_model({.sm = 110}).name, "B200");
  EXPECT_EQ(device_model(Target::parse("H200")).name, "H200");
  EXPECT_EQ(find_device_model("H200")->hbm_gbs, 4800);
  EXPECT_EQ(find_device_model("X1"), nullptr);
}

TEST(Cost, CollectivesOrderAsInTheField) {
  const DeviceModel& h100 = *find_device_model("H100");
  auto ns = [&](const char* name, std::int64_t bytes) {
    return collective_ns(name, 8, bytes, h100);
  };
  EXPECT_LT(ns("one_shot", 64 << 10), ns("two_shot", 64 << 10));
  EXPECT_LT(ns("two_shot", 8 << 20), ns("one_shot", 8 << 20));
  EXPECT_LT(ns("multimem", 8 << 20), ns("two_shot", 8 << 20));
  EXPECT_LT(ns("two_shot", 1 << 20), ns("ring", 1 << 20));
  EXPECT_LT(ns("ring", 256 << 20), ns("two_shot", 256 << 20));
  EXPECT_LT(ns("ring", 4 << 10), 20e3);  // by LL: Simple alone begins with 56 us of hops
  EXPECT_GT(ns("ring", 4 << 10), ns("ll", 4 << 10));
  EXPECT_EQ(collective_ns("one_shot", 1, 1 << 20, h100), 0);
  EXPECT_THROW((void)collective_ns("magic", 8, 1, h100), Error);
}

TEST(Cost, BytesInFlightDecideTheRateOfMemory) {
  const DeviceModel& h100 = *find_device_model("H100");
  constexpr double kBytes = 1 << 26U;
  const double full = kBytes / h100.hbm_gbs;
  const double few = memory_ns(kBytes, 32, kStreamInFlight, h100);
  EXPECT_NEAR(full / few, 0.05, 0.01);  // a twentieth of the rate
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, 64, kStreamInFlight, h100), few / 2);
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, 32, 2 * kStreamInFlight, h100), few / 2);
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, 5 * h100.sms, kStreamInFlight, h100), full);
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, h100.sms, kTilesInFlight, h100), full);
}

TEST(Cost, NodesFollowTheRoofline) {
  Graph graph;
  const TensorType type{DType::kBF16, {4096, 4096}};
  const ValueId x = graph.add_input({"x", type, InputKind::kActivation, true});
  const NodeId mm = graph.add_node("mm", "mm", {x, x});
  const NodeId neg = graph.add_node("neg", "neg", {x});
  const NodeId view = graph.add_node("view", "view", {x}, {{"shape", Shape{4096 * 4096}}});
  const DeviceModel& h100 = *find_device_model("H100");
  const double flops = 2.0 * 4096 * 4096 * 4096;
  EXPECT_NEAR(node_ns(graph, graph.node(mm), {}, h100), 2500 + flops / 989e3, 1);
  EXPECT_NEAR(node_ns(graph, graph.node(neg), {}, h100), 2500 + 2.0 * 4096 * 4096 * 2 / 3352, 1);
  EXPECT_EQ(node_ns(graph, graph.node(view), {}, h100), 0);
  graph.set_hint(mm, "runtime_ns", 42);
  EXPECT_EQ(node_ns(graph, graph.node(mm), {}, h100), 42);
}

TEST(Cost, MatrixUnitsTakeEightBitsAtTwiceTheRate) {
  const DeviceModel& h100 = *find_device_model("H100");
  const auto mm_ns = [&](DType dtype, const char* op) {
    Graph graph;
    const TensorType type{dtype, {8192, 8192}};
    const ValueId a = graph.add_input({"a", type, InputKind::kActivation, true});
    std::vector<ValueId> operands{a, a};
    for (int i = 0; dtype_size(dtype) == 1 && i < 2; ++i) {
      operands.push_back(graph.add_input({"s" + std::to_string(i), {DType::kF32, {}}}));
    }
    const NodeId mm = graph.add_node("mm", op, operands);
    return node_ns(graph, graph.node(mm), {}, h100) - h100.launch_ns;
  };
  const double ns = 2.0 * 8192 * 8192 * 8192 / 989e3;
  EXPECT_NEAR(mm_ns(DType::kBF16, "mm"), ns, 1);
  EXPECT_NEAR(mm_ns(DType::kF8E4M3, "scaled_mm"), ns / 2, ns / 100);
  EXPECT_GT(mm_ns(DType::kF32, "mm"), 10 * ns);
}

TEST(Cost, AnOpaqueNodeTakesWhatItDeclares) {
  Graph graph;
  const ValueId x = graph.add_input({"x", {DType::kBF16, {1024}}, InputKind::kActivation, true});
  const auto add = [&](const char* kind, double flops) {
    return graph.add_node("", "opaque", {x},
                          {{"dtype", DType::kBF16},
                           {"shape", Shape{1024}},
                           {"flops", flops},
                           {"kind", std::string(kind)}});
  };
  const NodeId gemm = add("gemm", 989e6);
  const NodeId compute = add("compute", 67e6);
  const NodeId idle = add("extern", 0);
  const DeviceModel& h100 = *find_device_model("H100");
  EXPECT_NEAR(node_ns(graph, graph.node(gemm), {}, h100), 2500 + 1000, 1);
  EXPECT_NEAR(node_ns(graph, graph.node(compute), {}, h100), 2500 + 1000, 1);
  EXPECT_NEAR(node_ns(graph, graph.node(idle), {}, h100), 2500 + 4096.0 / 3352, 1);
}

// Only the rows that are asked for are read from a table.
TEST(Cost, AGatherReadsWhatItTakes) {
  Graph graph;
  const ValueId table = graph.add_input({"table", {DType::kF32, {1 << 20, 1024}}});
  const ValueId ids = graph.add_input({"ids", {DType::kI64, {8}}});
  const NodeId rows = graph.add_node("rows", "embedding", {table, ids});
  const DeviceModel& h100 = *find_device_model("H100");
  EXPECT_LT(node_ns(graph, graph.node(rows), {}, h100), 2 * h100.launch_ns);
  graph.add_output(graph.node(rows).outputs[0]);
  PassContext context = sm80();
  const Graph fused = fuse(graph, context);
  ASSERT_EQ(fused.nodes()[0].op_name(), "kernel");
  EXPECT_LT(node_ns(fused, fused.nodes()[0], {}, h100), 2 * h100.launch_ns);
}

// All other ranks' shards come in, or the chunks for them go out, while the product is made.
TEST(Cost, ACollectiveWithItsMatmulsTakesTheSlowerOfBoth) {
  const DeviceModel& h100 = *find_device_model("H100");
  const auto ns = [&](int world, std::int64_t columns) {
    Graph graph;
    graph.add_group("tp", {world, true, {}});
    const ValueId a = graph.add_input({"a", {DType::kBF16, {4096, 4096}}});
    const ValueId b = graph.add_input({"b", {DType::kBF16, {4096, columns}}});
    const NodeId fused =
        graph.add_node("f", "fused_all_gather_matmul", {a, b},
                       {{"gather_dim", std::int64_t{0}}, {"group", std::string("tp")}});
    return node_ns(graph, graph.node(fused), {}, h100) - h100.launch_ns - h100.barrier_ns;
  };
  const double shard_ns = 4096.0 * 4096 * 2 / (0.8 * 450);
  EXPECT_NEAR(ns(4, 16), 3 * shard_ns, 1);
  EXPECT_NEAR(ns(4, 16384), 2.0 * 4 * 4096 * 4096 * 16384 / 989e3, 1);
}

TEST(Cost, EveryDeviceCostsEveryNode) {
  const Graph graph = graph_of(input("x", R"("T", 4096)"),
                               all_reduce("c", "x") + "," + node("w", "wait_tensor", R"("c")") +
                                   "," + node("a", "exp", R"("w")"),
                               R"("a")");
  for (const char* name : {"A100", "H100", "H200", "B200", "cpu"}) {
    const DeviceModel* device = find_device_model(name);
    ASSERT_NE(device, nullptr) << name;
    EXPECT_GT(node_ns(graph, graph.nodes()[0], {{"T", 64}}, *device), device->launch_ns);
    EXPECT_EQ(node_ns(graph, graph.nodes()[1], {{"T", 64}}, *device), 0);
    EXPECT_GT(node_ns(graph, graph.nodes()[2], {{"T", 64}}, *device), device->launch_ns);
  }
}

TEST(Cost, NoNodeTakesLessThanNoTime) {
  Graph graph;
  const ValueId x = graph.add_input({"x", {DType::kF32, {4}}});
  const NodeId neg = graph.add_node("neg", "neg", {x});
  try {
    graph.set_hint(neg, "runtime_ns", -1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "neg/hints/runtime_ns: found -1; expected nanoseconds, 0 or more");
  }
}

TEST(Cost, AKernelCostsLessThanItsNodes) {
  const Graph graph =
      graph_of(input("x", R"("T", 4096)"),
               node("a", "exp", R"("x")") + "," + node("b", "neg", R"("a")"), R"("b")");
  PassContext context = sm80();
  const Graph fused = fuse(graph, context);
  const DeviceModel& device = device_model(context.target);
  const Bindings bindings = max_bindings(graph.symbols());
  EXPECT_EQ(bindings.at("T"), 64);
  double apart = 0;
  for (const Node& n : graph.nodes()) apart += node_ns(graph, n, bindings, device);
  EXPECT_LT(node_ns(fused, fused.nodes()[0], bindings, device), apart);
}

}  // namespace
}  // namespace braid::testing
