#include <limits>

#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

TEST(IndexCopy, ReplacesPartsAtIndices) {
  EXPECT_EQ(inferred({{kF32, {8, 4}}, {kI32, {sym("T")}}, {kF32, {sym("T"), 4}}}, "index_copy"),
            "f32[8, 4]");
  EXPECT_EQ(computed_one({{kF32, {3, 2}}, {kI64, {2}}, {kF32, {2, 2}}}, "index_copy", {},
                         {{1, 2, 3, 4, 5, 6}, {2, 0}, {7, 8, 9, 10}}),
            (Values{9, 10, 3, 4, 7, 8}));
  EXPECT_EQ(computed_one({{kF32, {2, 3}}, {kI64, {1}}, {kF32, {2, 1}}}, "index_copy", along(-1),
                         {{1, 2, 3, 4, 5, 6}, {1}, {7, 8}}),
            (Values{1, 7, 3, 4, 8, 6}));
}

TEST(IndexCopy, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(is_error(refused({{kF32, {8, 4}}, {kF32, {2}}, {kF32, {2, 4}}}, "index_copy"),
                       "n/inputs/1", "expected i32 or i64"));
  EXPECT_TRUE(is_error(refused({{kF32, {8, 4}}, {kI32, {2, 1}}, {kF32, {2, 4}}}, "index_copy"),
                       "n/inputs/1", "expected one dim"));
  EXPECT_TRUE(is_error(refused({{kF32, {8, 4}}, {kI32, {2}}, {kF32, {3, 4}}}, "index_copy"),
                       "n/inputs/2", "takes f32[3, 4] for parts of f32[8, 4]; expected f32[2, 4]"));
  const auto at = [](double first, double second) {
    return error_of([&] {
      (void)computed_one({{kF32, {3}}, {kI64, {2}}, {kF32, {2}}}, "index_copy", {},
                         {{1, 2, 3}, {first, second}, {4, 5}});
    });
  };
  EXPECT_TRUE(is_error(at(0, 3), "n", "rank 0: index 3 is out of range"));
  EXPECT_TRUE(is_error(at(-1, 0), "n", "rank 0: index -1 is out of range"));
  EXPECT_TRUE(
      is_error(at(1, 1), "n", "rank 0: index 1 is there twice; expected each at most once"));
}

TEST(IndexAdd, AddsPartsAtIndices) {
  EXPECT_EQ(computed_one({{kF32, {3, 2}}, {kI64, {3}}, {kF32, {3, 2}}}, "index_add", {},
                         {{1, 2, 3, 4, 5, 6}, {2, 0, 2}, {7, 8, 9, 10, 100, 200}}),
            (Values{10, 12, 3, 4, 112, 214}));
  EXPECT_EQ(computed_one({{DType::kU8, {2}}, {kI32, {2}}, {DType::kU8, {2}}}, "index_add", {},
                         {{200, 1}, {0, 0}, {50, 7}}),
            (Values{1, 1}));
  EXPECT_TRUE(is_error(error_of([&] {
                         (void)computed_one({{kF32, {3}}, {kI64, {1}}, {kF32, {1}}}, "index_add",
                                            {}, {{1, 2, 3}, {-1}, {4}});
                       }),
                       "n", "rank 0: index -1 is out of range"));
}

