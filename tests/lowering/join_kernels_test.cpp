#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "braid/error.h"
#include "ir/op_registry.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/llama_layer.h"
#include "lowering/lowering_testing.h"
#include "lowering/plan/cost.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A Llama-3-8B layer, 512 tokens behind 1536.
constexpr LayerSizes kLarge{.tokens = 512,
                            .hidden = 4096,
                            .inner = 14336,
                            .heads = 32,
                            .key_heads = 8,
                            .width = 128,
                            .page = 64,
                            .pages = 32};

PassContext on(const char* target) {
  PassContext context;
  context.target = Target::parse(target);
  context.config.enable = {"join_kernels"};
  return context;
}

/// A norm and the matmul of its rows.
Graph norm_and_matmul(const std::string& more = "", const std::string& outputs = R"("y")") {
  return graph_of(input("x", R"("T", 64)") + "," + input("g", "64") + "," + input("w", "64, 96"),
                  node("n", "rms_norm", R"("x", "g")", R"("eps": 1e-5)") + "," +
                      node("y", "mm", R"("n", "w")") + more,
                  outputs, 1);
}

std::vector<const Node*> kernels_of(const Graph& graph) {
  std::vector<const Node*> kernels;
  for (const Node& node : graph.nodes()) {
    if (node.op->op_class == OpClass::kKernel) kernels.push_back(&node);
  }
  return kernels;
}

TEST(JoinKernels, ALlamaLayerOnA100IsAtMostSixKernels) {
  const Graph graph = llama_layer(kLarge);
  PassContext context = on("A100");
  const Program program = lower(graph, context);
  EXPECT_EQ(program.steps.size(), 4);
  EXPECT_THAT(remarks_of(context, "qkv"),
              Contains(HasSubstr("applied: one kernel with 'norm1', whose blocks meet: about")));

  // All of it at the peak of the matrix units.
  const DeviceModel& device = device_model(context.target);
  double flops = 0;
  for (const Node& node : graph.nodes()) {
    const OpClass c = node.op->op_class;
    if (c == OpClass::kMatmul || c == OpClass::kAttention) flops += node_flops(graph, node, {});
  }
  const double bound = flops / (device.f16_tflops * 1e3);
  double estimate = 0;
  for (const Step& step : program.steps) {
    estimate += kernel_ns(program.kernels[static_cast<std::size_t>(step.kernel)].spec, {}, device);
  }
  EXPECT_NEAR(bound / 1e3, 770, 10);
  EXPECT_LT(estimate, 1.55 * bound);
}

TEST(JoinKernels, WhereWarpsWithRolesAreQuickerTheyStayApart) {
  PassContext context = on("H100");
  EXPECT_EQ(lower(llama_layer(kLarge), context).steps.size(), 8);
  EXPECT_THAT(remarks_of(context, "qkv"),
              Contains(HasSubstr("missed: not joined with 'norm1': one kernel would take about")));
}

TEST(JoinKernels, TheBodyIsAGraphOfKernelsWithTheSameValues) {
  PassContext context = on("A100");
  const Graph apart = fuse(norm_and_matmul(), context);
  const Graph graph = join_kernels(apart, context);
  verify(graph);
  expect_same_values(apart, graph);
  const auto kernels = kernels_of(graph);
  ASSERT_EQ(kernels.size(), 1);
  const KernelSpec spec = spec_of(*kernels[0]);
  EXPECT_TRUE(is_joined(*spec.body));
  EXPECT_EQ(template_name(*spec.body), "joined");
  // The norm's result is in memory.
  EXPECT_EQ(spec.body->outputs().size(), 2);
  const Requirements needs = requirements(spec, context.target);
  EXPECT_TRUE(needs.grid.is_constant());
  EXPECT_EQ(needs.flag_words, 1);
  EXPECT_EQ(needs.threads, 32 * spec.config.at("num_warps"));
  EXPECT_EQ(to_json(parse_graph(to_json(graph))), to_json(graph));
}

TEST(JoinKernels, ASavedProgramHasThem) {
  PassContext context = on("A100");
  const Program program = lower(norm_and_matmul(), context);
  ASSERT_EQ(program.kernels.size(), 1);
  const std::string text = to_json(program);
  EXPECT_EQ(to_json(parse_program(text)), text);
}

