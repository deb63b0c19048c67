#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

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

TEST(Matmul, CountsFlops) {
  Graph graph = graph_with({{DType::kBF16, {sym("T"), 8}}, {DType::kBF16, {8, 4}}});
  const NodeId node = graph.add_node("n", "mm", graph.input_values());
  EXPECT_EQ(node_flops(graph, graph.node(node), {{"T", 10}}), 2 * 10 * 8 * 4);
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

// PyTorch's recipes: 1 x 128 of A and 128 x 128 or 128 x 1 of B; the last block may be short.
TEST(Matmul, ScalesInBlocks) {
  const auto f32 = [](Shape shape) { return TensorType{kF32, std::move(shape)}; };
  const Dim t = sym("T");
  const TensorType a{DType::kF8E4M3, {t, 384}}, b{DType::kF8E4M3, {384, 200}};
  for (const TensorType& of_b : {f32({3, 200}), f32({3, 2}), f32({1, 200}), f32({})}) {
    EXPECT_EQ(inferred({a, b, f32({t, 3}), of_b}, "scaled_mm"), "bf16[T, 200]") << of_b.str();
  }
  EXPECT_TRUE(is_error(refused({a, b, f32({t, 2}), f32({})}, "scaled_mm"), "n/inputs/2",
                       "the scale of scaled_mm is f32[T, 2]; expected f32[], f32[T, 1] or "
                       "f32[T, 3]"));
  EXPECT_TRUE(is_error(refused({a, b, f32({}), f32({2, 3})}, "scaled_mm"), "n/inputs/3",
                       "is f32[2, 3]; expected f32[], f32[1, 200], f32[3, 200] or f32[3, 2]"));
  EXPECT_TRUE(
      is_error(refused({{DType::kF8E4M3, {2, t}}, {DType::kF8E4M3, {t, 2}}, f32({}), f32({t, 1})},
                       "scaled_mm"),
               "n/inputs/3", "expected f32[] or f32[1, 2]"));
  // Rows 1s and 2s, so that each block's sum can be told; 257 columns of ones.
  Values left(2 * 130, 1);
  std::fill(left.begin() + 130, left.end(), 2);
  const TensorType x{DType::kF8E4M3, {2, 130}}, w{DType::kF8E4M3, {130, 257}};
  const Attrs f32_out{{"out_dtype", kF32}};
  const Values ones(130 * 257, 1);
  const Values got = computed_one({x, w, f32({2, 2}), f32({2, 3})}, "scaled_mm", f32_out,
                                  {left, ones, {1, 10, 100, 1000}, {1, 2, 3, 4, 5, 6}});
  const auto expected = [](double row, double of_128, double of_2, double b_128, double b_2) {
    return row * (128 * of_128 * b_128 + 2 * of_2 * b_2);
  };
  EXPECT_EQ(got[0], expected(1, 1, 10, 1, 4));
  EXPECT_EQ(got[127], expected(1, 1, 10, 1, 4));
  EXPECT_EQ(got[128], expected(1, 1, 10, 2, 5));
  EXPECT_EQ(got[256], expected(1, 1, 10, 3, 6));
  EXPECT_EQ(got[257 + 256], expected(2, 100, 1000, 3, 6));
  // One block of K, and blocks of columns.
  EXPECT_EQ(
      computed_one({{DType::kF8E4M3, {1, 1}}, {DType::kF8E4M3, {1, 129}}, f32({}), f32({1, 2})},
                   "scaled_mm", f32_out, {{1}, Values(129, 1), {1}, {3, 7}})
          .back(),
      7);
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

TEST(GroupedMm, InfersTheShape) {
  const Dim t = sym("T");
  const TensorType offsets{DType::kI32, {3}};
  EXPECT_EQ(inferred({{DType::kF16, {t, 8}}, {DType::kF16, {3, 8, 4}}, offsets}, "_grouped_mm"),
            "f16[T, 4]");
  EXPECT_EQ(inferred({{DType::kBF16, {t, 8}}, {DType::kBF16, {3, 8, 4}}, offsets}, "_grouped_mm",
                     {{"out_dtype", kF32}}),
            "f32[T, 4]");
}

TEST(GroupedMm, RefusesBadOperands) {
  const TensorType a{kF32, {5, 8}}, b{kF32, {3, 8, 4}}, offsets{DType::kI32, {3}};
  const auto error = [&](const std::vector<TensorType>& types, Attrs attrs = {}) {
    return refused(types, "_grouped_mm", std::move(attrs));
  };
  EXPECT_TRUE(is_error(error({{kF32, {2, 5, 8}}, b, offsets}), "n/inputs/0",
                       "the operand of _grouped_mm is f32[2, 5, 8]; expected two dims"));
  EXPECT_TRUE(is_error(error({a, {kF32, {8, 4}}, offsets}), "n/inputs/1", "expected three dims"));
  EXPECT_TRUE(is_error(error({a, {kF32, {3, 4, 8}}, offsets}), "n/inputs/1",
                       "8 and 4 differ; expected [T, K], [E, K, N]"));
  EXPECT_TRUE(is_error(error({a, {DType::kF16, {3, 8, 4}}, offsets}), "n/inputs/1", "one dtype"));
  EXPECT_TRUE(is_error(error({a, b, {DType::kI64, {3}}}), "n/inputs/2",
                       "the offsets of _grouped_mm are i64[3]; expected i32[3], the end of each"));
  EXPECT_TRUE(is_error(error({a, b, {DType::kI32, {4}}}), "n/inputs/2", "expected i32[3]"));
  EXPECT_TRUE(is_error(error({{kF32, {std::int64_t{1} << 31, 8}}, b, offsets}), "n/inputs/0",
                       "up to 2147483648 rows; expected at most 1073741824"));
  EXPECT_TRUE(is_error(error({a, b, offsets}, {{"out_dtype", DType::kF16}}), "n/attrs/out_dtype",
                       "expected f32 or f32"));
}

// Rows past the last group are zeros.
TEST(GroupedMm, Evaluates) {
  EXPECT_EQ(computed_one({{kF32, {4, 2}}, {kF32, {3, 2, 1}}, {DType::kI32, {3}}}, "_grouped_mm", {},
                         {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 9, 9, 1, 10}, {1, 1, 3}}),
            (Values{3, 43, 65, 0}));
}

TEST(GroupedMm, ChecksItsOffsetsOnEachRank) {
  const auto error = [](const Values& offsets) {
    const Values x{1, 2, 3, 4}, w{1, 1};
    return error_of([&] {
      (void)computed({{kF32, {4, 1}}, {kF32, {2, 1, 1}}, {DType::kI32, {2}}}, "_grouped_mm", {},
                     {{x, w, {2, 4}}, {x, w, offsets}});
    });
  };
  EXPECT_EQ(error({2, 4}), "no error");
  EXPECT_EQ(error({2, 5}), "n | rank 1: index 5 is out of range; expected an integer from 0 to 4");
  EXPECT_EQ(error({3, 1}), "n | rank 1: index -2 is out of range; expected an integer from 0 to 4");
}

TEST(GroupedMm, CountsTheFlopsOfEachRowOnce) {
  Graph graph = graph_with({{kF32, {sym("T"), 8}}, {kF32, {3, 8, 4}}, {DType::kI32, {3}}});
  const NodeId node = graph.add_node("n", "_grouped_mm", graph.input_values());
  EXPECT_EQ(node_flops(graph, graph.node(node), {{"T", 10}}), 2 * 10 * 8 * 4);
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(is_error(refused({{DType::kF32, {2, 2, 3}}, {DType::kF32, {3, 3, 4}}}, "bmm"),
                       "n/inputs/1", "2 and 3 do not broadcast"));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {3}}, {DType::kF32, {3, 4}}}, "matmul"), "n/inputs/0",
                       "expected at least two dims"));
}

}  // namespace
}  // namespace braid
