#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

constexpr DType kF8 = DType::kF8E4M3;

Attrs gather(std::int64_t dim, bool return_a = true) {
  return {{"gather_dim", dim}, {"return_A", return_a}, {"group", std::string("tp")}};
}
Attrs scatter(std::int64_t dim, const char* reduce_op = "sum", bool return_mm = false) {
  return {{"reduce_op", std::string(reduce_op)},
          {"scatter_dim", dim},
          {"return_mm", return_mm},
          {"group", std::string("tp")}};
}

TEST(FusedGather, InfersAAndEachProduct) {
  const TensorType a{kF32, {sym("T"), 4, 8}}, b{kF32, {8, 3}}, c{kF32, {8, 5}};
  EXPECT_EQ(inferred({a, b, c}, "fused_all_gather_matmul", gather(0)),
            "f32[2*T, 4, 8] f32[2*T, 4, 3] f32[2*T, 4, 5]");
  EXPECT_EQ(inferred({a, b}, "fused_all_gather_matmul", gather(-2, false)), "f32[T, 8, 3]");
  // Along the last dim, each rank holds a part of K.
  EXPECT_EQ(inferred({a, {kF32, {16, 3}}}, "fused_all_gather_matmul", gather(2, false)),
            "f32[T, 4, 3]");
}

TEST(FusedGather, MultipliesWhatItGathers) {
  const auto results =
      computed({{kF32, {1, 2}}, {kF32, {2, 1}}, {kF32, {2, 2}}}, "fused_all_gather_matmul",
               gather(0), {{{1, 2}, {1, 10}, {1, 0, 0, 1}}, {{3, 4}, {2, 20}, {0, 1, 1, 0}}});
  EXPECT_EQ(results[0], (std::vector<Values>{{1, 2, 3, 4}, {21, 43}, {1, 2, 3, 4}}));
  EXPECT_EQ(results[1], (std::vector<Values>{{1, 2, 3, 4}, {42, 86}, {2, 1, 4, 3}}));
}

// scales for all of A, for the rows of A_shard, for those of A.
TEST(FusedGather, ScalesOfAllThreeKinds) {
  const TensorType a{kF8, {1, 2}}, b{kF8, {2, 1}}, one{kF32, {}};
  Attrs attrs = gather(0, false);
  attrs.emplace("out_dtype", kF32);
  const auto run = [&](const TensorType& scale, const Values& first, const Values& second) {
    const auto results = computed({a, b, scale, one}, "fused_all_gather_scaled_matmul", attrs,
                                  {{{1, 2}, {1, 1}, first, {2}}, {{3, 4}, {1, 1}, second, {2}}});
    return std::pair(results[0][0], results[1][0]);
  };
  EXPECT_EQ(run(one, {2}, {3}), std::pair(Values({12, 28}), Values({18, 42})));
  EXPECT_EQ(run({kF32, {1, 1}}, {2}, {3}), std::pair(Values({12, 42}), Values({12, 42})));
  EXPECT_EQ(run({kF32, {2, 1}}, {2, 3}, {4, 5}), std::pair(Values({12, 42}), Values({24, 70})));
}

TEST(FusedGather, RefusesAtTheOperandOrAttribute) {
  const TensorType a{kF32, {2, 8}}, b{kF32, {8, 3}};
  const char* op = "fused_all_gather_matmul";
  EXPECT_TRUE(is_error(refused({{kF32, {8}}, b}, op, gather(0)), "n/inputs/0", "two dims"));
  EXPECT_TRUE(is_error(refused({a, b}, op, gather(2)), "n/attrs/gather_dim",
                       "expected an integer from -2 to 1"));
  EXPECT_TRUE(is_error(refused({a, b}, op, gather(1)), "n/inputs/1", "16 and 8 differ"));
  EXPECT_TRUE(is_error(refused({a, b, {kF32, {7, 3}}}, op, gather(0)), "n/inputs/2", "differ"));
  EXPECT_TRUE(
      is_error(refused({a, b, {DType::kBF16, {8, 3}}}, op, gather(0)), "n/inputs/2", "one dtype"));
  EXPECT_TRUE(is_error(refused({{kF32, {sym("T"), sym("S"), 8}}, b}, op, gather(0)), "n/inputs/0",
                       "affine expression"));
  const TensorType f8{kF8, {2, 4}}, w{kF8, {4, 3}}, one{kF32, {}};
  op = "fused_all_gather_scaled_matmul";
  EXPECT_TRUE(is_error(refused({f8, w, w, one, one}, op, gather(0)), "n/inputs",
                       "expected A_shard, B..., A_scale, B_scale..."));
  EXPECT_TRUE(is_error(refused({f8, w, {kF32, {3, 1}}, one}, op, gather(0)), "n/inputs/2",
                       "expected f32[] or f32[4, 1] or f32[2, 1]"));
  EXPECT_TRUE(is_error(refused({f8, w, w, one, one, {kF32, {5}}}, op, gather(0)), "n/inputs/5",
                       "the scale of scaled_mm"));
  EXPECT_TRUE(
      is_error(refused({f8, w, one, one}, op, gather(-1)), "n/attrs/gather_dim", "along K"));
}

