#include <cmath>
#include <limits>

#include "support.h"

namespace braid {
namespace {

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

constexpr const char* kPaged = "paged_attention";

/// T tokens of 4 heads, 5 pages of 16 keys with 2 heads, 3 sequences with at most 2 pages each.
std::vector<TensorType> paged_types() {
  const TensorType cache{kF32, {5, 16, 2, 8}};
  return {{kF32, {sym("T"), 4, 8}}, cache, cache, {DType::kI32, {3, 2}}, {DType::kI32, {3}},
          {DType::kI32, {4}}};
}

TEST(PagedAttention, InfersTypes) {
  std::vector<TensorType> types = paged_types();
  types[2].shape[3] = 24;
  EXPECT_EQ(inferred(types, kPaged), "f32[T, 4, 24]");
}

TEST(PagedAttention, RefusesWhatDoesNotFit) {
  const auto with = [](std::size_t input, TensorType type) {
    std::vector<TensorType> types = paged_types();
    types[input] = std::move(type);
    return refused(types, kPaged);
  };
  EXPECT_TRUE(is_error(with(0, {kF32, {4, 8}}), "n", "expected [T, H, E]"));
  EXPECT_TRUE(is_error(with(0, {kF32, {9, 3, 8}}), "n", "heads that divide H"));
  EXPECT_TRUE(is_error(with(2, {kF32, {5, 32, 2, 8}}), "n", "expected [T, H, E]"));
  EXPECT_TRUE(is_error(with(3, {DType::kI64, {3, 2}}), "n/inputs/3", "expected i32 of two dims"));
  EXPECT_TRUE(is_error(with(4, {DType::kI32, {2}}), "n/inputs/4", "expected i32[3]"));
  EXPECT_TRUE(is_error(with(5, {DType::kI32, {3}}), "n/inputs/5", "expected i32[4]"));
  std::vector<TensorType> types = paged_types();
  types.push_back({kF32, {2}});
  EXPECT_TRUE(is_error(refused(types, kPaged), "n/inputs/6", "expected f32[4] or f32"));
  types.pop_back();
  types.insert(types.end(), 2, {kF32, {}});
  EXPECT_TRUE(is_error(refused(types, kPaged), "n", "f32[5, 16, 2, 8], with scales; expected"));
  types[1].dtype = types[2].dtype = DType::kF8E4M3;
  EXPECT_EQ(refused(types, kPaged), "no error");
  types[2].dtype = DType::kF8E5M2;
  EXPECT_TRUE(is_error(refused(types, kPaged), "n", "expected keys and values of f8e4m3 or"));
  types[2].dtype = DType::kF8E4M3;
  types[7] = {kF32, {4}};
  EXPECT_TRUE(is_error(refused(types, kPaged), "n/inputs/7", "f32[4]; expected f32[]"));
  types.resize(6);
  EXPECT_TRUE(is_error(refused(types, kPaged), "n", "8-bit floats have two scales"));
  types[1].dtype = types[2].dtype = kF32;
  types[1].shape[1] = types[2].shape[1] = 24;
  EXPECT_TRUE(is_error(refused(types, kPaged), "n/inputs/1", "expected pages of 16, 32"));
  const auto with_attrs = [](Attrs attrs) {
    return refused(paged_types(), kPaged, std::move(attrs));
  };
  EXPECT_TRUE(is_error(with_attrs({{"scale", -1.0}}), "n/attrs/scale", "above 0"));
  EXPECT_TRUE(is_error(with_attrs({{"softcap", 0.0}}), "n/attrs/softcap", "above 0"));
  EXPECT_TRUE(is_error(with_attrs({{"window", std::int64_t{0}}}), "n/attrs/window", "at least 1"));
  EXPECT_TRUE(is_error(with_attrs({{"window", std::int64_t{3}}, {"causal", false}}),
                       "n/attrs/window", "without causal"));
}

/// Heads of one element: a sequence with one query of 17 keys, and one with two queries of 2 keys.
/// Key and value of position p are p, but for p = 16 of the first.
Values paged(Attrs attrs, bool has_sink = false, const Values& scales = {}) {
  attrs.emplace("scale", std::log(2.0));
  const TensorType cache{scales.empty() ? kF32 : DType::kF8E4M3, {4, 16, 1, 1}};
  Values pages(64, 100);  // those of pages that nobody has would show
  for (std::size_t p = 0; p < 16; ++p) pages[48 + p] = 0;
  pages[16] = 5;               // the first's position 16
  pages[0] = 1, pages[1] = 2;  // the second's
  std::vector<TensorType> types{
      {kF32, {3, 1, 1}}, cache, cache, {DType::kI32, {2, 2}}, {DType::kI32, {2}},
      {DType::kI32, {3}}};
  std::vector<Values> values{{0, 1, 1}, pages, pages, {3, 1, 0, -1}, {17, 2}, {0, 1, 3}};
  if (has_sink) {
    types.push_back({kF32, {1}});
    values.push_back({std::log(4.0)});
  }
  for (const double scale : scales) {
    types.push_back({kF32, {}});
    values.push_back({scale});
  }
  Values result = computed_one(types, kPaged, std::move(attrs), values);
  for (double& x : result) x = std::round(x * 1e6) / 1e6;
  return result;
}

TEST(PagedAttention, TokensSeeTheKeysOfTheirSequence) {
  const double whole = std::round(10.0 / 6 * 1e6) / 1e6;  // weights 2 and 4
  EXPECT_EQ(paged({}), (Values{std::round(5.0 / 17 * 1e6) / 1e6, 1, whole}));
  EXPECT_EQ(paged({{"causal", false}}), (Values{std::round(5.0 / 17 * 1e6) / 1e6, whole, whole}));
  EXPECT_EQ(paged({{"window", std::int64_t{1}}}), (Values{5, 1, 2}));
  // A sink of weight 4.
  EXPECT_EQ(paged({{"window", std::int64_t{1}}}, true),
            (Values{1, std::round(2.0 / 6 * 1e6) / 1e6, 1}));
}

TEST(PagedAttention, CachesOf8BitsAreMultipliedByTheirScales) {
  // Scores of 2 and 4, so weights 4 and 16, and values 0.5 and 1.
  EXPECT_EQ(paged({{"causal", false}}, false, {2, 0.5})[1], 18.0 / 20);
  EXPECT_EQ(paged({{"window", std::int64_t{1}}}, true, {2, 0.5}),
            (Values{0.5, 0.25, std::round(16.0 / 20 * 1e6) / 1e6}));
}

}  // namespace
}  // namespace braid
