#include "codegen/graph_target.h"

#include "ir/op_registry.h"
#include "ir/support.h"
#include "lowering/passes.h"

namespace braid {
namespace {

constexpr DType kF8 = DType::kF8E4M3;

/// scaled_mm, or one of the fused forms of it.
Graph scaled_graph(const char* op) {
  Graph graph = graph_with({{kF8, {64, 32}}, {kF8, {32, 16}}, {DType::kF32, {}}}, 2, true);
  const auto in = graph.input_values();
  Attrs attrs;
  const std::string_view name = op;
  if (name.starts_with("fused")) attrs.emplace("group", std::string("tp"));
  if (name.starts_with("fused_all_gather")) attrs.emplace("gather_dim", std::int64_t{0});
  if (name.ends_with("scatter")) {
    attrs.emplace("scatter_dim", std::int64_t{0});
    attrs.emplace("reduce_op", std::string("sum"));
  }
  for (ValueId out :
       graph.node(graph.add_node("f", op, {in[0], in[1], in[2], in[2]}, attrs)).outputs) {
    graph.add_output(out);
  }
  return graph;
}

TEST(GraphTarget, IsTheLeastThatEveryOpCanRunOn) {
  Graph plain = graph_with({{DType::kBF16, {4, 8}}, {DType::kBF16, {8, 4}}});
  plain.add_output(plain.node(plain.add_node("m", "mm", plain.input_values())).outputs[0]);
  EXPECT_EQ(least_target(plain).str(), "sm_80");
  EXPECT_EQ(choose_target(plain, "sm_100a").str(), "sm_100a");
  for (const char* op :
       {"scaled_mm", "fused_all_gather_scaled_matmul", "fused_scaled_matmul_reduce_scatter"}) {
    const Graph graph = scaled_graph(op);
    EXPECT_EQ(least_target(graph).str(), "sm_89") << op;
    EXPECT_EQ(choose_target(graph, "").str(), "sm_89");
    EXPECT_EQ(choose_target(graph, "sm_90a").str(), "sm_90a");
    EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(choose_target(graph, "sm_80")); }),
                         "/nodes/0",
                         op + std::string(" \"f\" needs sm_89 or later; the target is sm_80")));
    PassContext context;
    context.target = Target::parse("sm_86");
    EXPECT_TRUE(is_error(error_of([&] { static_cast<void>(lower(graph, context)); }), "/nodes/0",
                         "the target is sm_86"));
  }
}

// Also of a graph that is lowered already.
TEST(GraphTarget, LooksIntoKernels) {
  PassContext context;
  context.target = Target::parse("sm_90a");
  const Graph graph =
      run_passes(scaled_graph("scaled_mm"), std::vector<std::string>{"fuse"}, context);
  ASSERT_EQ(graph.nodes()[0].op_name(), "kernel");
  EXPECT_EQ(least_target(graph).str(), "sm_89");
}

}  // namespace
}  // namespace braid
