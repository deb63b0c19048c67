#include <algorithm>

#include "ir/op_registry.h"
#include "support.h"

namespace braid {
namespace {

Attrs of(std::int64_t experts) { return {{"experts", experts}}; }

TEST(MoeRouting, SortsByExpert) {
  const Values chosen{1, 0, 1, 2};
  const auto results = computed({{kI64, {2, 2}}}, "moe_routing", of(3), {{chosen}})[0];
  EXPECT_EQ(results[0], (Values{0, 0, 1, 1}));  // tokens
  EXPECT_EQ(results[1], (Values{1, 3, 4}));     // ends
  EXPECT_EQ(results[2], (Values{1, 0, 2, 3}));  // places
  EXPECT_EQ(results[3], (Values{0, 1, 1, 2}));  // experts
}

TEST(MoeRouting, InfersTheShapes) {
  EXPECT_EQ(inferred({{kI64, {sym("T"), 4}}}, "moe_routing", of(8)),
            "i32[4*T] i32[8] i32[4*T] i32[4*T]");
}

TEST(MoeRouting, RefusesWhatIsNoChoice) {
  const auto error = [](const TensorType& type, std::int64_t experts) {
    return refused({type}, "moe_routing", of(experts));
  };
  EXPECT_TRUE(is_error(error({kF32, {3, 2}}, 8), "n/inputs/0", "expected i32 or i64"));
  EXPECT_TRUE(is_error(error({kI32, {3}}, 8), "n/inputs/0", "expected two dims"));
  EXPECT_TRUE(is_error(error({kI32, {3, sym("T")}}, 8), "n/inputs/0", "the second a number"));
  EXPECT_TRUE(is_error(error({kI32, {3, 2}}, 0), "n/attrs/experts", "expected 1 to 4096"));
}

TEST(MoeRouting, ChecksTheExperts) {
  const auto error = [](double expert) {
    return error_of([&] {
      (void)computed({{kI32, {1, 2}}}, "moe_routing", of(3), {{{0, 1}}, {{2, expert}}});
    });
  };
  EXPECT_EQ(error(2), "no error");
  EXPECT_EQ(error(3), "n | rank 1: index 3 is out of range; expected an integer from 0 to 2");
  EXPECT_EQ(error(-1), "n | rank 1: index -1 is out of range; expected an integer from 0 to 2");
}

// silu(64) is 64.
TEST(MoeExperts, AddsWhatTheChosenOnesGive) {
  const std::vector<TensorType> types{
      {kF32, {1, 1}}, {kI32, {1, 2}}, {kF32, {1, 2}}, {kF32, {3, 1, 2}}, {kF32, {3, 1, 1}}};
  const std::vector<Values> values{{1}, {2, 0}, {0.5, 0.25}, {64, 2, 0, 0, 64, 3}, {1, 0, 2}};
  EXPECT_EQ(computed_one(types, "moe_experts", {}, values), (Values{0.25 * 128 + 0.5 * 384}));
}

TEST(MoeExperts, HaveGateAndUpInHalvesOrInTurn) {
  const std::vector<TensorType> types{
      {kF32, {1, 1}}, {kI32, {1, 1}}, {kF32, {1, 1}}, {kF32, {1, 1, 4}}, {kF32, {1, 2, 1}}};
  const std::vector<Values> values{{1}, {0}, {1}, {64, 1, 64, 2}, {1, 1}};
  EXPECT_EQ(computed_one(types, "moe_experts", {{"interleaved", true}}, values), (Values{192}));
  EXPECT_NEAR(computed_one(types, "moe_experts", {}, values)[0], 64 * 64 + 2 * 0.731059, 1e-3);
}

TEST(MoeExperts, ClampAndAddBiases) {
  const std::vector<TensorType> types{{kF32, {1, 1}},    {kI32, {1, 1}},    {kF32, {1, 1}},
                                      {kF32, {1, 1, 2}}, {kF32, {1, 1, 1}}, {kF32, {1, 2}},
                                      {kF32, {1, 1}}};
  const auto result = [&](double gate, double up) {
    return computed_one(types, "moe_experts", {{"activation", std::string("clamped_swiglu")}},
                        {{1}, {0}, {1}, {gate, up}, {1}, {1, 2}, {100}})[0];
  };
  // (7 + 1) * 7 * sigmoid(1.702 * 7), and (-7 + 1) of it
  EXPECT_NEAR(result(6.5, 40), 100 + 55.99963, 1e-4);
  EXPECT_NEAR(result(6.5, -40), 100 - 41.99972, 1e-4);
  EXPECT_NEAR(result(-2, 1), 100 + 4 * -0.154202, 1e-4);  // a gate of -1, an up of 3
}

TEST(MoeExperts, WeighRowsBeforeOrAfter) {
  const std::vector<TensorType> types{
      {kF32, {1, 1}}, {kI32, {1, 1}}, {kF32, {1, 1}}, {kF32, {1, 1, 2}}, {kF32, {1, 1, 1}}};
  const std::vector<Values> values{{1}, {0}, {2}, {64, 1}, {1}};
  EXPECT_EQ(computed_one(types, "moe_experts", {}, values), (Values{128}));
  EXPECT_EQ(computed_one(types, "moe_experts", {{"weights_on_input", true}}, values),
            (Values{256}));
}

TEST(MoeExperts, RefuseOperandsThatDoNotFit) {
  const Dim t = sym("T");
  const std::vector<TensorType> good{{kBF16, {t, 8}},     {kI32, {t, 2}},     {kF32, {t, 2}},
                                     {kBF16, {4, 8, 12}}, {kBF16, {4, 6, 8}}, {kBF16, {4, 12}},
                                     {kBF16, {4, 8}}};
  EXPECT_EQ(inferred(good, "moe_experts"), "bf16[T, 8]");
  const auto error = [&](std::size_t operand, TensorType type) {
    std::vector<TensorType> types = good;
    types[operand] = std::move(type);
    return refused(types, "moe_experts");
  };
  EXPECT_TRUE(is_error(error(0, {kBF16, {t}}), "n/inputs/0", "expected two dims"));
  EXPECT_TRUE(is_error(error(1, {kI32, {5, 2}}), "n/inputs/1", "a row for each of the first"));
  EXPECT_TRUE(is_error(error(2, {kF32, {t, 3}}), "n/inputs/2", "expected bf16[T, 2] or of f32"));
  EXPECT_TRUE(is_error(error(3, {kBF16, {4, 8, 11}}), "n/inputs/3", "expected bf16[E, 8, 2 I]"));
  EXPECT_TRUE(is_error(error(4, {kBF16, {4, 5, 8}}), "n/inputs/4", "expected bf16[4, 6, N]"));
  EXPECT_TRUE(is_error(error(5, {kBF16, {4, 6}}), "n/inputs/5", "expected bf16[4, 12]"));
  EXPECT_TRUE(is_error(error(6, {kF32, {4, 8}}), "n/inputs/6", "expected bf16[4, 8]"));
  const std::vector<TensorType> one_bias(good.begin(), good.end() - 1);
  EXPECT_TRUE(is_error(refused(one_bias, "moe_experts"), "n", "moe_experts has one bias"));
  EXPECT_TRUE(is_error(refused(good, "moe_experts", {{"weights_on_input", true}}),
                       "n/attrs/weights_on_input", "each token has 2 experts; expected one"));
}

TEST(MoeExperts, CountTheFlopsOfEachChoice) {
  Graph graph = graph_with({{kBF16, {sym("T"), 8}},
                            {kI32, {sym("T"), 2}},
                            {kF32, {sym("T"), 2}},
                            {kBF16, {4, 8, 12}},
                            {kBF16, {4, 6, 8}}});
  const NodeId node = graph.add_node("n", "moe_experts", graph.input_values());
  EXPECT_EQ(node_flops(graph, graph.node(node), {{"T", 10}}), 2 * 20 * (8 * 12 + 6 * 8));
}

}  // namespace
}  // namespace braid
