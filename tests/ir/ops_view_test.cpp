#include "support.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32;

Attrs shape(Shape value) { return {{"shape", std::move(value)}}; }
Attrs dims(std::int64_t a, std::int64_t b) { return {{"dim0", a}, {"dim1", b}}; }

TEST(View, InfersTheShape) {
  const Dim t = sym("T");
  const TensorType x{kF32, {t, 32, 64}};
  EXPECT_EQ(inferred({x}, "view", shape({t, 2048})), "f32[T, 2048]");
  EXPECT_EQ(inferred({x}, "view", shape({-1, 2048})), "f32[T, 2048]");
  EXPECT_EQ(inferred({x}, "view", shape({t, -1, 32})), "f32[T, 64, 32]");
  EXPECT_EQ(inferred({x}, "view", shape({-1, 512})), "f32[4*T, 512]");
}

TEST(View, RefusesOtherNumbersOfElements) {
  const Dim t = sym("T");
  const TensorType x{kF32, {t, 32}};
  EXPECT_TRUE(is_error(refused({x}, "view", shape({t, 16})), "n/attrs/shape",
                       "f32[T, 32] cannot be viewed as f32[T, 16]"));
  EXPECT_TRUE(is_error(refused({x}, "view", shape({-1, 7})), "n/attrs/shape", "cannot be viewed"));
  EXPECT_TRUE(is_error(refused({x}, "view", shape({-1, -1})), "n/attrs/shape", "at most one"));
  EXPECT_TRUE(
      is_error(refused({x}, "view", shape({-2, t * -16})), "n/attrs/shape/0", "at least 1"));
  EXPECT_TRUE(is_error(refused({x}, "view", shape({sym("U"), 32})), "n/attrs/shape/0",
                       "unknown symbol \"U\""));
}

TEST(View, KeepsTheOrder) {
  EXPECT_EQ(computed_one({{kF32, {2, 3}}}, "view", shape({3, -1}), {{1, 2, 3, 4, 5, 6}}),
            (Values{1, 2, 3, 4, 5, 6}));
}

TEST(Transpose, InfersAndEvaluates) {
  EXPECT_EQ(inferred({{kF32, {sym("T"), 3, 4}}}, "transpose", dims(0, -1)), "f32[4, 3, T]");
  EXPECT_EQ(computed_one({{kF32, {2, 3}}}, "transpose", dims(0, 1), {{1, 2, 3, 4, 5, 6}}),
            (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(computed_one({{kF32, {2, 2, 2}}}, "transpose", dims(-1, 0), {{0, 1, 2, 3, 4, 5, 6, 7}}),
            (Values{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(computed_one({{kF32, {2, 1}}}, "transpose", dims(1, 1), {{3, 4}}), (Values{3, 4}));
}

TEST(Transpose, RefusesBadDims) {
  EXPECT_TRUE(is_error(refused({{kF32, {2, 3}}}, "transpose", dims(0, 2)), "n/attrs/dim1",
                       "expected [-2, 2)"));
  EXPECT_TRUE(is_error(refused({{kF32, {2, 3}}}, "transpose", dims(-3, 0)), "n/attrs/dim0",
                       "out of range"));
}

}  // namespace
}  // namespace braid
