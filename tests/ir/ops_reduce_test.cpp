#include <cmath>

#include "support.h"

namespace braid {
namespace {

using Ints = std::vector<std::int64_t>;
const TensorType kX{DType::kF32, {2, 3}};
const Values kValues = {1, 2, 3, 4, 5, 6};

TEST(Reduce, InfersTheShape) {
  const TensorType x{DType::kBF16, {sym("T"), 3, 4}};
  EXPECT_EQ(inferred({x}, "sum"), "bf16[]");
  EXPECT_EQ(inferred({x}, "sum", {{"dim", Ints{-1}}}), "bf16[T, 3]");
  EXPECT_EQ(inferred({x}, "amax", {{"dim", Ints{0, 2}}, {"keepdim", true}}), "bf16[1, 3, 1]");
  EXPECT_EQ(inferred({x}, "sum", {{"dim", std::int64_t{1}}}), "bf16[T, 4]");
}

TEST(Reduce, RefusesBadDims) {
  EXPECT_TRUE(is_error(refused({kX}, "sum", {{"dim", Ints{2}}}), "n/attrs/dim",
                       "expected an integer from -2 to 1"));
  EXPECT_TRUE(is_error(refused({kX}, "sum", {{"dim", Ints{1, -1}}}), "n/attrs/dim", "twice"));
  EXPECT_TRUE(is_error(refused({{DType::kI32, {2}}}, "mean"), "n/inputs/0", "expected f32"));
  EXPECT_TRUE(is_error(refused({{DType::kF8E4M3, {2}}}, "sum"), "n/inputs/0", "a number"));
  EXPECT_TRUE(is_error(refused({{DType::kBool, {2}}}, "amax"), "n/inputs/0", "expected a number"));
}

TEST(Sample, RefusesWhatDoesNotFit) {
  const Dim t = sym("T");
  const TensorType f{DType::kF32, {t}};
  const TensorType k{DType::kI32, {t}};
  EXPECT_EQ(inferred({{DType::kBF16, {t, 100}}, f, k, f, f, f}, "sample"), "i64[T]");
  EXPECT_TRUE(is_error(refused({{DType::kI32, {t, 100}}, f, k, f, f, f}, "sample"), "n/inputs/0",
                       "sample"));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {t, 100}}, f, f, f, f, f}, "sample"), "n/inputs/2",
                       "the top_k of sample is f32[T]; expected i32[T]"));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {t, 100}}, f, k, f, f, {DType::kF32, {2}}}, "sample"),
                       "n/inputs/5", "the random of sample is f32[2]; expected f32[T]"));
}

TEST(Reduce, HasNoExtremeOfNothing) {
  const TensorType x{DType::kF32, {4, sym("T") - 1}};
  for (const char* op : {"amax", "amin", "argmax", "argmin"}) {
    EXPECT_EQ(refused({x}, op, {{"dim", Ints{0}}}), "no error");
    EXPECT_TRUE(is_error(refused({x}, op, {{"dim", Ints{1}}}), "n/inputs/0",
                         "over dim 1 of f32[4, T-1], which can be empty"));
  }
  EXPECT_EQ(inferred({x}, "sum", {{"dim", Ints{1}}}), "f32[4]");
}

TEST(Reduce, Evaluates) {
  EXPECT_EQ(computed_one({kX}, "sum", {}, {kValues}), Values{21});
  EXPECT_EQ(computed_one({kX}, "sum", {{"dim", Ints{0}}}, {kValues}), (Values{5, 7, 9}));
  EXPECT_EQ(computed_one({kX}, "sum", {{"dim", Ints{1}}, {"keepdim", true}}, {kValues}),
            (Values{6, 15}));
  EXPECT_EQ(computed_one({kX}, "amax", {{"dim", Ints{-1}}}, {{-1, -2, -3, 4, 9, 6}}),
            (Values{-1, 9}));
  const TensorType cube{DType::kF32, {2, 2, 2}};
  EXPECT_EQ(computed_one({cube}, "sum", {{"dim", Ints{0, 2}}}, {{1, 2, 3, 4, 5, 6, 7, 8}}),
            (Values{14, 22}));
}

