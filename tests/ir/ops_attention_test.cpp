#include <cmath>
#include <limits>

#include "support.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32;
constexpr const char* kAttention = "scaled_dot_product_attention";
const double kInfinity = std::numeric_limits<double>::infinity();

/// Two queries, three keys, heads of one element; the scale is 1.
Values attention(Attrs attrs, const std::vector<Values>& more = {},
                 const std::vector<TensorType>& types = {}) {
  attrs.emplace("scale", 1.0);
  std::vector<TensorType> all{{kF32, {1, 2, 1}}, {kF32, {1, 3, 1}}, {kF32, {1, 3, 1}}};
  all.insert(all.end(), types.begin(), types.end());
  std::vector<Values> values{{0, std::log(2.0)}, {1, 2, 3}, {4, 8, 12}};
  values.insert(values.end(), more.begin(), more.end());
  Values result = computed_one(all, kAttention, std::move(attrs), values);
  for (double& x : result) x = std::round(x * 1e6) / 1e6;
  return result;
}

TEST(Attention, WeighsValuesBySoftmaxOfScores) {
  // The second query's weights are 2, 4 and 8 of 14.
  EXPECT_EQ(attention({}), (Values{8, std::round(136.0 / 14 * 1e6) / 1e6}));
}

TEST(Attention, ACausalQuerySeesTheKeysUpToItsOwn) {
  EXPECT_EQ(attention({{"is_causal", true}}), (Values{4, std::round(40.0 / 6 * 1e6) / 1e6}));
}

TEST(Attention, AMaskHidesOrAdds) {
  const std::vector<TensorType> hides{{DType::kBool, {2, 3}}};
  EXPECT_EQ(attention({}, {{0, 1, 0, 0, 0, 1}}, hides), (Values{8, 12}));
  const std::vector<TensorType> adds{{kF32, {1, 3}}};
  EXPECT_EQ(attention({}, {{-kInfinity, 0, -kInfinity}}, adds), (Values{8, 8}));
}

TEST(Attention, ARowThatSeesNothingIsZero) {
  EXPECT_EQ(attention({}, {{0, 0, 0, 1, 0, 0}}, {{DType::kBool, {2, 3}}}), (Values{0, 4}));
}

TEST(Attention, HeadsMayShareKeys) {
  const TensorType one{kF32, {1, 1, 1, 1}};
  EXPECT_EQ(computed_one({{kF32, {1, 2, 1, 1}}, one, one}, kAttention, {{"enable_gqa", true}},
                         {{1, 2}, {3}, {4}}),
            (Values{4, 4}));
}

TEST(Attention, InfersTypes) {
  const Dim t = sym("T");
  EXPECT_EQ(
      inferred({{kF32, {4, 8, t, 64}}, {kF32, {4, 2, sym("S"), 64}}, {kF32, {4, 2, sym("S"), 32}}},
               kAttention, {{"enable_gqa", true}}),
      "f32[4, 8, T, 32]");
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const TensorType q{kF32, {2, 4, 8}};
  const TensorType narrow{kF32, {2, 4, 7}};
  EXPECT_TRUE(is_error(refused({q, narrow, q}, kAttention), "n", "expected [..., L, E]"));
  EXPECT_TRUE(
      is_error(refused({q, q, {kF32, {2, 5, 8}}}, kAttention), "n", "expected [..., L, E]"));
  EXPECT_TRUE(is_error(refused({q, q, {kF32, {4, 8}}}, kAttention), "n/inputs/2", "as many dims"));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 4, sym("T")}}, {kF32, {2, 4, sym("T")}}, q}, kAttention),
                       "n/inputs/0", "constant last extent"));
  EXPECT_TRUE(is_error(refused({q, q, q, {DType::kI32, {4, 4}}}, kAttention), "n/inputs/3",
                       "expected bool or f32"));
  EXPECT_TRUE(is_error(refused({q, q, q, {DType::kBool, {3, 4}}}, kAttention), "n/inputs/3",
                       "broadcasts to f32[2, 4, 4]"));
  EXPECT_TRUE(
      is_error(refused({q, q, q, {DType::kBool, {4, 4}}}, kAttention, {{"is_causal", true}}),
               "n/attrs/is_causal", "one of the two"));
  EXPECT_TRUE(is_error(refused({q, q, q}, kAttention, {{"dropout_p", 0.5}}), "n/attrs/dropout_p",
                       "expected 0"));
  EXPECT_TRUE(
      is_error(refused({q, q, q}, kAttention, {{"scale", 0.0}}), "n/attrs/scale", "above 0"));
  EXPECT_TRUE(is_error(refused({{kF32, {3, 4, 8}}, q, q}, kAttention, {{"enable_gqa", true}}),
                       "n/attrs/enable_gqa", "multiple of the heads"));
}

}  // namespace
}  // namespace braid