TEST(Scatter, PutsEachElementAtItsIndex) {
  const std::vector<TensorType> types{{kF32, {2, 3}}, {kI64, {1, 2}}, {kF32, {1, 2}}};
  const Values x{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(computed_one(types, "scatter", along(0), {x, {1, 0}, {7, 8}}),
            (Values{1, 8, 3, 7, 5, 6}));
  EXPECT_EQ(computed_one(types, "scatter", along(-1), {x, {2, 0}, {7, 8}}),
            (Values{8, 2, 7, 4, 5, 6}));
  EXPECT_EQ(computed_one(types, "scatter_add", along(1), {x, {2, 2}, {7, 8}}),
            (Values{1, 2, 18, 4, 5, 6}));
  EXPECT_EQ(computed_one({{kF32, {3}}, {kI32, {2}}}, "scatter",
                         {{"dim", std::int64_t{0}}, {"value", 0.5}}, {{1, 2, 3}, {2, 0}}),
            (Values{0.5, 2, 0.5}));
}

TEST(Scatter, RefusesWhatDoesNotFit) {
  const TensorType x{kF32, {2, 3}};
  EXPECT_TRUE(is_error(refused({x, {kI64, {3, 2}}, {kF32, {3, 2}}}, "scatter", along(1)),
                       "n/inputs/1", "expected as many dims, and but for dim 1 no larger extents"));
  EXPECT_TRUE(is_error(refused({x, {kI64, {2, 2}}, {kF32, {2, 3}}}, "scatter_add", along(1)),
                       "n/inputs/2", "expected f32[2, 2]"));
  EXPECT_TRUE(is_error(refused({x, {kI64, {2, 2}}}, "scatter", along(1)), "n/attrs/value",
                       "scatter has neither of a third operand and a value"));
  EXPECT_TRUE(is_error(
      refused({{kI32, {2}}, {kI64, {2}}}, "scatter", {{"dim", std::int64_t{0}}, {"value", 0.5}}),
      "n/attrs/value", "0.5 is no value of i32"));
  const auto at = [&](double index) {
    return error_of([&] {
      (void)computed_one({x, {kI64, {1, 2}}, {kF32, {1, 2}}}, "scatter", along(1),
                         {{1, 2, 3, 4, 5, 6}, {2, index}, {7, 8}});
    });
  };
  EXPECT_TRUE(is_error(at(-1), "n", "rank 0: index -1 is out of range"));
  EXPECT_TRUE(is_error(at(2), "n", "rank 0: index 2 is there twice"));
}

TEST(IndexPut, PutsPartsAtIndicesOfTheFirstDims) {
  const TensorType x{kF32, {2, 2, 2}};
  const Values v{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(computed_one({x, {kI64, {2}}, {kI32, {2}}, {kF32, {2, 2}}}, "index_put", {},
                         {v, {1, -2}, {-1, 0}, {10, 20, 30, 40}}),
            (Values{30, 40, 3, 4, 5, 6, 10, 20}));
  EXPECT_EQ(computed_one({{kF32, {4}}, {kI64, {2, 1}}, {kF32, {2, 1}}}, "index_put", {},
                         {{1, 2, 3, 4}, {-1, 0}, {7, 8}}),
            (Values{8, 2, 3, 7}));
  EXPECT_EQ(computed_one({{kF32, {2}}, {kI64, {3}}, {kF32, {3}}}, "index_put",
                         {{"accumulate", true}}, {{1, 2}, {1, -1, 0}, {10, 20, 30}}),
            (Values{31, 32}));
}

TEST(IndexPut, RefusesWhatDoesNotFit) {
  const TensorType x{kF32, {4, 8, 3}};
  const Dim t = sym("T");
  EXPECT_EQ(refused({x, {kI64, {t}}, {kI64, {t}}, {kF32, {t, 3}}}, "index_put"), "no error");
  EXPECT_TRUE(is_error(refused({x, {kI64, {t}}, {kI64, {2}}, {kF32, {t, 3}}}, "index_put"),
                       "n/inputs/2", "are i64[T] and i64[2]; expected one shape"));
  EXPECT_TRUE(is_error(refused({x, {kI64, {t}}, {kF32, {t, 3}}}, "index_put"), "n/inputs/2",
                       "expected f32[T, 8, 3]"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}, {kI64, {2}}, {kI64, {2}}, {kF32, {2}}}, "index_put"),
                       "n/inputs/0", "index_put has 2 tensors of indices for f32[4]"));
  const auto at = [&](double block, double offset) {
    return error_of([&] {
      (void)computed_one({{kF32, {2, 3}}, {kI64, {2}}, {kI64, {2}}, {kF32, {2}}}, "index_put", {},
                         {{1, 2, 3, 4, 5, 6}, {0, block}, {2, offset}, {7, 8}});
    });
  };
  EXPECT_TRUE(is_error(at(2, 0), "n/inputs/1", "rank 0: index 2 is out of range"));
  EXPECT_TRUE(is_error(at(0, -4), "n/inputs/2", "rank 0: index -4 is out of range"));
  EXPECT_TRUE(is_error(at(0, -1), "n", "rank 0: index 0, 2 is there twice"));
}

TEST(SliceScatter, ReplacesARange) {
  const Attrs range{{"dim", std::int64_t{1}},
                    {"start", std::int64_t{1}},
                    {"end", std::int64_t{4}},
                    {"step", std::int64_t{2}}};
  EXPECT_EQ(computed_one({{kF32, {2, 4}}, {kF32, {2, 2}}}, "slice_scatter", range,
                         {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40}}),
            (Values{1, 10, 3, 20, 5, 30, 7, 40}));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 4}}, {kF32, {2, 3}}}, "slice_scatter", range),
                       "n/inputs/1", "expected f32[2, 2]"));
}

