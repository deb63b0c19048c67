#include <cmath>

#include "support.h"

namespace braid {
namespace {

const Attrs kEps = {{"eps", 0.5}};

TEST(Norm, InfersTheOperandsType) {
  const TensorType x{DType::kBF16, {sym("T"), 8}};
  const TensorType w{DType::kBF16, {8}};
  EXPECT_EQ(inferred({x, w}, "rms_norm", kEps), "bf16[T, 8]");
  EXPECT_EQ(inferred({x}, "rms_norm", kEps), "bf16[T, 8]");
  EXPECT_EQ(inferred({x, x, w}, "add_rms_norm2", kEps), "bf16[T, 8] bf16[T, 8]");
}

TEST(Norm, RefusesBadOperands) {
  const TensorType x{DType::kBF16, {4, 8}};
  const TensorType w{DType::kBF16, {8}};
  EXPECT_TRUE(is_error(refused({x, {DType::kBF16, {4}}}, "rms_norm", kEps), "n/inputs/1",
                       "the weight of rms_norm is bf16[4]; expected bf16[8]"));
  EXPECT_TRUE(
      is_error(refused({x, {DType::kF32, {8}}}, "rms_norm", kEps), "n/inputs/1", "one dtype"));
  EXPECT_TRUE(
      is_error(refused({{DType::kF32, {}}}, "rms_norm", kEps), "n/inputs/0", "at least one dim"));
  EXPECT_TRUE(is_error(refused({x, w}, "rms_norm"), "n/attrs/eps", "missing"));
  EXPECT_TRUE(is_error(refused({x, {DType::kBF16, {1, 8}}, w}, "add_rms_norm2", kEps), "n/inputs/1",
                       "the residual of add_rms_norm2 is bf16[1, 8]; expected bf16[4, 8]"));
  EXPECT_TRUE(is_error(refused({x, x, x}, "add_rms_norm2", kEps), "n/inputs/2", "weight"));
}

TEST(Norm, EvaluatesRmsNorm) {
  const TensorType x{DType::kF32, {2, 2}};
  const Values scaled =
      computed_one({x, {DType::kF32, {2}}}, "rms_norm", kEps, {{1, 7, 0, 1}, {2, 1}});
  const double first = 1 / std::sqrt(25.5);
  const double second = 1 / std::sqrt(1.0);
  const Values expected = {2 * first, 7 * first, 0, second};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(scaled[i], round_to(DType::kF32, expected[i]));
  const Values plain = computed_one({x}, "rms_norm", kEps, {{1, 7, 0, 1}});
  EXPECT_EQ(plain[0], round_to(DType::kF32, first));
}

TEST(Norm, AddRmsNorm2EqualsAddThenRmsNorm) {
  const TensorType x{DType::kBF16, {1, 3}};
  const TensorType w{DType::kBF16, {3}};
  const Values a = {256, 0.3, -5};
  const Values b = {1, 0.007, 2.1};  // 256 + 1 is not a bf16: the norm must see 256
  const Values weight = {1, 1.5, 0.25};
  const Attrs eps = {{"eps", 1e-5}};
  const auto fused = computed({x, x, w}, "add_rms_norm2", eps, {{a, b, weight}})[0];
  const Values sum = computed_one({x, x}, "add", {}, {a, b});
  EXPECT_EQ(sum[0], 256);
  EXPECT_EQ(fused[1], sum);
  EXPECT_EQ(fused[0], computed_one({x, w}, "rms_norm", eps, {sum, weight}));
}

TEST(Softmax, SumsToOne) {
  const Values y = computed_one({{DType::kF32, {2, 2}}}, "softmax", {}, {{0, 0, 1000, 1000}});
  EXPECT_EQ(y, (Values{0.5, 0.5, 0.5, 0.5}));
  const Values columns = computed_one({{DType::kF32, {3, 2}}}, "softmax",
                                      {{"dim", std::int64_t{-2}}}, {{0, 1, 0, -1, 0, 1}});
  for (const std::size_t i : {0U, 2U, 4U}) EXPECT_EQ(columns[i], round_to(DType::kF32, 1.0 / 3));
  EXPECT_EQ(columns[1], round_to(DType::kF32, 1 / (2 + std::exp(-2))));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {2, 2}}}, "softmax", {{"dim", std::int64_t{2}}}),
                       "n/attrs/dim", "expected an integer from -2 to 1"));
}

TEST(LayerNorm, CentresAndScales) {
  const TensorType row{DType::kF32, {1, 2}}, weight{DType::kF32, {2}};
  EXPECT_EQ(
      computed_one({row, weight, weight}, "layer_norm", {{"eps", 0.0}}, {{1, 3}, {2, 4}, {10, 20}}),
      (Values{8, 24}));
  EXPECT_TRUE(is_error(refused({row, {DType::kF32, {3}}}, "layer_norm", {{"eps", 0.0}}),
                       "n/inputs/1", "expected f32[2]"));
}

TEST(AddRmsNorm, GivesTheNormAlone) {
  const TensorType row{DType::kF32, {1, 2}};
  EXPECT_EQ(computed_one({row, row, {DType::kF32, {2}}}, "add_rms_norm", {{"eps", 0.0}},
                         {{1, 2}, {2, 1}, {1, 2}}),
            (Values{1, 2}));
}

TEST(LogSoftmax, IsTheLogarithmAlongAnyDim) {
  const TensorType x{DType::kF32, {2, 2}};
  const auto rounded = [](double value) { return round_to(DType::kF32, value); };
  const double low = rounded(-std::log1p(std::exp(2.0))),
               high = rounded(2 - std::log1p(std::exp(2.0)));
  EXPECT_EQ(computed_one({x}, "log_softmax", {}, {{1, 3, 5, 3}}), (Values{low, high, high, low}));
  EXPECT_EQ(computed_one({x}, "log_softmax", {{"dim", std::int64_t{0}}}, {{1, 5, 3, 3}}),
            (Values{low, high, high, low}));
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 8}}}, "log_softmax"), "bf16[T, 8]");
  EXPECT_TRUE(is_error(refused({{DType::kI32, {2}}}, "log_softmax"), "n/inputs/0",
                       "the operand of log_softmax is i32[2]"));
  EXPECT_TRUE(is_error(refused({x}, "log_softmax", {{"dim", std::int64_t{2}}}), "n/attrs/dim",
                       "out of range"));
}

}  // namespace
}  // namespace braid
