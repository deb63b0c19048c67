#include "support.h"

namespace braid {
namespace {

Attrs range(AttrValue start, AttrValue end, std::int64_t step = 1, DType dtype = kI64) {
  return {{"start", std::move(start)}, {"end", std::move(end)}, {"step", step}, {"dtype", dtype}};
}
AttrValue text(const char* dim) { return std::string(dim); }
AttrValue number(std::int64_t value) { return value; }

TEST(Bincount, CountsIntegers) {
  const Attrs three{{"minlength", std::int64_t{3}}};
  EXPECT_EQ(computed_one({{kI64, {6}}}, "bincount", three, {{2, 0, 2, -1, 3, 2}}),
            (Values{1, 0, 3}));
  EXPECT_EQ(inferred({{DType::kU8, {sym("T")}}}, "bincount", three), "i64[3]");
  EXPECT_TRUE(is_error(refused({{kF32, {4}}}, "bincount", three), "n/inputs/0",
                       "the operand of bincount is f32[4]; expected integers in one dim"));
  EXPECT_TRUE(is_error(refused({{kI64, {4}}}, "bincount", {{"minlength", std::int64_t{0}}}),
                       "n/attrs/minlength", "found 0; expected at least 1"));
}

TEST(Histc, CountsFloatsInEqualBins) {
  const auto of = [](std::int64_t bins, double low, double high) {
    return Attrs{{"bins", bins}, {"min", low}, {"max", high}};
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(computed_one({{kF32, {2, 5}}}, "histc", of(4, -1, 1),
                         {{-1, -0.75, -0.5, 0.25, 1, 1.0001, -1.0001, nan, inf, -inf}}),
            (Values{2, 1, 1, 1}));
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 2}}}, "histc", of(5, 0, 1)), "bf16[5]");
  EXPECT_TRUE(is_error(refused({{kI64, {4}}}, "histc", of(4, 0, 1)), "n/inputs/0", "histc"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}}, "histc", of(0, 0, 1)), "n/attrs/bins",
                       "found 0; expected at least 1"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}}, "histc", of(4, 0, 0)), "n/attrs/max",
                       "the range of histc is 0 to 0"));
}

TEST(Arange, CountsFromStartToEnd) {
  EXPECT_EQ(computed_one({}, "arange", {{"end", std::int64_t{4}}}, {}), (Values{0, 1, 2, 3}));
  EXPECT_EQ(computed_one({}, "arange", range(number(2), number(9), 3), {}), (Values{2, 5, 8}));
  EXPECT_EQ(computed_one({}, "arange", range(number(3), number(-4), -2), {}),
            (Values{3, 1, -1, -3}));
  EXPECT_EQ(computed_one({}, "arange", range(number(254), number(258), 1, DType::kU8), {}),
            (Values{254, 255, 0, 1}));
  // Floats are rounded once.
  const std::int64_t odd = (std::int64_t{1} << 24) + 1;
  EXPECT_EQ(computed_one({}, "arange", range(odd, odd + 2, 1, kF32), {}),
            (Values{16777216, 16777218}));
}

TEST(Arange, ReachesOverSymbols) {
  EXPECT_EQ(inferred({}, "arange", {{"end", text("T")}}), "i64[T]");
  EXPECT_EQ(inferred({}, "arange", range(text("T"), text("2*T+3"), 1, kF32)), "f32[T+3]");
  EXPECT_EQ(inferred({}, "arange", range(number(0), text("4*T"), 2)), "i64[2*T]");
  EXPECT_EQ(inferred({}, "arange", range(text("T"), number(0), -1)), "i64[T]");
  EXPECT_TRUE(is_error(refused({}, "arange", range(number(0), text("T"), 2)), "n/attrs/step",
                       "how many steps of 2 lie between 0 and T is no affine expression"));
  EXPECT_TRUE(is_error(refused({}, "arange", range(number(2), text("T"))), "n/attrs/end",
                       "there can be -1 numbers from 2 to T by 1; expected at least 0"));
  EXPECT_TRUE(
      is_error(refused({}, "arange", range(number(0), number(3), 0)), "n/attrs/step", "found 0"));
  EXPECT_TRUE(is_error(refused({}, "arange", range(number(0), number(3), 1, DType::kBool)),
                       "n/attrs/dtype", "bool; expected f32"));
  EXPECT_TRUE(is_error(refused({}, "arange"), "n/attrs/end", "missing"));
}

TEST(FullLike, HasTheOperandsShape) {
  const TensorType x{DType::kBF16, {sym("T"), 2}}, two{kF32, {2}};
  EXPECT_EQ(inferred({x}, "full_like", {{"fill_value", 0.5}}), "bf16[T, 2]");
  EXPECT_EQ(inferred({x}, "zeros_like", {{"dtype", kI64}}), "i64[T, 2]");
  EXPECT_EQ(computed_one({two}, "full_like", {{"fill_value", 0.5}}, {{7, 8}}), (Values{0.5, 0.5}));
  EXPECT_EQ(
      computed_one({two}, "full_like", {{"fill_value", 2.0}, {"dtype", DType::kBool}}, {{7, 8}}),
      (Values{1, 1}));
  EXPECT_EQ(computed_one({two}, "zeros_like", {}, {{7, 8}}), (Values{0, 0}));
  EXPECT_EQ(computed_one({two}, "ones_like", {{"dtype", DType::kI32}}, {{7, 8}}), (Values{1, 1}));
  EXPECT_TRUE(is_error(refused({x}, "full_like", {{"fill_value", 1e39}}), "n/attrs/fill_value",
                       "1e+39 is no value of bf16"));
}

TEST(OneHot, IsOneAtItsClass) {
  EXPECT_EQ(computed_one({{kI64, {3}}}, "one_hot", {{"num_classes", std::int64_t{3}}}, {{1, 0, 2}}),
            (Values{0, 1, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(
      computed_one({{DType::kI32, {2}}}, "one_hot", {{"num_classes", std::int64_t{2}}}, {{2, -1}}),
      (Values{0, 0, 0, 0}))
      << "no class";
  EXPECT_EQ(inferred({{kI64, {sym("T"), 2}}}, "one_hot", {{"num_classes", std::int64_t{5}}}),
            "i64[T, 2, 5]");
  EXPECT_TRUE(is_error(refused({{kI64, {2}}}, "one_hot", {{"num_classes", std::int64_t{-1}}}),
                       "n/attrs/num_classes", "found -1; expected at least 1"));
  EXPECT_TRUE(is_error(refused({{kF32, {2}}}, "one_hot", {{"num_classes", std::int64_t{2}}}),
                       "n/inputs/0", "expected i32 or i64"));
}

}  // namespace
}  // namespace braid
