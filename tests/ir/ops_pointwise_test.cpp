#include <cmath>

#include "support.h"

namespace braid {
namespace {

TEST(Pointwise, BroadcastsSymbolicShapes) {
  const Dim t = sym("T");
  EXPECT_EQ(inferred({{kBF16, {t, 8}}, {kBF16, {8}}}, "add"), "bf16[T, 8]");
  EXPECT_EQ(inferred({{kBF16, {t, 1}}, {kBF16, {1, 8}}}, "mul"), "bf16[T, 8]");
  EXPECT_EQ(inferred({{kBF16, {}}, {kBF16, {3, t * 2}}}, "sub"), "bf16[3, 2*T]");
  EXPECT_EQ(inferred({{DType::kI32, {t}}}, "neg"), "i32[T]");
}

TEST(Pointwise, RefusesBadOperands) {
  const Dim t = sym("T");
  EXPECT_TRUE(is_error(refused({{kBF16, {t, 8}}, {kBF16, {sym("S"), 8}}}, "add"), "n/inputs/1",
                       "T and S do not broadcast"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}, {kF32, {2}}}, "add"), "n/inputs/1", "f32[4], f32[2]"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}, {kBF16, {4}}}, "add"), "n/inputs/1", "insert `to`"));
  for (const char* op : {"exp", "silu", "gelu", "rsqrt"}) {
    EXPECT_TRUE(is_error(refused({{DType::kI32, {4}}}, op), "n/inputs/0", "i32[4]; expected f32"))
        << op;
  }
  EXPECT_TRUE(is_error(refused({{DType::kI32, {4}}, {DType::kI32, {4}}}, "div"), "n/inputs/0",
                       "expected f32"));
  EXPECT_TRUE(is_error(refused({{DType::kBool, {4}}}, "neg"), "n/inputs/0", "expected a number"));
  EXPECT_TRUE(
      is_error(refused({{kF32, {4}}}, "add"), "n/inputs", "1 operands for add; expected 2"));
}

TEST(Pointwise, EvaluatesEachOp) {
  const TensorType two{kF32, {2}};
  EXPECT_EQ(computed_one({two, two}, "add", {}, {{1, 2}, {10, 20}}), (Values{11, 22}));
  EXPECT_EQ(computed_one({two, two}, "sub", {}, {{1, 2}, {10, 20}}), (Values{-9, -18}));
  EXPECT_EQ(computed_one({two, two}, "mul", {}, {{1, 2}, {10, 20}}), (Values{10, 40}));
  EXPECT_EQ(computed_one({two, two}, "div", {}, {{1, 3}, {4, 2}}), (Values{0.25, 1.5}));
  EXPECT_EQ(computed_one({two}, "neg", {}, {{1, -2}}), (Values{-1, 2}));
  EXPECT_EQ(computed_one({two}, "relu", {}, {{1, -2}}), (Values{1, 0}));
  EXPECT_EQ(computed_one({two}, "rsqrt", {}, {{4, 16}}), (Values{0.5, 0.25}));
  EXPECT_EQ(computed_one({two}, "exp", {}, {{0, 1}}), (Values{1, round_to(kF32, std::exp(1.0))}));
  EXPECT_EQ(computed_one({two}, "silu", {}, {{0, 1}}),
            (Values{0, round_to(kF32, 0.7310585786300049)}));
  EXPECT_EQ(computed_one({two}, "gelu", {}, {{0, 1}}),
            (Values{0, round_to(kF32, 0.8413447460685429)}));
}

TEST(Pointwise, SoftplusIsTheElementAboveItsThreshold) {
  const TensorType x{kF32, {4}};
  const Values in{0, -40, 20.5, 3};
  EXPECT_EQ(computed_one({x}, "softplus", {}, {in}),
            (Values{round_to(kF32, std::log(2.0)), round_to(kF32, std::exp(-40.0)), 20.5,
                    round_to(kF32, std::log1p(std::exp(3.0)))}));
  EXPECT_EQ(
      computed_one({x}, "softplus", {{"beta", 2.0}, {"threshold", 5.0}}, {in}),
      (Values{round_to(kF32, std::log(2.0) / 2), round_to(kF32, std::exp(-80.0) / 2), 20.5, 3}));
}

