#include "lowering/plan/cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "lowering/lowering_testing.h"
#include "lowering/micro_pipeline/pipeline_cost.h"

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
  using A = Algorithm;
  auto ns = [&](Algorithm algorithm, std::int64_t bytes) {
    return collective_ns(algorithm, 8, bytes, h100);
  };
  EXPECT_LT(ns(A::kOneShot, 64 << 10), ns(A::kTwoShot, 64 << 10));
  EXPECT_LT(ns(A::kTwoShot, 8 << 20), ns(A::kOneShot, 8 << 20));
  EXPECT_LT(ns(A::kMultimem, 8 << 20), ns(A::kTwoShot, 8 << 20));
  EXPECT_LT(ns(A::kTwoShot, 1 << 20), ns(A::kByCommunicator, 1 << 20));
  EXPECT_LT(ns(A::kByCommunicator, 256 << 20), ns(A::kTwoShot, 256 << 20));
  EXPECT_LT(ns(A::kByCommunicator, 4 << 10),
            20e3);  // by LL: Simple alone begins with 56 us of hops
  EXPECT_GT(ns(A::kByCommunicator, 4 << 10), ns(A::kPackets, 4 << 10));
  EXPECT_EQ(collective_ns(A::kOneShot, 1, 1 << 20, h100), 0);
  EXPECT_EQ(ns(A::kNone, 1 << 20), ns(A::kByCommunicator, 1 << 20));
}

TEST(Cost, BytesInFlightDecideTheRateOfMemory) {
  const DeviceModel& h100 = *find_device_model("H100");
  constexpr double kBytes = 1 << 26U;
  const double full = kBytes / (kMemoryShare * h100.hbm_gbs);
  const double few = memory_ns(kBytes, 32, kStreamInFlight, h100);
  EXPECT_NEAR(full / few, 0.06, 0.01);  // a sixteenth of the rate
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, 64, kStreamInFlight, h100), few / 2);
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, 32, 2 * kStreamInFlight, h100), few / 2);
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, 5 * h100.sms, kStreamInFlight, h100), full);
  EXPECT_DOUBLE_EQ(memory_ns(kBytes, h100.sms, kTilesInFlight, h100), full);
}

TEST(Cost, OfACacheOnlyPagesThatATableHasRoomForAreRead) {
  const DeviceModel& h100 = *find_device_model("H100");
  const auto ns = [&](std::int64_t pages, std::int64_t room) {
    Graph graph;
    const auto in = [&](const char* name, DType dtype, Shape shape) {
      return graph.add_input({name, {dtype, std::move(shape)}});
    };
    const ValueId q = in("q", DType::kBF16, {2, 8, 128});
    const ValueId k = in("k", DType::kBF16, {pages, 64, 8, 128});
    const ValueId v = in("v", DType::kBF16, {pages, 64, 8, 128});
    const ValueId table = in("table", DType::kI32, {3, room});
    const NodeId y = graph.add_node(
        "y", "paged_attention",
        {q, k, v, table, in("lengths", DType::kI32, {3}), in("starts", DType::kI32, {4})});
    return node_ns(graph, graph.node(y), {}, h100);
  };
  EXPECT_DOUBLE_EQ(ns(1000, 100), ns(10000, 100));
  EXPECT_NEAR((ns(10000, 200) - h100.launch_ns) / (ns(10000, 100) - h100.launch_ns), 2, 0.01);
  EXPECT_LT(ns(50, 100), ns(1000, 100));  // all of a small one
}

TEST(Cost, NodesFollowTheRoofline) {
  Graph graph;
  const TensorType type{DType::kBF16, {4096, 4096}};
  const ValueId x = graph.add_input({"x", type, InputKind::kActivation, true});
  const NodeId mm = graph.add_node("mm", "mm", {x, x});
  const NodeId neg = graph.add_node("neg", "neg", {x});
  const NodeId view = graph.add_node("view", "view", {x}, {{"shape", Shape{4096 * 4096}}});
  const DeviceModel& h100 = *find_device_model("H100");
  EXPECT_NEAR(node_ns(graph, graph.node(neg), {}, h100), 2500 + 2.0 * 4096 * 4096 * 2 / 3016.8, 1);
  EXPECT_EQ(node_ns(graph, graph.node(view), {}, h100), 0);
  graph.set_hint(mm, "runtime_ns", 42);
  EXPECT_EQ(node_ns(graph, graph.node(mm), {}, h100), 42);
}