TEST(AppendKv, WritesRowsOfBothCaches) {
  const TensorType cache{kF32, {2, 2, 1}};
  const TensorType rows{kF32, {2, 1}};
  const auto results = computed({cache, cache, rows, rows, {kI32, {2}}}, "append_kv", {},
                                {{{1, 2, 3, 4}, {5, 6, 7, 8}, {10, 20}, {30, 40}, {3, 0}}})[0];
  EXPECT_EQ(results[0], (Values{20, 2, 3, 10}));
  EXPECT_EQ(results[1], (Values{40, 6, 7, 30}));
}

TEST(AppendKv, DividesRowsOf8BitCachesByTheirScales) {
  const TensorType k{DType::kF8E4M3, {2, 2, 1}}, v{DType::kF8E5M2, {2, 2, 1}};
  const TensorType rows{DType::kBF16, {3, 1}}, scale{kF32, {}};
  const auto results = computed(
      {k, v, rows, rows, {kI32, {3}}, scale, scale}, "append_kv", {},
      {{{1, 2, 3, 4}, {5, 6, 7, 8}, {10, -2000, 6.5}, {30, 1e7, 2.5}, {3, 0, 1}, {2}, {0.5}}})[0];
  // 1000 is above the largest, and 3.25 a midpoint; 5 is 4 · 1.25, and e5m2 has an infinity.
  EXPECT_EQ(results[0], (Values{-448, 3.25, 3, 5}));
  EXPECT_EQ(results[1], (Values{std::numeric_limits<double>::infinity(), 5, 7, 64}));
}

TEST(AppendKv, RefusesRowsThatDoNotFit) {
  const TensorType cache{kF32, {4, 16, 2, 8}};
  const TensorType slots{kI32, {sym("T")}};
  const auto of = [&](const Shape& k, const Shape& v) {
    return refused({cache, cache, {kF32, k}, {kF32, v}, slots}, "append_kv");
  };
  const Dim t = sym("T");
  EXPECT_EQ(of({t, 2, 8}, {t, 2, 8}), "no error");
  EXPECT_TRUE(is_error(of({t, 2, 4}, {t, 2, 8}), "n/inputs/2", "append_kv writes f32[T, 2, 4]"));
  EXPECT_TRUE(is_error(of({t, 2, 8}, {1, 2, 8}), "n/inputs/3", "expected T rows"));
  const TensorType rows{kF32, {t, 2, 8}}, scale{kF32, {}};
  std::vector<TensorType> types{cache, cache, rows, rows, slots, scale};
  EXPECT_TRUE(is_error(refused(types, "append_kv"), "n/inputs/5", "one of keys and one of values"));
  types.push_back({kF32, {2}});
  EXPECT_TRUE(is_error(refused(types, "append_kv"), "n/inputs/6", "expected f32[]"));
  types[6] = scale;
  EXPECT_TRUE(is_error(refused(types, "append_kv"), "n/inputs/2", "where it has 8-bit floats"));
  types[0].dtype = types[1].dtype = DType::kF8E4M3;
  EXPECT_EQ(refused(types, "append_kv"), "no error");
  types.resize(5);
  EXPECT_TRUE(is_error(refused(types, "append_kv"), "n/inputs/2", "its dtype"));
  EXPECT_TRUE(is_error(error_of([&] {
                         const TensorType one{kF32, {2, 1}};
                         (void)computed_one({one, one, {kF32, {1, 1}}, {kF32, {1, 1}}, {kI32, {1}}},
                                            "append_kv", {}, {{1, 2}, {3, 4}, {5}, {6}, {2}});
                       }),
                       "n", "rank 0: index 2 is out of range; expected an integer from 0 to 1"));
}

TEST(Updates, AreFoundInNodesAndBodies) {
  Graph graph = graph_with({{kF32, {8, 4}}, {kI32, {2}}, {kF32, {2, 4}}});
  const std::vector<ValueId> in = graph.input_values();
  const NodeId id = graph.add_node("n", "index_copy", in);
  const ValueId result = graph.node(id).outputs[0];
  graph.add_output(in[2]);
  graph.add_output(result);
  EXPECT_EQ(updates_of(graph.node(id)).size(), 1U);
  ASSERT_EQ(updates_of(graph).size(), 1U);
  EXPECT_EQ(updates_of(graph)[0].result, 1U);
  EXPECT_EQ(updates_of(graph)[0].operand, 0U);
  EXPECT_EQ(update_of(graph, result), &graph.node(id));
  EXPECT_EQ(update_of(graph, in[0]), nullptr);
}

}  // namespace
}  // namespace braid