TEST(Pointwise, EvaluatesBroadcasts) {
  EXPECT_EQ(computed_one({{kF32, {2, 1}}, {kF32, {3}}}, "add", {}, {{10, 20}, {1, 2, 3}}),
            (Values{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(
      computed_one({{kF32, {2, 1, 2}}, {kF32, {1, 2, 1}}}, "mul", {}, {{1, 2, 3, 4}, {1, 10}}),
      (Values{1, 2, 10, 20, 3, 4, 30, 40}));
  EXPECT_EQ(computed_one({{kF32, {}}, {kF32, {2}}}, "sub", {}, {{1}, {1, 5}}), (Values{0, -4}));
}

TEST(Pointwise, RoundsOnceToTheDtype) {
  EXPECT_EQ(computed_one({{kBF16, {1}}, {kBF16, {1}}}, "add", {}, {{256}, {1}}), Values{256});
  EXPECT_EQ(computed_one({{DType::kU8, {1}}, {DType::kU8, {1}}}, "add", {}, {{200}, {100}}),
            Values{44});
}

TEST(Pointwise, CastsAndCopies) {
  EXPECT_EQ(inferred({{kF32, {sym("T")}}}, "to", {{"dtype", DType::kI32}}), "i32[T]");
  EXPECT_EQ(computed_one({{kF32, {2}}}, "to", {{"dtype", DType::kI32}}, {{2.7, -2.7}}),
            (Values{2, -2}));
  EXPECT_EQ(computed_one({{kF32, {1}}}, "to", {{"dtype", kBF16}}, {{1.001}}), Values{1});
  EXPECT_EQ(computed_one({{DType::kBool, {2}}}, "copy", {}, {{1, 0}}), (Values{1, 0}));
  EXPECT_TRUE(is_error(refused({{kF32, {1}}}, "to"), "n/attrs/dtype", "missing"));
}

TEST(Pointwise, EvaluatesTheWiderSet) {
  const double nan = std::nan("");
  const TensorType three{kF32, {3}};
  EXPECT_EQ(computed_one({three}, "round", {}, {{0.5, 1.5, -2.5}}), (Values{0, 2, -2}));
  EXPECT_EQ(computed_one({three}, "floor", {}, {{0.5, -0.5, 2}}), (Values{0, -1, 2}));
  EXPECT_EQ(computed_one({three, three}, "minimum", {}, {{1, 5, -1}, {2, 3, -1}}),
            (Values{1, 3, -1}));
  EXPECT_EQ(computed_one({three}, "clamp", {{"min", -1.0}, {"max", 1.0}}, {{-5, 0.5, 5}}),
            (Values{-1, 0.5, 1}));
  EXPECT_EQ(computed_one({three, three}, "le", {}, {{1, 2, nan}, {1, 1, 1}}), (Values{1, 0, 0}));
  EXPECT_EQ(computed_one({three, three}, "ne", {}, {{1, 2, nan}, {1, 1, nan}}), (Values{0, 1, 1}));
  EXPECT_EQ(computed_one({three, three}, "logical_and", {}, {{1, 0, 3}, {2, 1, 0}}),
            (Values{1, 0, 0}));
  EXPECT_EQ(computed_one({{DType::kBool, {3}}, three, {kF32, {1}}}, "where", {},
                         {{1, 0, 1}, {1, 2, 3}, {9}}),
            (Values{1, 9, 3}));
  EXPECT_EQ(computed_one({three}, "gelu", {{"approximate", std::string("tanh")}}, {{0, 1, -1}}),
            (Values{0, round_to(kF32, 0.84119199060827670), round_to(kF32, -0.15880800939172324)}));
}

TEST(Pointwise, RefusesWhatDoesNotFit) {
  const TensorType f32{kF32, {3}};
  EXPECT_TRUE(is_error(refused({f32}, "clamp"), "n/attrs", "expected min, max or both"));
  EXPECT_TRUE(is_error(refused({f32}, "gelu", {{"approximate", std::string("erf")}}),
                       "n/attrs/approximate", "expected one of \"none\", \"tanh\""));
  EXPECT_TRUE(is_error(refused({f32, f32, f32}, "where"), "n/inputs/0", "expected bool"));
  EXPECT_TRUE(is_error(refused({{DType::kBool, {3}}, f32, {kBF16, {3}}}, "where"), "n/inputs/2",
                       "expected one dtype"));
  EXPECT_TRUE(is_error(refused({{DType::kF8E4M3, {3}}}, "neg"), "n/inputs/0", "at least 16 bits"));
  EXPECT_EQ(inferred({f32, f32}, "lt"), "bool[3]");
  EXPECT_EQ(inferred({}, "full", {{"value", 1.0}, {"dtype", kBF16}, {"shape", Shape{sym("T")}}}),
            "bf16[T]");
}

TEST(Pointwise, IntegersHaveRemaindersAndBits) {
  const TensorType i32{DType::kI32, {5}}, u8{DType::kU8, {3}}, truth{DType::kBool, {4}};
  EXPECT_EQ(computed_one({i32, i32}, "remainder", {}, {{7, -7, 7, -7, 6}, {3, 3, -3, -3, 3}}),
            (Values{1, 2, -2, -1, 0}));
  EXPECT_EQ(computed_one({i32, i32}, "fmod", {}, {{7, -7, 7, -7, 6}, {3, 3, -3, -3, 3}}),
            (Values{1, -1, 1, -1, 0}));
  EXPECT_EQ(computed_one({i32, i32}, "bitwise_and", {}, {{12, -1, 5, -8, 0}, {10, 9, -2, -6, 3}}),
            (Values{8, 9, 4, -8, 0}));
  EXPECT_EQ(computed_one({i32, i32}, "bitwise_or", {}, {{12, -1, 5, -8, 0}, {10, 9, -2, -6, 3}}),
            (Values{14, -1, -1, -6, 3}));
  EXPECT_EQ(computed_one({i32, i32}, "bitwise_xor", {}, {{12, -1, 5, -8, 0}, {10, 9, -2, -6, 3}}),
            (Values{6, -10, -5, 2, 3}));
  EXPECT_EQ(computed_one({i32}, "bitwise_not", {}, {{0, -1, 5, -8, 1}}),
            (Values{-1, 0, -6, 7, -2}));
  EXPECT_EQ(computed_one({u8}, "bitwise_not", {}, {{0, 255, 5}}), (Values{255, 0, 250}));
  EXPECT_EQ(computed_one({i32}, "bitcast", {}, {{0, 0x3fc00000, 1 << 22, -(1LL << 30), 1}}),
            (Values{0, 1.5, 0x1p-127, -2, 0x1p-149}));
  EXPECT_EQ(inferred({i32}, "bitcast"), "f32[5]");
  EXPECT_TRUE(is_error(refused({{kF32, {4}}}, "bitcast"), "n/inputs/0",
                       "the operand of bitcast is f32[4]; expected i32"));
  EXPECT_EQ(computed_one({truth}, "bitwise_not", {}, {{0, 1, 0, 1}}), (Values{1, 0, 1, 0}));
  EXPECT_EQ(computed_one({truth, truth}, "bitwise_xor", {}, {{0, 0, 1, 1}, {0, 1, 0, 1}}),
            (Values{0, 1, 1, 0}));
  EXPECT_EQ(computed_one({truth, truth}, "logical_xor", {}, {{0, 0, 1, 1}, {0, 1, 0, 1}}),
            (Values{0, 1, 1, 0}));
  EXPECT_EQ(inferred({truth, truth}, "bitwise_and"), "bool[4]");
  EXPECT_TRUE(is_error(refused({{kF32, {4}}, {kF32, {4}}}, "bitwise_or"), "n/inputs/0",
                       "the operand of bitwise_or is f32[4]; expected i32, i64, i8, u8 or bool"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}}, "bitwise_not"), "n/inputs/0", "or bool"));
  EXPECT_TRUE(is_error(refused({{kF32, {4}}, {kF32, {4}}}, "remainder"), "n/inputs/0",
                       "expected i32, i64, i8 or u8"));
}

