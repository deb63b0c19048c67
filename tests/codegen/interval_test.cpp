#include "codegen/tile/interval.h"

#include <gtest/gtest.h>

#include "codegen/tile/builder.h"

namespace braid::tile {
namespace {

class Numbers {
  Program program_;  // before what refers to it

 public:
  Builder b{program_};
  Id pointer = b.param({.kind = KernelParam::Kind::kInput, .index = 0, .expr = 0, .group = {}}, 16);

  Id loaded(DType dtype) { return b.load(pointer, b.range(8, 64, 1), kNone, dtype); }
  std::pair<std::int64_t, std::int64_t> of(Id id) {
    const Interval all = interval_of(program_, id);
    return {all.least, all.most};
  }
  const Inst& inst(Id id) { return program_.at(id); }
};

TEST(Interval, OfWhatIsUnpacked) {
  Numbers n;
  const Id word = n.b.map(Fn::kToI32, {n.loaded(DType::kI32)});
  const Id number =
      n.b.map(Fn::kBitAnd, {n.b.map(Fn::kShiftRight, {word, n.b.integer(4)}), n.b.integer(15)});
  EXPECT_EQ(n.of(number), std::pair(0L, 15L));
  const Id centred = n.b.map(Fn::kWrapSub, {number, n.b.integer(8)});
  EXPECT_EQ(n.of(centred), std::pair(-8L, 7L));
  EXPECT_EQ(n.of(n.b.round(DType::kI8, centred)), std::pair(-8L, 7L));
  EXPECT_EQ(n.of(n.b.round(DType::kU8, centred)), std::pair(0L, 255L));
  EXPECT_EQ(n.of(n.b.map(Fn::kShiftRight, {word, n.b.integer(4)})),
            std::pair(-(1L << 31), (1L << 31) - 1));
  // All of them are in f16 and in bf16; no integer of 32 bits is known to be.
  const Id as_float = n.b.map(Fn::kToF32, {centred});
  EXPECT_EQ(n.b.round(DType::kF16, as_float), as_float);
  EXPECT_NE(n.b.round(DType::kF16, n.b.map(Fn::kToF32, {word})), n.b.map(Fn::kToF32, {word}));
  const Id wide = n.b.map(Fn::kToF32, {n.b.map(Fn::kBitAnd, {word, n.b.integer(511)})});
  EXPECT_EQ(n.b.round(DType::kF16, wide), wide);
  EXPECT_NE(n.b.round(DType::kBF16, wide), wide);
}

TEST(Interval, SumsOf32BitsMayWrap) {
  Numbers n;
  const Id word = n.b.map(Fn::kToI32, {n.loaded(DType::kI32)});
  const auto all = std::pair(-(1L << 31), (1L << 31) - 1);
  EXPECT_EQ(n.of(n.b.map(Fn::kWrapAdd, {word, n.b.integer(1)})), all);
  EXPECT_EQ(n.of(n.b.map(Fn::kWrapMul, {word, word})), all);
  // In 64 bits the sum is another number, which i32 wraps.
  const Id wide = n.b.map(Fn::kWrapAdd, {n.loaded(DType::kI32), n.b.integer(1)});
  EXPECT_EQ(n.of(wide), std::pair(-(1L << 31) + 1, 1L << 31));
  EXPECT_NE(n.b.round(DType::kI32, wide), wide);
  EXPECT_EQ(n.of(n.b.round(DType::kI8, wide)), std::pair(-128L, 127L));
}

// k % 8 of k = first + row, where first counts tiles of 64 rows, is row % 8.
TEST(Interval, RestsForgetWholeMultiples) {
  Numbers n;
  const Id loop = n.b.begin_for(n.b.integer(0), n.b.integer(512), n.b.integer(64), {});
  const Id row = n.b.range(64, 1, 0);
  const Id k = n.b.plus(n.b.map(Fn::kToI32, {n.b.induction(loop)}), row);
  const auto rest = [&](std::int64_t of) { return n.b.map(Fn::kRem, {k, n.b.integer(of)}); };
  EXPECT_EQ(n.inst(rest(8)).args[0], row);
  EXPECT_EQ(n.inst(rest(128)).args[0], k);
  // A sum that may be negative has another rest.
  const Id below = n.b.minus(row, n.b.integer(1));
  const Id moved = n.b.plus(n.b.map(Fn::kToI32, {n.b.induction(loop)}), below);
  EXPECT_EQ(n.inst(n.b.map(Fn::kRem, {moved, n.b.integer(8)})).args[0], moved);
}

// Of column * 8 + first, which counts steps of K, a word is that of first / 8, and column.
TEST(Interval, QuotientsAndBoundsForgetTheirDivisor) {
  Numbers n;
  const Id end = n.b.map(Fn::kSelect, {n.b.map(Fn::kLt, {n.loaded(DType::kI32), n.b.integer(3)}),
                                       n.b.integer(512), n.b.integer(0)});
  const Id loop = n.b.begin_for(n.b.integer(0), end, n.b.integer(64), {});
  const Id column = n.b.range(1, 8, 1);
  const Id first = n.b.map(Fn::kToI32, {n.b.induction(loop)});
  const Id k = n.b.plus(first, n.b.map(Fn::kMul, {column, n.b.integer(8)}));
  const Id word = n.b.map(Fn::kDiv, {k, n.b.integer(8)});
  EXPECT_EQ(n.inst(word).fn, Fn::kAdd);
  EXPECT_EQ(n.inst(word).args[1], column);
  const Id inside = n.b.map(Fn::kLt, {k, n.b.integer(200)});
  EXPECT_EQ(n.inst(inside).args[0], word);
  EXPECT_EQ(n.inst(n.inst(inside).args[1]).integer, 25);
  // 201 is no multiple; a sum that may be negative has another quotient.
  EXPECT_EQ(n.inst(n.b.map(Fn::kLt, {k, n.b.integer(201)})).args[0], k);
  const Id below =
      n.b.plus(n.b.minus(first, n.b.integer(1)), n.b.map(Fn::kMul, {column, n.b.integer(8)}));
  EXPECT_EQ(n.inst(n.b.map(Fn::kDiv, {below, n.b.integer(8)})).args[0], below);
}

}  // namespace
}  // namespace braid::tile
