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
  EXPECT_EQ(collective_ns("one_shot", 1, 1 << 20, h100), 0);
  EXPECT_THROW((void)collective_ns("magic", 8, 1, h100), Error);
}

TEST(Cost, AKernelIsHeldByItsSlowestUnit) {
  const DeviceModel& h100 = *find_device_model("H100");
  KernelCounts kernel{.launches = 2, .blocks = 2 * 132};
  EXPECT_EQ(estimate_kernel({}, h100).limiter, "launch");
  EXPECT_EQ(estimate_kernel(kernel, h100).limiter, "launch");
  kernel.minimum_bytes = 2 * 3352000000ULL;  // a millisecond of memory each
  EXPECT_EQ(estimate_kernel(kernel, h100).limiter, "memory");
  EXPECT_NEAR(estimate_kernel(kernel, h100).ns, 1e6 + h100.launch_ns, 1e3);
  kernel.total.peer_bytes = 2 * 900000000ULL;  // two of NVLink
  EXPECT_EQ(estimate_kernel(kernel, h100).limiter, "NVLink");
  kernel.total.mma_flops = 2ULL * 3 * 989000000000;  // three of the matrix units
  EXPECT_EQ(estimate_kernel(kernel, h100).limiter, "matrix unit");
  EXPECT_NEAR(estimate_kernel(kernel, h100).ns, 3e6 + h100.launch_ns, 1e3);
  kernel.blocks = 2;  // which one multiprocessor has only a share of
  EXPECT_NEAR(estimate_kernel(kernel, h100).ns, 132 * 3e6 + h100.launch_ns, 1e6);
  kernel.total.instructions[0] = 2ULL * 1980000000 * 4;  // a second of issuing on one
  EXPECT_EQ(estimate_kernel(kernel, h100).limiter, "issue");
  kernel.total.shared_wavefronts = 2ULL * 2 * 1980000000;
  EXPECT_EQ(estimate_kernel(kernel, h100).limiter, "shared memory");
  EXPECT_NEAR(estimate_kernel(kernel, h100).ns, 2e9, 1e7);
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