TEST(FusedGather, AddsABiasForEachProduct) {
  const TensorType a{kF8, {1, 1}}, b{kF8, {1, 2}}, one{kF32, {}}, bias{kF32, {2}};
  Attrs attrs = gather(0, false);
  attrs.emplace("out_dtype", kF32);
  attrs.emplace("bias", true);
  const char* op = "fused_all_gather_scaled_matmul";
  const auto results = computed({a, b, b, one, one, one, bias, bias}, op, attrs,
                                {{{1}, {1, 2}, {3, 4}, {1}, {1}, {1}, {10, 20}, {30, 40}},
                                 {{2}, {1, 2}, {3, 4}, {1}, {1}, {1}, {10, 20}, {30, 40}}});
  EXPECT_EQ(results[0], (std::vector<Values>{{11, 22, 12, 24}, {33, 44, 36, 48}}));
  EXPECT_TRUE(is_error(refused({a, b, one, one}, op, attrs), "n/inputs",
                       "4 operands; expected A_shard, B..., A_scale, B_scale..., bias..."));
  EXPECT_TRUE(is_error(refused({a, b, one, one, {kF32, {3}}}, op, attrs), "n/inputs/4",
                       "the bias of scaled_mm is f32[3]; expected f32[2]"));
}

// C-02: every scatter_dim of two and three dims.
TEST(FusedScatter, ReducesTheProductAlongEachDim) {
  EXPECT_EQ(inferred({{kF32, {4, sym("T"), 8}}, {kF32, {8, 6}}}, "fused_matmul_reduce_scatter",
                     scatter(0, "avg", true)),
            "f32[2, T, 6] f32[4, T, 6]");
  const auto run = [&](const Shape& shape, std::int64_t dim) {
    const auto results = computed({{kF32, shape}, {kF32, {1, 2}}}, "fused_matmul_reduce_scatter",
                                  scatter(dim), {{{1, 2, 3, 4}, {1, 10}}, {{5, 6, 7, 8}, {1, 10}}});
    return std::pair(results[0][0], results[1][0]);
  };
  EXPECT_EQ(run({4, 1}, 0), std::pair(Values({6, 60, 8, 80}), Values({10, 100, 12, 120})));
  EXPECT_EQ(run({4, 1}, -1), std::pair(Values({6, 8, 10, 12}), Values({60, 80, 100, 120})));
  EXPECT_EQ(run({2, 2, 1}, 0), std::pair(Values({6, 60, 8, 80}), Values({10, 100, 12, 120})));
  EXPECT_EQ(run({2, 2, 1}, 1), std::pair(Values({6, 60, 10, 100}), Values({8, 80, 12, 120})));
  EXPECT_EQ(run({2, 2, 1}, 2), std::pair(Values({6, 8, 10, 12}), Values({60, 80, 100, 120})));
}

TEST(FusedScatter, RoundsTheProductBeforeItIsReduced) {
  const TensorType a{DType::kBF16, {2, 2}}, b{DType::kBF16, {2, 1}};
  const auto results = computed({a, b}, "fused_matmul_reduce_scatter", scatter(0),
                                {{{256, 1, 0, 0}, {1, 1}}, {{1, 0, 0, 0}, {1, 1}}});
  EXPECT_EQ(results[0][0], Values{256});  // 258 when it rounds once
}