// The rate is that of the instruction that kernels use, not another one's in the data sheet.
TEST(Cost, MatrixUnitsTakeEightBitsAtTwiceTheRateWhereTheyHaveInstructionsForIt) {
  const auto mm_ns = [&](const char* device, DType dtype, const char* op) {
    const DeviceModel& model = *find_device_model(device);
    Graph graph;
    const TensorType type{dtype, {8192, 8192}};
    const ValueId a = graph.add_input({"a", type, InputKind::kActivation, true});
    std::vector<ValueId> operands{a, a};
    for (int i = 0; dtype_size(dtype) == 1 && i < 2; ++i) {
      operands.push_back(graph.add_input({"s" + std::to_string(i), {DType::kF32, {}}}));
    }
    const NodeId mm = graph.add_node("mm", op, operands);
    return node_ns(graph, graph.node(mm), {}, model) - model.launch_ns;
  };
  constexpr double kFlops = 2.0 * 8192 * 8192 * 8192;
  for (const auto& [device, tflops] : {std::pair{"A100", 312.0}, {"H100", 0.78 * 989}}) {
    const double ns = mm_ns(device, DType::kBF16, "mm");
    EXPECT_GT(ns, kFlops / (tflops * 1e3)) << device;
    EXPECT_LT(ns, 1.7 * kFlops / (tflops * 1e3)) << device;
    EXPECT_GT(mm_ns(device, DType::kF32, "mm"), 5 * ns) << device;
  }
  EXPECT_LT(mm_ns("L40S", DType::kF8E4M3, "scaled_mm"), 0.7 * mm_ns("L40S", DType::kBF16, "mm"));
  EXPECT_GT(mm_ns("H100", DType::kF8E4M3, "scaled_mm"), 0.9 * mm_ns("H100", DType::kBF16, "mm"));
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
  EXPECT_NEAR(node_ns(graph, graph.node(gemm), {}, h100), 2500 + 1000 / 0.78, 1);
  EXPECT_NEAR(node_ns(graph, graph.node(compute), {}, h100), 2500 + 1000, 1);
  EXPECT_NEAR(node_ns(graph, graph.node(idle), {}, h100), 2500 + 4096.0 / 3016.8, 1);
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

// A pass's estimate before a kernel exists equals the kernel's own.
TEST(Cost, PassesAndKernelsHaveOnePrice) {
  const DeviceModel& h100 = *find_device_model("H100");
  const Target target = Target::parse("H100");
  struct Case {
    const char* name;
    const char* op;  // "": of a matmul alone
    DType dtype;
    std::int64_t m, k, n;
    bool transposed = false;  ///< the right operand lies as [n, k]
  };
  for (const Case& c :
       {Case{"decode", "", DType::kBF16, 1, 4096, 4096},
        Case{"square", "", DType::kBF16, 4096, 4096, 4096},
        Case{"wide", "", DType::kF16, 64, 1024, 28672}, Case{"f32", "", DType::kF32, 512, 512, 512},
        Case{"f8", "", DType::kF8E4M3, 1024, 4096, 4096},
        Case{"gather", "all_gather_into_tensor", DType::kBF16, 4096, 4096, 4096},
        Case{"few rows", "all_gather_into_tensor", DType::kBF16, 128, 4096, 1024},
        Case{"f8 gather", "all_gather_into_tensor", DType::kF8E4M3, 2048, 4096, 512},
        Case{"scatter", "reduce_scatter_tensor", DType::kBF16, 4096, 1024, 4096},
        Case{"f32 scatter", "reduce_scatter_tensor", DType::kF32, 256, 512, 512},
        Case{"reduce", "all_reduce", DType::kBF16, 16, 4096, 4096},
        Case{"f8 by rows", "", DType::kF8E4M3, 1024, 4096, 4096, true},
        Case{"f8 scatter by rows", "reduce_scatter_tensor", DType::kF8E4M3, 2048, 1024, 4096, true},
        Case{"gather by rows", "all_gather_into_tensor", DType::kBF16, 4096, 4096, 4096, true}}) {
    Graph graph("test");
    graph.add_group("tp", {8, true, {}});
    const std::string op = c.op;
    const bool gathers = op.starts_with("all_gather");
    const bool f8 = dtype_size(c.dtype) == 1;
    const ValueId x = graph.add_input(
        {"x", {c.dtype, {gathers ? c.m / 8 : c.m, c.k}}, InputKind::kActivation, true});
    ValueId w = graph.add_input({"w", {c.dtype, {c.k, c.n}}});
    if (c.transposed) {
      const ValueId stored = graph.add_input({"stored", {c.dtype, {c.n, c.k}}});
      const NodeId id = graph.add_node("by_rows", "transpose", {stored},
                                       {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
      w = graph.node(id).outputs[0];
    }
    const auto collective = [&](ValueId of) {
      Attrs attrs{{"group", std::string("tp")}};
      if (!gathers) attrs.emplace("reduce_op", std::string("sum"));
      const NodeId id = graph.add_node("c", op, {of}, std::move(attrs));
      return graph.node(graph.add_node("y", "wait_tensor", graph.node(id).outputs)).outputs[0];
    };
    std::vector<ValueId> operands{gathers ? collective(x) : x, w};
    if (f8) {
      operands.push_back(graph.add_input({"s", {DType::kF32, {}}}));
      operands.push_back(graph.add_input({"t", {DType::kF32, {}}}));
    }
    const NodeId mm = graph.add_node("mm", f8 ? "scaled_mm" : "mm", operands);
    ValueId result = graph.node(mm).outputs[0];
    if (!gathers && !op.empty()) result = collective(result);
    graph.add_output(result);

    double told = node_ns(graph, graph.node(mm), {}, h100);
    PassContext context{.target = target};
    Graph lowered = graph;
    if (!op.empty()) {
      context.config.always_pipeline = context.config.in_kernel = true;
      lowered = micro_pipeline(graph, context);
      ASSERT_EQ(lowered.nodes().size(), c.transposed ? 2U : 1U) << c.name;
      told = estimate_fused(lowered, lowered.nodes().back(), {}, h100).in_kernel_ns.value();
      lowered = lower_collectives(lowered, context);
    }
    lowered = fuse(lowered, context);
    const Node& kernel = lowered.nodes().back();
    ASSERT_EQ(kernel.op_name(), "kernel") << c.name;
    EXPECT_DOUBLE_EQ(node_ns(lowered, kernel, {}, h100), told) << c.name;
    const auto& body = *kernel.attr<std::shared_ptr<const Graph>>("body");
    EXPECT_DOUBLE_EQ(kernel_ns({body, candidates(*body, target)[0]}, {}, h100), told) << c.name;
  }
}

// The same for a node alone in a kernel.
TEST(Cost, ANodeAndItsKernelHaveOnePrice) {
  const DeviceModel& h100 = *find_device_model("H100");
  const std::string attrs = R"("group": "tp", "reduce_op": "sum")";
  for (const std::string& nodes :
       {node("y", "exp", R"("x")"), node("y", "softmax", R"("x")", R"("dim": -1)"),
        node("y", "sum", R"("x")", R"("dim": [0])"), all_reduce("c", "x"),
        node("c", "all_gather_into_tensor", R"("x")", R"("group": "tp")"),
        node("c", "reduce_scatter_tensor", R"("x")", attrs)}) {
    const bool alone = nodes.find("group") == std::string::npos;
    const Graph graph =
        graph_of(input("x", R"(2048, 4096)"),
                 alone ? nodes : nodes + "," + node("y", "wait_tensor", R"("c")"), R"("y")");
    for (const char* algorithm : {"one_shot", "two_shot", "ll"}) {
      PassContext context{.target = Target::parse("H100")};
      context.config.all_reduce = algorithm;
      const Graph lowered = lower_collectives(graph, context);
      const Graph fused = fuse(lowered, context);
      EXPECT_DOUBLE_EQ(node_ns(fused, fused.nodes().back(), {}, h100),
                       node_ns(lowered, lowered.nodes().back(), {}, h100))
          << nodes << " " << algorithm;
    }
  }
}

// Whatever template computes it, whatever its size.
TEST(Cost, ANodeOfEveryTemplateHasThePriceOfItsKernel) {
  struct Case {
    std::string inputs, node;
  };
  const auto typed = [](const std::string& name, const std::string& shape, const char* dtype) {
    return fmt::format(R"({{"name": "{}", "dtype": "{}", "shape": [{}]}})", name, dtype, shape);
  };
  const auto integers = [&](const char* name, const std::string& shape) {
    return typed(name, shape, "i32");
  };
  const auto halves = [&](const char* name, const std::string& shape) {
    return typed(name, shape, "bf16");
  };
  for (const char* device : {"A100", "H100", "B200", "RTX 4090"}) {
    const DeviceModel& model = *find_device_model(device);
    for (const std::int64_t size : {16, 512, 4096}) {
      const std::string n = std::to_string(size);
      const std::string x = halves("x", n + ", 1024");
      const std::string ends = fmt::format(R"("start": 0, "end": {})", size / 4);
      for (const Case& c : {
               Case{x, node("y", "mul", R"("x", "x")")},
               {x, node("y", "slice", R"("x")", R"("dim": 0, )" + ends)},
               {x, node("y", "transpose", R"("x")", R"("dim0": 0, "dim1": 1)")},
               {x, node("y", "cat", R"("x", "x")")},
               {x, node("y", "amax", R"("x")", R"("dim": [1])")},
               {x, node("y", "cumsum", R"("x")", R"("dim": 0)")},
               {x, node("y", "topk", R"("x")", R"("k": 4)")},
               {x + "," + halves("w", "1024"),
                node("y", "rms_norm", R"("x", "w")", R"("eps": 1e-5)")},
               {x + "," + integers("i", n), node("y", "embedding", R"("x", "i")")},
               {x + "," + halves("w", "1024, 512"), node("y", "mm", R"("x", "w")")},
               {x + "," + halves("w", "8, 1024, 512") + "," + integers("e", "8"),
                node("y", "_grouped_mm", R"("x", "w", "e")")},
               {halves("q", "2, 8, " + n + ", 64"),
                node("y", "scaled_dot_product_attention", R"("q", "q", "q")")},
               {halves("q", n + ", 8, 64") + "," + halves("k", "256, 16, 2, 64") + "," +
                    integers("t", "4, 64") + "," + integers("l", "4") + "," + integers("s", "5"),
                node("y", "paged_attention", R"("q", "k", "k", "t", "l", "s")")},
           }) {
        const bool pair = c.node.find("topk") != std::string::npos;
        const Graph graph = graph_of(c.inputs, c.node, pair ? R"("y:0", "y:1")" : R"("y")");
        PassContext context{.target = Target::parse(device)};
        const Graph fused = fuse(graph, context);
        ASSERT_EQ(fused.nodes().size(), 1U) << c.node;
        EXPECT_DOUBLE_EQ(node_ns(fused, fused.nodes()[0], {}, model),
                         node_ns(graph, graph.nodes()[0], {}, model))
            << c.node << " " << device << " " << size;
      }
    }
  }
}

// A fused node takes the quickest of its forms, none of which is quicker than its links.
TEST(Cost, ACollectiveWithItsMatmulsTakesItsQuickestForm) {
  const DeviceModel& h100 = *find_device_model("H100");
  for (const std::int64_t columns : {16, 16384}) {
    Graph graph;
    graph.add_group("tp", {4, true, {}});
    const ValueId a = graph.add_input({"a", {DType::kBF16, {4096, 4096}}});
    const ValueId b = graph.add_input({"b", {DType::kBF16, {4096, columns}}});
    const NodeId fused =
        graph.add_node("f", "fused_all_gather_matmul", {a, b},
                       {{"gather_dim", std::int64_t{0}}, {"group", std::string("tp")}});
    const PipelineEstimate forms = estimate_fused(graph, graph.node(fused), {}, h100);
    const double ns = node_ns(graph, graph.node(fused), {}, h100);
    EXPECT_EQ(ns,
              std::min({forms.plain_ns, forms.pipelined_ns.value(), forms.in_kernel_ns.value()}));
    EXPECT_GT(ns, 3 * 4096.0 * 4096 * 2 / (0.8 * 450));
    EXPECT_GT(ns, 2.0 * 4 * 4096 * 4096 * static_cast<double>(columns) / 989e3);
  }
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
