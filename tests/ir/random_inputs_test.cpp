#include <algorithm>
#include <cmath>

#include "support.h"

namespace braid {
namespace {

Graph model() {
  Graph graph("model");
  graph.add_symbol("T", {1, 512, 1});
  graph.add_group("tp", {2, true, {}});
  graph.add_input({"x", {DType::kF32, {sym("T"), 64}}});
  graph.add_input({"w", {DType::kF32, {256, 64}}, InputKind::kParameter, true});
  graph.add_input({"g", {DType::kF32, {4096}}, InputKind::kParameter});
  graph.add_input({"i", {DType::kI32, {1000}}});
  return graph;
}

struct Moments {
  double mean;
  double deviation;
};
Moments moments(const HostTensor& tensor) {
  double sum = 0;
  double squares = 0;
  for (double x : tensor.to_doubles()) {
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(tensor.numel());
  return {sum / n, std::sqrt(squares / n - sum / n * sum / n)};
}

TEST(RandomInputs, AreScaledAsRealWeights) {
  const RankTensors inputs = random_inputs(model(), {{"T", 100}}, 3);
  const std::vector<Moments> expected = {{0, 1}, {0, 1.0 / 16}, {1, 0.1}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(moments(inputs[0][i]).mean, expected[i].mean, 0.05 * expected[i].deviation) << i;
    EXPECT_NEAR(moments(inputs[0][i]).deviation, expected[i].deviation,
                0.05 * expected[i].deviation)
        << i;
  }
  for (double x : inputs[0][3].to_doubles()) EXPECT_TRUE(x >= 0 && x < 8 && x == std::floor(x));
}

TEST(RandomInputs, OffsetsOfGroupsAscendAmongTheirRows) {
  Graph graph;
  graph.add_input({"x", {DType::kF32, {100, 4}}});
  graph.add_input({"w", {DType::kF32, {64, 4, 4}}});
  graph.add_input({"offsets", {DType::kI32, {64}}});
  graph.add_node("y", "_grouped_mm", graph.input_values());
  const Values offsets = random_inputs(graph, {}, 3)[0][2].to_doubles();
  EXPECT_TRUE(std::ranges::is_sorted(offsets));
  EXPECT_GE(offsets.front(), 0);
  EXPECT_GT(offsets.back(), 64);
  EXPECT_LE(offsets.back(), 100);
}

TEST(RandomInputs, OfAPagedAttentionFitEachOther) {
  Graph graph;
  graph.add_input({"q", {DType::kF32, {33, 2, 8}}});
  graph.add_input({"k", {DType::kF32, {5, 16, 1, 8}}});
  graph.add_input({"v", {DType::kF32, {5, 16, 1, 8}}});
  graph.add_input({"table", {DType::kI32, {7, 3}}});
  graph.add_input({"lengths", {DType::kI32, {7}}});
  graph.add_input({"starts", {DType::kI32, {8}}});
  graph.add_output(
      graph.node(graph.add_node("y", "paged_attention", graph.input_values())).outputs[0]);
  for (const std::uint64_t seed : {1, 2, 3}) {
    EXPECT_NO_THROW((void)evaluate(graph, random_inputs(graph, {}, seed), {}));
  }
}

TEST(RandomInputs, ExpertsOfTokensExist) {
  Graph graph;
  graph.add_input({"choices", {DType::kI64, {100, 2}}});
  graph.add_node("y", "moe_routing", graph.input_values(), {{"experts", std::int64_t{3}}});
  const Values choices = random_inputs(graph, {}, 3)[0][0].to_doubles();
  EXPECT_EQ(*std::ranges::min_element(choices), 0);
  EXPECT_EQ(*std::ranges::max_element(choices), 2);
}

TEST(RandomInputs, DifferByRankOnlyWherePerRank) {
  const RankTensors inputs = random_inputs(model(), {{"T", 5}}, 3);
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0][0].data, inputs[1][0].data);
  EXPECT_NE(inputs[0][1].data, inputs[1][1].data);
}

TEST(RandomInputs, FollowTheSeed) {
  const RankTensors a = random_inputs(model(), {{"T", 5}}, 3);
  const RankTensors b = random_inputs(model(), {{"T", 5}}, 3);
  const RankTensors c = random_inputs(model(), {{"T", 5}}, 4);
  const RankTensors d = random_inputs(model(), {{"T", 6}}, 3);
  EXPECT_EQ(a[1][1].data, b[1][1].data);
  EXPECT_NE(a[1][1].data, c[1][1].data);
  EXPECT_EQ(a[1][1].data, d[1][1].data);  // one input does not depend on another's size
}

TEST(RandomInputs, AreTheSameOnEveryPlatform) {
  Graph graph;
  graph.add_input({"x", {DType::kBF16, {4}}});
  graph.add_input({"i", {DType::kI32, {6}}});
  const auto inputs = random_inputs(graph, {}, 42)[0];
  EXPECT_EQ(inputs[0].to_doubles(), (Values{1.2109375, -0.65234375, -1.7734375, -1.3515625}));
  EXPECT_EQ(inputs[1].to_doubles(), (Values{1, 7, 3, 3, 3, 6}));
}

TEST(CheckBindings, FillsInAndRefuses) {
  Graph graph;
  graph.add_symbol("T", {4, 64, 4});
  graph.add_symbol("F", {7, 7, 1});
  auto error = [&](const Bindings& bindings) {
    return error_of([&] { static_cast<void>(check_bindings(graph, bindings)); });
  };
  EXPECT_EQ(check_bindings(graph, {{"T", 8}}), (Bindings{{"F", 7}, {"T", 8}}));
  EXPECT_TRUE(
      is_error(error({}), "", "symbol \"T\" has no value; expected a multiple of 4 from 4 to 64"));
  EXPECT_TRUE(is_error(error({{"T", 68}}), "",
                       "symbol \"T\" is 68; expected a multiple of 4 from 4 to 64"));
  EXPECT_TRUE(is_error(error({{"T", 6}}), "", "a multiple of 4"));
  EXPECT_TRUE(is_error(error({{"T", 0}}), "", "from 4 to 64"));
  EXPECT_TRUE(is_error(error({{"T", 8}, {"U", 1}}), "", "the graph has no symbol \"U\""));
}

}  // namespace
}  // namespace braid
