#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32;
constexpr DType kI32 = DType::kI32;
constexpr DType kI64 = DType::kI64;

Attrs along(std::int64_t dim) { return {{"dim", dim}}; }

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
