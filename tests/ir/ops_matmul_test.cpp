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

TEST(Matmul, BroadcastsBatches) {
  const Dim t = sym("T");
  EXPECT_EQ(inferred({{DType::kF32, {2, 1, t, 4}}, {DType::kF32, {3, 4, 5}}}, "matmul"),
            "f32[2, 3, T, 5]");
  EXPECT_EQ(computed_one({{DType::kF32, {2, 1, 2}}, {DType::kF32, {2, 1}}}, "matmul", {},
                         {{1, 2, 3, 4}, {10, 1}}),
            (Values{12, 34}));
  EXPECT_EQ(computed_one({{DType::kF32, {2, 1, 1}}, {DType::kF32, {2, 1, 2}}}, "bmm", {},
                         {{2, 3}, {1, 2, 3, 4}}),
            (Values{2, 4, 9, 12}));
}

TEST(Matmul, AddsABiasBeforeItRounds) {
  const Attrs scaled{{"alpha", 0.5}, {"beta", 2.0}};
  EXPECT_EQ(computed_one({{DType::kF32, {2}}, {DType::kF32, {1, 1}}, {DType::kF32, {1, 2}}},
                         "addmm", scaled, {{1, 10}, {4}, {1, 2}}),
            (Values{4, 24}));
  EXPECT_TRUE(
      is_error(refused({{DType::kF32, {3}}, {DType::kF32, {1, 1}}, {DType::kF32, {1, 2}}}, "addmm"),
               "n/inputs/0", "broadcasts to f32[1, 2]"));
}

TEST(Matmul, ScaledWantsFloat8AndScalesThatFit) {
  const TensorType a{DType::kF8E4M3, {2, 4}}, b{DType::kF8E5M2, {4, 3}}, one{DType::kF32, {}};
  EXPECT_EQ(inferred({a, b, {DType::kF32, {2, 1}}, {DType::kF32, {1, 3}}}, "scaled_mm"),
            "bf16[2, 3]");
  EXPECT_TRUE(is_error(refused({{DType::kBF16, {2, 4}}, b, one, one}, "scaled_mm"), "n/inputs/0",
                       "expected f8e4m3 or f8e5m2"));
  EXPECT_TRUE(is_error(refused({{DType::kF8E5M2, {2, 4}}, b, one, one}, "scaled_mm"), "n/inputs/1",
                       "at least one f8e4m3"));
  EXPECT_TRUE(is_error(refused({a, b, {DType::kF32, {3, 1}}, one}, "scaled_mm"), "n/inputs/2",
                       "expected f32[] or f32[2, 1]"));
  EXPECT_TRUE(is_error(refused({a, b, one, one}, "scaled_mm", {{"out_dtype", DType::kI32}}),
                       "n/attrs/out_dtype", "expected f32, f16 or bf16"));
}

// Like torch._scaled_mm: the bias is added after the scales, before the result is rounded.
TEST(Matmul, ScaledAddsABiasOfItsColumns) {
  const TensorType a{DType::kF8E4M3, {2, 1}}, b{DType::kF8E4M3, {1, 2}}, one{DType::kF32, {}};
  const TensorType bias{DType::kBF16, {2}};
  EXPECT_EQ(computed_one({a, b, one, one, bias}, "scaled_mm", {},
                         {{1, 2}, {1, 2}, {257}, {1}, {1, 0.75}}),
            (Values{258, 516, 516, 1032}));  // not of 256, 512, 512, 1024
  EXPECT_EQ(
      inferred({a, b, one, one, {DType::kF32, {2}}}, "scaled_mm", {{"out_dtype", DType::kF32}}),
      "f32[2, 2]");
  EXPECT_TRUE(is_error(refused({a, b, one, one, {DType::kF32, {2}}}, "scaled_mm"), "n/inputs/4",
                       "the bias of scaled_mm is f32[2]; expected bf16[2]"));
  EXPECT_TRUE(is_error(refused({a, b, one, one, {DType::kBF16, {1, 2}}}, "scaled_mm"), "n/inputs/4",
                       "expected bf16[2]"));
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(is_error(refused({{DType::kF32, {2, 2, 3}}, {DType::kF32, {3, 3, 4}}}, "bmm"),
                       "n/inputs/1", "2 and 3 do not broadcast"));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {3}}, {DType::kF32, {3, 4}}}, "matmul"), "n/inputs/0",
                       "expected at least two dims"));
}

}  // namespace
}  // namespace braid