TEST(JoinKernels, LeavesOthersAlone) {
  PassContext context = on("A100");
  context.max_kernel_nodes = 1;
  EXPECT_EQ(kernels_of(join_kernels(fuse(norm_and_matmul(), context), context)).size(), 2);

  // Of two kernels neither of which reads the other.
  PassContext other = on("A100");
  const Graph apart = fuse(graph_of(input("x", R"("T", 64)") + "," + input("v", R"("T", 32)"),
                                    node("a", "sum", R"("x")", R"("dim": [1])") + "," +
                                        node("b", "sum", R"("v")", R"("dim": [0])"),
                                    R"("a", "b")", 1),
                           other);
  EXPECT_EQ(kernels_of(join_kernels(apart, other)).size(), 2);
}

TEST(JoinKernels, GridsShareADevice) {
  PassContext context = on("A100");
  const KernelSpec spec = lower(llama_layer(kLarge), context).kernels[0].spec;
  ASSERT_TRUE(is_joined(*spec.body));
  const std::int64_t alone = requirements(spec, context.target).grid.evaluate({});
  EXPECT_EQ(alone % 108, 0);
  EXPECT_EQ(requirements(spec, context.target, 4).grid.evaluate({}), alone / 4);
}

TEST(JoinKernels, WhatCannotBeJoinedIsRefused) {
  PassContext context = on("A100");
  const Graph graph = join_kernels(fuse(norm_and_matmul(), context), context);
  const KernelSpec spec = spec_of(*kernels_of(graph)[0]);
  const auto changed = [&](const auto& change) {
    auto body = std::make_shared<Graph>();
    for (const auto& [name, symbol] : spec.body->symbols()) body->add_symbol(name, symbol);
    std::vector<ValueId> values;
    for (const GraphInput& input : spec.body->inputs()) values.push_back(body->add_input(input));
    for (const Node& node : spec.body->nodes()) {
      std::vector<ValueId> inputs;
      for (const ValueId input : node.inputs) inputs.push_back(values[input]);
      Attrs attrs = node.attrs;
      Config config = *node.attr<Config>("config");
      change(node, config);
      attrs["config"] = config;
      const NodeId id = body->add_node(node.name, "kernel", inputs, attrs);
      for (const ValueId output : body->node(id).outputs) values.push_back(output);
    }
    return body;
  };
  const auto warps = changed([](const Node& node, Config& config) {
    if (node.name == "v1") config["num_warps"] *= 2;
  });
  for (const ValueId output : spec.body->outputs()) warps->add_output(output);
  EXPECT_EQ(cannot_fuse(*warps), "joined kernels have the same number of warps");
  const auto unseen = changed([](const Node&, Config&) {});
  unseen->add_output(spec.body->outputs().back());
  EXPECT_EQ(cannot_fuse(*unseen), "what a joined kernel computes is an output of all");
  const auto stages = changed([](const Node& node, Config& config) {
    if (node.name == "v1") config["num_stages"] = 99;
  });
  for (const ValueId output : spec.body->outputs()) stages->add_output(output);
  EXPECT_THAT(
      [&] {
        check_spec("here", {stages, spec.config});
      },
      ThrowsMessage<Error>(HasSubstr("here/body/v1/attrs/config/num_stages")));
}

TEST(JoinKernels, NothingIsJoinedBesideWhatRunsInTheBackground) {
  PassContext context = on("A100");
  context.config.by_copies = true;
  const Graph graph =
      graph_of(input("x", R"("T", 64)") + "," + input("g", "64") + "," + input("w", "64, 96"),
               node("c", "all_gather_into_tensor", R"("x")", R"("group": "tp")") + "," +
                   node("s", "wait_tensor", R"("c")") + "," +
                   node("n", "rms_norm", R"("s", "g")", R"("eps": 1e-5)") + "," +
                   node("y", "mm", R"("n", "w")"),
               R"("y")", 2);
  (void)lower(graph, context);
  std::vector<std::string> missed;
  for (const Remark& remark : context.remarks) {
    if (remark.pass == "join_kernels") missed.push_back(remark.reason.text());
  }
  EXPECT_THAT(missed, Contains(HasSubstr("runs beside the kernels, and may need room")));
}

}  // namespace
}  // namespace braid::testing
