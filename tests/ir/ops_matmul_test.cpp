#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32;

TEST(Matmul, InfersTheShape) {
  EXPECT_EQ(inferred({{kF32, {sym("T"), 8}}, {kF32, {8, 4}}}, "mm"), "f32[T, 4]");
  EXPECT_EQ(inferred({{kF32, {2, sym("T")}}, {kF32, {sym("T"), 4}}}, "mm"), "f32[2, 4]");
}

TEST(Matmul, RefusesBadOperands) {
  EXPECT_TRUE(is_error(refused({{kF32, {2, 8}}, {kF32, {4, 8}}}, "mm"), "n/inputs/1",
                       "f32[2, 8], f32[4, 8]: 8 and 4 differ; expected [M, K], [K, N]"));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 8}}, {kF32, {8}}}, "mm"), "n/inputs/1", "two dims"));
  EXPECT_TRUE(
      is_error(refused({{kF32, {2, 8}}, {DType::kF16, {8, 2}}}, "mm"), "n/inputs/1", "one dtype"));
  EXPECT_TRUE(is_error(refused({{DType::kI32, {2, 8}}, {DType::kI32, {8, 2}}}, "mm"), "n/inputs/0",
                       "expected f32"));
}

TEST(Matmul, Evaluates) {
  EXPECT_EQ(computed_one({{kF32, {2, 3}}, {kF32, {3, 2}}}, "mm", {},
                         {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}}),
            (Values{22, 28, 49, 64}));
}

TEST(Matmul, AccumulatesWiderThanTheDtype) {
  EXPECT_EQ(computed_one({{DType::kBF16, {1, 3}}, {DType::kBF16, {3, 1}}}, "mm", {},
                         {{256, 1, 1}, {1, 1, 1}}),
            Values{258});
}

TEST(Matmul, CountsFlopsAndBytes) {
  Graph graph = graph_with({{DType::kBF16, {sym("T"), 8}}, {DType::kBF16, {8, 4}}});
  const NodeId node = graph.add_node("n", "mm", graph.input_values());
  EXPECT_EQ(node_flops(graph, graph.node(node), {{"T", 10}}), 2 * 10 * 8 * 4);
  EXPECT_EQ(node_bytes(graph, graph.node(node), {{"T", 10}}), 2 * (80 + 32 + 40));
}

}  // namespace
}  // namespace braid
