#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

TEST(Embedding, TakesRows) {
  EXPECT_EQ(inferred({{kF32, {10, 4}}, {DType::kI32, {sym("T")}}}, "embedding"), "f32[T, 4]");
  EXPECT_EQ(
      computed_one({{kF32, {3, 2}}, {kI64, {2}}}, "embedding", {}, {{1, 2, 3, 4, 5, 6}, {2, 0}}),
      (Values{5, 6, 1, 2}));
}

TEST(Embedding, RefusesBadOperands) {
  EXPECT_TRUE(is_error(refused({{kF32, {10}}, {kI64, {2}}}, "embedding"), "n/inputs/0",
                       "expected two dims"));
  EXPECT_TRUE(is_error(refused({{kF32, {10, 4}}, {kF32, {2}}}, "embedding"), "n/inputs/1",
                       "expected i32 or i64"));
  EXPECT_TRUE(is_error(
      error_of([] {
        (void)computed_one({{kF32, {3, 1}}, {kI64, {1}}}, "embedding", {}, {{1, 2, 3}, {3}});
      }),
      "n", "rank 0: index 3 is out of range; expected an integer from 0 to 2"));
  EXPECT_TRUE(is_error(
      error_of([] {
        (void)computed_one({{kF32, {3, 1}}, {kI64, {1}}}, "embedding", {}, {{1, 2, 3}, {-1}});
      }),
      "n", "rank 0: index -1 is out of range; expected an integer from 0 to 2"));
}

TEST(IndexSelect, TakesAlongADim) {
  const Attrs cols{{"dim", std::int64_t{-1}}};
  EXPECT_EQ(inferred({{kF32, {sym("T"), 5}}, {kI64, {2}}}, "index_select", cols), "f32[T, 2]");
  EXPECT_EQ(computed_one({{kF32, {2, 3}}, {kI64, {2}}}, "index_select", cols,
                         {{1, 2, 3, 4, 5, 6}, {2, 0}}),
            (Values{3, 1, 6, 4}));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 3}}, {kI64, {2, 1}}}, "index_select", cols),
                       "n/inputs/1", "expected one dim"));
}

TEST(RotaryEmbedding, TurnsPairs) {
  const TensorType x{kF32, {1, 4}};
  const TensorType table{kF32, {1, 2}};
  const std::vector<Values> values{{1, 2, 3, 4}, {0, 1}, {1, 0}};
  EXPECT_EQ(computed_one({x, table, table}, "rotary_embedding", {}, values), (Values{-3, 2, 1, 4}));
  EXPECT_EQ(computed_one({x, table, table}, "rotary_embedding", {{"interleaved", true}}, values),
            (Values{-2, 1, 3, 4}));
}

TEST(RotaryEmbedding, RefusesTablesThatDoNotFit) {
  const Dim t = sym("T");
  EXPECT_TRUE(
      is_error(refused({{kF32, {t, 3}}, {kF32, {t, 1}}, {kF32, {t, 1}}}, "rotary_embedding"),
               "n/inputs/0", "even last extent"));
  EXPECT_TRUE(
      is_error(refused({{kF32, {t, 2, 4}}, {kF32, {t, 2}}, {kF32, {t, 1, 2}}}, "rotary_embedding"),
               "n/inputs/1", "the cosine"));
  EXPECT_TRUE(is_error(
      refused({{kF32, {t, 2, 4}}, {kF32, {t, 1, 2}}, {kF32, {t, 1, 4}}}, "rotary_embedding"),
      "n/inputs/2", "the sine"));
}

TEST(Opaque, HasACostAndCannotRun) {
  const Attrs attrs{{"dtype", kF32}, {"shape", Shape{sym("T"), 2}}, {"flops", 12.0}};
  Graph graph = graph_with({{kF32, {3}}});
  const NodeId id = graph.add_node("n", "opaque", graph.input_values(), attrs);
  EXPECT_EQ(graph.type(graph.node(id).outputs[0]).str(), "f32[T, 2]");
  EXPECT_EQ(node_flops(graph, graph.node(id), {{"T", 5}}), 12);
  EXPECT_TRUE(is_error(error_of([&] {
                         (void)computed_one({{kF32, {3}}}, "opaque", attrs, {{1, 2, 3}});
                       }),
                       "n", "cannot run"));
  Attrs kind = attrs;
  for (const char* known : {"compute", "gemm", "extern"}) {
    kind["kind"] = std::string(known);
    graph.add_node("", "opaque", graph.input_values(), kind);
  }
  kind["kind"] = std::string("matmul");
  EXPECT_TRUE(
      is_error(error_of([&] { (void)graph.add_node("k", "opaque", graph.input_values(), kind); }),
               "k/attrs/kind", "expected one of \"compute\", \"gemm\", \"extern\""));
}

TEST(Gather, TakesAnElementForEachIndex) {
  const Attrs cols{{"dim", std::int64_t{1}}}, rows{{"dim", std::int64_t{-2}}};
  const TensorType x{kF32, {2, 3}};
  const Values v{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(computed_one({x, {kI64, {2, 4}}}, "gather", cols, {v, {2, 0, 0, 1, 1, 1, 2, 0}}),
            (Values{3, 1, 1, 2, 5, 5, 6, 4}));
  EXPECT_EQ(computed_one({x, {DType::kI32, {1, 2}}}, "gather", rows, {v, {1, 0}}), (Values{4, 2}));
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 64}}, {kI64, {sym("T"), 8}}}, "gather", cols),
            "bf16[T, 8]");
  EXPECT_TRUE(is_error(refused({x, {kI64, {2}}}, "gather", cols), "n/inputs/1", "as many dims"));
  EXPECT_TRUE(is_error(refused({x, {kI64, {3, 3}}}, "gather", cols), "n/inputs/1",
                       "the indices of gather are i64[3, 3], its operand f32[2, 3]"));
  EXPECT_TRUE(
      is_error(refused({x, {kF32, {2, 3}}}, "gather", cols), "n/inputs/1", "expected i32 or i64"));
  for (const double bad : {3, -1}) {
    EXPECT_TRUE(is_error(error_of([&] {
                           (void)computed_one({x, {kI64, {1, 1}}}, "gather", cols, {v, {bad}});
                         }),
                         "n", "is out of range; expected an integer from 0 to 2"));
  }
}

TEST(TakeAlongDim, RepeatsExtentsOfOne) {
  const Attrs cols{{"dim", std::int64_t{-1}}};
  const TensorType x{kF32, {2, 3}};
  const Values v{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(computed_one({x, {kI64, {1, 2}}}, "take_along_dim", cols, {v, {2, 0}}),
            (Values{3, 1, 6, 4}));
  EXPECT_EQ(
      computed_one({{kF32, {1, 3}}, {kI64, {2, 1}}}, "take_along_dim", cols, {{1, 2, 3}, {2, 0}}),
      (Values{3, 1}));
  EXPECT_EQ(computed_one({x, {kI64, {3}}}, "take_along_dim", {}, {v, {5, 0, 3}}),
            (Values{6, 1, 4}));
  EXPECT_EQ(inferred({{kF32, {sym("T"), 3}}, {kI64, {1, 2}}}, "take_along_dim", cols), "f32[T, 2]");
  EXPECT_TRUE(is_error(refused({{kF32, {4, 3}}, {kI64, {2, 3}}}, "take_along_dim", cols),
                       "n/inputs/1", "equal extents or 1"));
}

}  // namespace
}  // namespace braid
