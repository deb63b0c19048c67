#include <cmath>
#include <limits>

#include "support.h"

namespace braid {
namespace {

const double kNan = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

TEST(Cumsum, AddsAlongADim) {
  const TensorType x{kF32, {2, 3}};
  const Values v{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(computed_one({x}, "cumsum", along(1), {v}), (Values{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(computed_one({x}, "cumsum", along(-2), {v}), (Values{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(computed_one({{kF32, {2, 2, 2}}}, "cumsum", along(1), {{1, 2, 3, 4, 5, 6, 7, 8}}),
            (Values{1, 2, 4, 6, 5, 6, 12, 14}));
  // In bf16 steps 256 + 1 + 1 would stay 256.
  EXPECT_EQ(computed_one({{DType::kBF16, {3}}}, "cumsum", along(0), {{256, 1, 1}}),
            (Values{256, 256, 258}));
  const Values edges = computed_one({{kF32, {4}}}, "cumsum", along(0), {{1, kInf, -kInf, 1}});
  EXPECT_EQ(edges[1], kInf);
  EXPECT_TRUE(std::isnan(edges[2]));
  EXPECT_TRUE(std::isnan(edges[3]));
}

TEST(Cumsum, AddsIntegersAsI64) {
  EXPECT_EQ(inferred({{DType::kBool, {sym("T"), 3}}}, "cumsum", along(0)), "i64[T, 3]");
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 3}}}, "cumsum", along(0)), "bf16[T, 3]");
  EXPECT_EQ(computed_one({{DType::kU8, {3}}}, "cumsum", along(0), {{200, 100, 1}}),
            (Values{200, 300, 301}));
  EXPECT_EQ(computed_one({{DType::kBool, {3}}}, "cumsum", along(0), {{1, 0, 1}}),
            (Values{1, 1, 2}));
  EXPECT_EQ(computed_one({{kI64, {2}}}, "cumsum", along(0), {{0x1p62, 0x1p62}}),
            (Values{0x1p62, -0x1p63}));
  EXPECT_TRUE(is_error(refused({{DType::kF8E4M3, {2}}}, "cumsum", along(0)), "n/inputs/0",
                       "the operand of cumsum is f8e4m3[2]; expected a number"));
  EXPECT_TRUE(is_error(refused({{kF32, {2}}}, "cumsum", along(1)), "n/attrs/dim",
                       "expected an integer from -1 to 0"));
}

Attrs first(std::int64_t k, std::int64_t dim = -1, bool largest = true) {
  return {{"k", k}, {"dim", dim}, {"largest", largest}};
}

TEST(TopK, TakesTheLargestOrTheLeast) {
  const TensorType x{kF32, {2, 4}};
  const Values v{1, 7, 3, 7, -1, -5, -2, -5};
  using All = std::vector<Values>;
  EXPECT_EQ(computed({x}, "topk", first(3), {{v}})[0],
            (All{{7, 7, 3, -1, -2, -5}, {1, 3, 2, 0, 2, 1}}))
      << "the first of equal ones first";
  EXPECT_EQ(computed({x}, "topk", first(2, -1, false), {{v}})[0],
            (All{{1, 3, -5, -5}, {0, 2, 1, 3}}));
  EXPECT_EQ(computed({x}, "topk", first(1, 0), {{v}})[0], (All{{1, 7, 3, 7}, {0, 0, 0, 0}}));
  const Values edges{kInf, kNan, -kInf, kNan};
  const auto largest = computed({{kF32, {4}}}, "topk", first(4), {{edges}})[0];
  EXPECT_EQ(largest[1], (Values{1, 3, 0, 2}));
  EXPECT_TRUE(std::isnan(largest[0][0]));
  EXPECT_EQ(computed({{kF32, {4}}}, "topk", first(4, 0, false), {{edges}})[0][1],
            (Values{2, 0, 1, 3}));
  EXPECT_EQ(computed({{kF32, {3}}}, "topk", first(3), {{{-0.0, 0.0, -1}}})[0][1], (Values{0, 1, 2}))
      << "zeros are equal";
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 64}}}, "topk", first(8)), "bf16[T, 8] i64[T, 8]");
}

TEST(TopK, RefusesMoreThanThereIs) {
  EXPECT_TRUE(is_error(refused({{kF32, {2, 4}}}, "topk", first(5)), "n/attrs/k",
                       "5 of 4 elements; expected 1 to 4"));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 4}}}, "topk", first(0)), "n/attrs/k", "expected 1 to"));
  EXPECT_TRUE(
      is_error(refused({{kF32, {sym("T")}}}, "topk", first(2)), "n/attrs/k", "2 of T elements"));
  EXPECT_TRUE(is_error(refused({{DType::kBool, {4}}}, "topk", first(1)), "n/inputs/0",
                       "expected a number"));
}

TEST(Sort, OrdersAllElements) {
  const TensorType x{DType::kI32, {2, 3}};
  const Values v{3, 1, 3, 2, 9, -4};
  using All = std::vector<Values>;
  EXPECT_EQ(computed({x}, "sort", {}, {{v}})[0], (All{{1, 3, 3, -4, 2, 9}, {1, 0, 2, 2, 0, 1}}));
  EXPECT_EQ(computed({x}, "sort", {{"descending", true}, {"dim", std::int64_t{0}}}, {{v}})[0],
            (All{{3, 9, 3, 2, 1, -4}, {0, 1, 0, 1, 0, 1}}));
  EXPECT_EQ(computed_one({x}, "argsort", {{"descending", true}}, {v}), (Values{0, 2, 1, 1, 0, 2}));
  EXPECT_EQ(inferred({{kF32, {sym("T")}}}, "argsort"), "i64[T]");
}

}  // namespace
}  // namespace braid