TEST(FusedScatter, ScalesByRows) {
  const TensorType a{kF8, {2, 1}}, b{kF8, {1, 1}};
  Attrs attrs = scatter(0);
  attrs.emplace("out_dtype", kF32);
  const auto results =
      computed({a, b, {kF32, {2, 1}}, {kF32, {}}}, "fused_scaled_matmul_reduce_scatter", attrs,
               {{{1, 2}, {1}, {1, 10}, {1}}, {{3, 4}, {1}, {100, 1000}, {1}}});
  EXPECT_EQ(results[0][0], Values{301});
  EXPECT_EQ(results[1][0], Values{4020});
}

TEST(FusedScatter, AddsTheBiasBeforeItReduces) {
  const TensorType a{kF8, {2, 1}}, b{kF8, {1, 1}}, one{kF32, {}}, bias{kF32, {1}};
  Attrs attrs = scatter(0);
  attrs.emplace("out_dtype", kF32);
  attrs.emplace("bias", true);
  const char* op = "fused_scaled_matmul_reduce_scatter";
  const auto results = computed({a, b, one, one, bias}, op, attrs,
                                {{{1, 2}, {1}, {1}, {1}, {10}}, {{3, 4}, {1}, {1}, {1}, {100}}});
  EXPECT_EQ(results[0][0], Values{114});
  EXPECT_EQ(results[1][0], Values{116});
  EXPECT_TRUE(is_error(refused({a, b, one, one}, op, attrs), "n/inputs",
                       "4 operands; expected A, B, A_scale, B_scale, bias"));
}

//
TEST(FusedScatter, RefusesAtTheOperandOrAttribute) {
  const TensorType a{kF32, {4, 8}}, b{kF32, {8, 3}};
  const char* op = "fused_matmul_reduce_scatter";
  EXPECT_TRUE(is_error(refused({a, b}, op, scatter(0, "max")), "n/attrs/reduce_op",
                       "expected one of \"sum\", \"avg\""));
  EXPECT_TRUE(is_error(refused({a, b}, op, scatter(2)), "n/attrs/scatter_dim",
                       "expected an integer from -2 to 1"));
  EXPECT_TRUE(is_error(refused({a, b}, op, scatter(1)), "n/attrs/scatter_dim",
                       "f32[4, 3] does not divide among the 2 ranks"));
  EXPECT_TRUE(is_error(refused({a, {kF32, {2, 8, 3}}}, op, scatter(0)), "n/inputs/1", "two dims"));
  const TensorType f8{kF8, {4, 4}}, w{kF8, {4, 2}}, one{kF32, {}};
  EXPECT_TRUE(is_error(refused({f8, w, one, one}, "fused_scaled_matmul_reduce_scatter", scatter(1)),
                       "n/attrs/scatter_dim", "only plain matmuls"));
}

TEST(FusedAllReduce, InfersTheProductAndRefusesOtherReductions) {
  const TensorType a{kF32, {4, 6, 8}}, b{kF32, {8, 3}};
  const auto attrs = [](const char* reduce_op, bool return_mm) -> Attrs {
    return {{"group", std::string("tp")},
            {"reduce_op", std::string(reduce_op)},
            {"return_mm", return_mm}};
  };
  for (const bool return_mm : {false, true}) {
    Graph graph = graph_with({a, b});
    const NodeId last = graph.add_node("s", "fused_matmul_all_reduce", graph.input_values(),
                                       attrs("avg", return_mm));
    const Node& node = graph.node(last);
    ASSERT_EQ(node.outputs.size(), return_mm ? 2 : 1);
    for (ValueId output : node.outputs) {
      EXPECT_EQ(graph.type(output), (TensorType{kF32, {4, 6, 3}}));
    }
    EXPECT_EQ(node_flops(graph, node, {}), (2 * 8 + 1) * 4 * 6 * 3);
  }
  EXPECT_TRUE(is_error(refused({a, b}, "fused_matmul_all_reduce", attrs("max", false)),
                       "n/attrs/reduce_op", "expected one of \"sum\", \"avg\""));
}

TEST(Fused, CountsTheProductsFlops) {
  Graph graph = graph_with({{kF32, {sym("T"), 8}}, {kF32, {16, 4}}});
  const NodeId last =
      graph.add_node("g", "fused_all_gather_matmul", graph.input_values(), gather(1, false));
  EXPECT_EQ(node_flops(graph, graph.node(last), {{"T", 10}}), 2 * 10 * 16 * 4);
}

}  // namespace
}  // namespace braid
