#include "ir/evaluate.h"

#include <cmath>
#include <limits>

#include "support.h"

namespace braid {
namespace {

/// y = relu(all_reduce(x @ w) + r), outputs y and the sum, with x and w per rank.
Graph small_layer(std::int64_t ranks) {
  Graph graph("layer");
  graph.add_symbol("T", {1, 4, 1});
  graph.add_group("tp", {ranks, true, {}});
  const ValueId x =
      graph.add_input({"x", {DType::kF32, {sym("T"), 2}}, InputKind::kActivation, true});
  const ValueId w = graph.add_input({"w", {DType::kF32, {2, 2}}, InputKind::kParameter, true});
  const ValueId r = graph.add_input({"r", {DType::kF32, {sym("T"), 2}}});
  auto add = [&](const char* name, const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph.node(graph.add_node(name, op, std::move(inputs), std::move(attrs))).outputs[0];
  };
  const ValueId p = add("p", "mm", {x, w});
  const ValueId c = add("c", "all_reduce", {p},
                        {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
  const ValueId s = add("s", "wait_tensor", {c});
  const ValueId a = add("a", "add", {s, r});
  graph.add_output(add("y", "relu", {a}));
  graph.add_output(a);
  return graph;
}

HostTensor f32(std::vector<std::int64_t> shape, const Values& values) {
  return HostTensor::from_doubles(DType::kF32, std::move(shape), values);
}

TEST(Evaluate, AgreesWithHandComputedNumbersOnTwoRanks) {
  const HostTensor r = f32({1, 2}, {-100, 5});
  const RankTensors inputs = {{f32({1, 2}, {1, 2}), f32({2, 2}, {1, 0, 0, 1}), r},
                              {f32({1, 2}, {3, 4}), f32({2, 2}, {1, 2, 3, 4}), r}};
  const RankTensors outputs = evaluate(small_layer(2), inputs, {{"T", 1}});
  for (const auto& rank : outputs) {
    EXPECT_EQ(rank[0].to_doubles(), (Values{0, 29}));
    EXPECT_EQ(rank[1].to_doubles(), (Values{-84, 29}));
  }
}

TEST(Evaluate, RanksAgreeOnFour) {
  const Graph graph = small_layer(4);
  const RankTensors outputs = evaluate(graph, random_inputs(graph, {{"T", 3}}, 1), {{"T", 3}});
  ASSERT_EQ(outputs.size(), 4U);
  for (const auto& rank : outputs) EXPECT_EQ(rank[1].data, outputs[0][1].data);
}

TEST(Evaluate, AnInputMayBeAnOutputAndAnOperandTwice) {
  Graph graph = graph_with({{DType::kF32, {2}}}, 1);
  graph.add_node("n", "add", {0, 0});
  graph.add_output(1);
  graph.add_output(0);
  graph.add_output(1);
  const auto outputs = evaluate(graph, {{f32({2}, {1, 2})}}, {{"T", 1}, {"S", 1}})[0];
  EXPECT_EQ(outputs[0].to_doubles(), (Values{2, 4}));
  EXPECT_EQ(outputs[1].to_doubles(), (Values{1, 2}));
  EXPECT_EQ(outputs[2].to_doubles(), (Values{2, 4}));
}

TEST(Evaluate, TheLastReaderMayReadTwice) {
  Graph graph = graph_with({{DType::kF32, {2}}}, 1);
  graph.add_node("n", "add", {0, 0});
  graph.add_output(1);
  const auto outputs = evaluate(graph, {{f32({2}, {1, 2})}}, {{"T", 1}, {"S", 1}})[0];
  EXPECT_EQ(outputs[0].to_doubles(), (Values{2, 4}));
}

TEST(Evaluate, EveryResultIsRoundedToItsDtype) {
  // 256 + 1 is no bf16, so that the difference is lost before it is used.
  const TensorType x{DType::kBF16, {1}};
  Graph graph = graph_with({x, x}, 1);
  graph.add_node("sum", "add", {0, 1});
  graph.add_node("back", "sub", {2, 0});
  graph.add_output(3);
  auto bf16 = [](double value) { return HostTensor::from_doubles(DType::kBF16, {1}, {value}); };
  const auto outputs = evaluate(graph, {{bf16(256), bf16(1)}}, {{"T", 1}, {"S", 1}})[0];
  EXPECT_EQ(outputs[0].to_doubles(), Values{0});
}

TEST(Evaluate, RefusesWrongInputs) {
  const Graph graph = small_layer(1);
  const HostTensor x = f32({1, 2}, {1, 2});
  const HostTensor w = f32({2, 2}, {1, 2, 3, 4});
  auto error = [&](const RankTensors& inputs) {
    return error_of([&] { static_cast<void>(evaluate(graph, inputs, {{"T", 1}})); });
  };
  EXPECT_TRUE(is_error(error({}), "", "inputs for 0 ranks; expected 1"));
  EXPECT_TRUE(is_error(error({{x, w}}), "", "rank 0 has 2 inputs; expected 3"));
  EXPECT_TRUE(is_error(error({{x, w, w}}), "input \"r\"",
                       "rank 0 has f32[2, 2] of 16 bytes; expected f32[1, 2]"));
  EXPECT_TRUE(is_error(error({{x, w, HostTensor::from_doubles(DType::kF16, {1, 2}, {1, 2})}}),
                       "input \"r\"", "f16[1, 2]"));
  EXPECT_TRUE(
      is_error(error({{x, w, HostTensor{DType::kF32, {1, 2}, {}}}}), "input \"r\"", "0 bytes"));
}

TEST(RelativeError, IsTheRatioOfNorms) {
  EXPECT_EQ(relative_error(f32({2}, {3, 4}), f32({2}, {3, 4})), 0);
  EXPECT_DOUBLE_EQ(relative_error(f32({2}, {3, 4.5}), f32({2}, {3, 4})), 0.1);
  EXPECT_EQ(relative_error(f32({1}, {0}), f32({1}, {0})), 0);
  EXPECT_TRUE(std::isinf(relative_error(f32({1}, {1}), f32({1}, {0}))));
  EXPECT_TRUE(std::isinf(relative_error(f32({2}, {1, 2}), f32({1}, {1}))));
}

TEST(RelativeError, NanAndInfinityMustAgree) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(relative_error(f32({3}, {nan, inf, 1}), f32({3}, {nan, inf, 1})), 0);
  EXPECT_EQ(relative_error(f32({2}, {inf, 1}), f32({2}, {inf, 1})), 0);
  EXPECT_TRUE(std::isinf(relative_error(f32({1}, {nan}), f32({1}, {1}))));
  EXPECT_TRUE(std::isinf(relative_error(f32({1}, {1}), f32({1}, {inf}))));
  EXPECT_TRUE(std::isinf(relative_error(f32({1}, {-inf}), f32({1}, {inf}))));
}

}  // namespace
}  // namespace braid