TEST(Pointwise, FillsWhereAMaskHolds) {
  const TensorType x{kBF16, {sym("T"), 3}}, mask{DType::kBool, {3}}, value{kBF16, {}};
  EXPECT_EQ(inferred({x, mask, value}, "masked_fill"), "bf16[T, 3]");
  EXPECT_EQ(inferred({{kBF16, {3}}, {DType::kBool, {2, 1}}, value}, "masked_fill"), "bf16[2, 3]");
  EXPECT_EQ(computed_one({{kF32, {2, 3}}, mask, {kF32, {}}}, "masked_fill", {},
                         {{1, 2, 3, 4, 5, 6}, {0, 1, 0}, {-9}}),
            (Values{1, -9, 3, 4, -9, 6}));
  EXPECT_EQ(computed_one({{DType::kI64, {3}}, mask, {DType::kI64, {}}}, "masked_fill", {},
                         {{1, 2, 3}, {1, 0, 1}, {7}}),
            (Values{7, 2, 7}));
  EXPECT_TRUE(is_error(refused({x, {kBF16, {3}}, value}, "masked_fill"), "n/inputs/1",
                       "the mask of masked_fill is bf16[3]; expected bool"));
  EXPECT_TRUE(is_error(refused({x, mask, {kBF16, {3}}}, "masked_fill"), "n/inputs/2",
                       "the value of masked_fill is bf16[3]; expected a number, or bf16[]"));
  EXPECT_TRUE(is_error(refused({x, mask, {kF32, {}}}, "masked_fill"), "n/inputs/2", "bf16[]"));
}

}  // namespace
}  // namespace braid
