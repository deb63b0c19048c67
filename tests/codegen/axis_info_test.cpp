#include "codegen/passes/axis_info.h"

#include <gtest/gtest.h>

#include "codegen/tile/builder.h"

namespace braid::tile {
namespace {

/// The width of an access at `offset` + [0, 64) under an optional bound.
class Access {
  Program program_;  // before what refers to it

 public:
  Builder b{program_};
  Id range = b.range(1, 64, 1);
  Id pointer = b.param({.kind = KernelParam::Kind::kInput, .index = 0, .expr = 0, .group = {}}, 16);
  Id unknown = b.param(
      {.kind = KernelParam::Kind::kScalar, .index = 0, .expr = Dim::symbol("N"), .group = {}}, 1);
  Id times_four = b.param(
      {.kind = KernelParam::Kind::kScalar, .index = 0, .expr = Dim::symbol("M"), .group = {}}, 4);

  int width(Id offset, Id mask = kNone, DType dtype = DType::kBF16, Id from = kNone) {
    return AxisAnalysis(program_).access_width(from == kNone ? pointer : from, offset, mask, dtype,
                                               8);
  }
};

TEST(AxisInfo, ContiguousAlignedIsSixteenBytes) {
  Access a;
  EXPECT_EQ(a.width(a.range), 8);
  EXPECT_EQ(a.width(a.range, kNone, DType::kF32), 4);
  EXPECT_EQ(a.width(a.b.map(Fn::kAdd, {a.range, a.b.integer(16)})), 8);
}

TEST(AxisInfo, MisalignedStartNarrows) {
  Access a;
  EXPECT_EQ(a.width(a.b.map(Fn::kAdd, {a.range, a.b.integer(2)})), 2);
  EXPECT_EQ(a.width(a.b.map(Fn::kAdd, {a.range, a.unknown})), 1);
  EXPECT_EQ(a.width(a.b.map(Fn::kAdd, {a.range, a.times_four})), 4);
  const Id odd_rows =
      a.b.ptr_add(a.pointer, a.b.map(Fn::kMul, {a.unknown, a.b.integer(1001)}), DType::kBF16);
  EXPECT_EQ(a.width(a.range, kNone, DType::kBF16, odd_rows), 1);
  const Id even_rows =
      a.b.ptr_add(a.pointer, a.b.map(Fn::kMul, {a.unknown, a.b.integer(2048)}), DType::kBF16);
  EXPECT_EQ(a.width(a.range, kNone, DType::kBF16, even_rows), 8);
}

TEST(AxisInfo, AStrideIsNoRun) {
  Access a;
  EXPECT_EQ(a.width(a.b.map(Fn::kMul, {a.range, a.b.integer(8)})), 1);
}

TEST(AxisInfo, MasksMustBeEqualInsideOneAccess) {
  Access a;
  EXPECT_EQ(a.width(a.range, a.b.map(Fn::kLt, {a.range, a.b.integer(32)})), 8);
  EXPECT_EQ(a.width(a.range, a.b.map(Fn::kLt, {a.range, a.b.integer(33)})), 1);
  EXPECT_EQ(a.width(a.range, a.b.map(Fn::kLt, {a.range, a.times_four})), 4);
}

TEST(AxisInfo, RemainderKeepsRunsShorterThanTheModulus) {
  Access a;
  EXPECT_EQ(a.width(a.b.map(Fn::kRem, {a.range, a.b.integer(2048)})), 8);
  EXPECT_EQ(a.width(a.b.map(Fn::kRem, {a.range, a.b.integer(1001)})), 1);
  EXPECT_EQ(a.width(a.b.map(Fn::kRem, {a.range, a.b.integer(12)})), 4);
}

// One word for eight columns: eight columns that are whole words are read together.
TEST(AxisInfo, AQuotientKeepsTheAlignmentOfWhatItDivides) {
  Access a;
  const Id eighth =
      a.b.map(Fn::kDiv, {a.b.map(Fn::kMul, {a.unknown, a.b.integer(32)}), a.b.integer(8)});
  EXPECT_EQ(a.width(a.b.map(Fn::kAdd, {a.range, eighth})), 4);
  const Id third =
      a.b.map(Fn::kDiv, {a.b.map(Fn::kMul, {a.unknown, a.b.integer(32)}), a.b.integer(3)});
  EXPECT_EQ(a.width(a.b.map(Fn::kAdd, {a.range, third})), 1);
}

}  // namespace
}  // namespace braid::tile