// Like PyTorch: in i64, which wraps around.
TEST(Reduce, AddsAndMultipliesIntegersAsI64) {
  const auto one = [](const char* op, DType dtype, const Values& x) {
    return computed_one({{dtype, {static_cast<std::int64_t>(x.size())}}}, op, {}, {x});
  };
  EXPECT_EQ(inferred({{DType::kU8, {2, 3}}}, "sum", {{"dim", Ints{0}}}), "i64[3]");
  EXPECT_EQ(inferred({{DType::kBool, {2}}}, "prod"), "i64[]");
  EXPECT_EQ(inferred({{DType::kBF16, {2, 3}}}, "prod", {{"dim", Ints{1}}}), "bf16[2]");
  EXPECT_EQ(one("sum", DType::kU8, {200, 100}), Values{300});
  EXPECT_EQ(one("sum", DType::kBool, {1, 0, 1}), Values{2});
  EXPECT_EQ(one("prod", DType::kI32, {65536, 65536, 3}), Values{12884901888});
  EXPECT_EQ(one("prod", DType::kI64, {0x1p40, 0x1p40, 3}), Values{0});
  EXPECT_EQ(one("sum", DType::kI64, {0x1p62, 0x1p62}), Values{-0x1p63});
  EXPECT_EQ(one("prod", DType::kF32, {2, -0.5, 3}), Values{-3});
}

TEST(Reduce, AccumulatesWiderThanTheDtype) {
  // In bf16 steps 256 + 1 + 1 would stay 256.
  EXPECT_EQ(computed_one({{DType::kBF16, {3}}}, "sum", {}, {{256, 1, 1}}), Values{258});
}

TEST(Reduce, NanWinsAmax) {
  EXPECT_TRUE(
      std::isnan(computed_one({{DType::kF32, {3}}}, "amax", {}, {{1, std::nan(""), 3}})[0]));
}

TEST(Reduce, MeanMinimumAndIndex) {
  const TensorType x{DType::kF32, {2, 3}};
  const Values v{1, 5, 3, 4, 2, 4};
  const Attrs rows{{"dim", std::vector<std::int64_t>{1}}};
  EXPECT_EQ(computed_one({x}, "mean", rows, {v}), (Values{3, round_to(DType::kF32, 10.0 / 3)}));
  EXPECT_EQ(computed_one({x}, "amin", rows, {v}), (Values{1, 2}));
  EXPECT_EQ(computed_one({x}, "argmax", rows, {v}), (Values{1, 0}));
  EXPECT_EQ(computed_one({x}, "argmax", {}, {v}), (Values{1}));
  EXPECT_EQ(computed_one({x}, "argmax", rows, {{1, std::nan(""), 9, 1, 2, 3}}), (Values{1, 2}));
  EXPECT_EQ(inferred({x}, "argmax", rows), "i64[2]");
  EXPECT_TRUE(is_error(refused({x}, "argmax", {{"dim", std::vector<std::int64_t>{0, 1}}}),
                       "n/attrs/dim", "expected one"));
}

TEST(Reduce, AnyAndAllAreTruths) {
  const TensorType x{DType::kF32, {2, 3}};
  const Values v{0, 2, 0, 0, 0, 0};
  EXPECT_EQ(computed_one({x}, "any", {{"dim", Ints{1}}}, {v}), (Values{1, 0}));
  EXPECT_EQ(computed_one({x}, "any", {{"dim", Ints{0}}}, {v}), (Values{0, 1, 0}));
  EXPECT_EQ(computed_one({x}, "all", {{"dim", Ints{1}}}, {{1, -2, 0.5, 1, 0, 1}}), (Values{1, 0}));
  EXPECT_EQ(computed_one({x}, "all", {}, {{1, 1, 1, 1, 1, 1}}), Values{1});
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 3}}}, "any", {{"dim", Ints{1}}}), "bool[T]");
  EXPECT_EQ(inferred({{DType::kBool, {sym("T"), 3}}}, "all", {{"keepdim", true}}), "bool[1, 1]");
  EXPECT_EQ(inferred({{DType::kU8, {3}}}, "all"), "u8[]");
  EXPECT_TRUE(is_error(refused({{DType::kF8E4M3, {2}}}, "any"), "n/inputs/0", "a number"));
}

TEST(Reduce, TheIndexOfTheLeast) {
  const TensorType x{DType::kF32, {2, 3}};
  EXPECT_EQ(computed_one({x}, "argmin", {{"dim", Ints{1}}}, {{1, 5, 1, 4, 2, 2}}), (Values{0, 1}));
  EXPECT_EQ(computed_one({x}, "argmin", {{"dim", Ints{0}}}, {{1, 5, 1, 4, 2, 1}}),
            (Values{0, 1, 0}));
  EXPECT_EQ(inferred({x}, "argmin", {{"dim", Ints{1}}}), "i64[2]");
  EXPECT_TRUE(is_error(refused({x}, "argmin", {{"dim", Ints{0, 1}}}), "n/attrs/dim",
                       "argmin over several dims; expected one"));
}

}  // namespace
}  // namespace braid
