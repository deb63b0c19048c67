#include "codegen/tile/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace braid::tile {
namespace {

TEST(Layout, BlockedRowOfTheHeaderExample) {
  const Layout row = Layout::blocked(1, 256, 8, 1);
  EXPECT_EQ(row.registers(), 8);
  for (int r = 0; r < 8; ++r) EXPECT_EQ(row.apply(r, 3, 0), (Coord{0, 24 + r}));
}

TEST(Layout, BlockedCoversEveryTileOnce) {
  for (int rows = 1; rows <= 64; rows *= 4) {
    for (int cols = 1; cols <= 4096; cols *= 2) {
      for (int vec : {1, 4, 8}) {
        for (int warps : {1, 4, 8}) {
          const Layout layout = Layout::blocked(rows, cols, vec, warps);
          ASSERT_TRUE(layout.covers_tile())
              << rows << "x" << cols << " vec " << vec << " warps " << warps;
          // Each element is held once, times the copies that zero images make.
          int copies = 1;
          for (const auto* basis : {&layout.reg, &layout.lane, &layout.warp}) {
            for (Coord c : *basis) copies *= c == Coord{} ? 2 : 1;
          }
          ASSERT_EQ(layout.registers() * 32 * warps, rows * cols * copies);
        }
      }
    }
  }
}

TEST(Layout, VectorWidthIsTheContiguousRun) {
  EXPECT_EQ(Layout::blocked(1, 1024, 8, 4).vector_width(), 8);
  EXPECT_EQ(Layout::blocked(64, 64, 4, 4).vector_width(), 4);
  EXPECT_EQ(Layout::mma_accumulator(64, 64, 2, 2).vector_width(), 2);
}

TEST(Layout, MmaAccumulatorIsThePtxFragment) {
  // PTX ISA, "Matrix Fragments for mma.m16n8k16", accumulator: row = groupID (+8 for c2, c3), col =
  // 2 * threadID_in_group + (i & 1).
  const Layout one = Layout::mma_accumulator(16, 8, 1, 1);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Coord expected{lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)};
      EXPECT_EQ(one.apply(i, lane, 0), expected);
    }
  }
  for (int rows : {16, 32, 64}) {
    for (int cols : {32, 64, 128}) {
      EXPECT_TRUE(Layout::mma_accumulator(rows, cols, rows >= 32 ? 2 : 1, rows >= 32 ? 2 : 4)
                      .covers_tile());
    }
  }
}

TEST(Layout, SliceHoldsTheRowsOfTheTile) {
  for (const Layout& layout : {Layout::blocked(1, 2048, 8, 8), Layout::blocked(16, 32, 4, 4),
                               Layout::mma_accumulator(32, 32, 2, 2)}) {
    const Layout slice = layout.slice_columns();
    EXPECT_TRUE(slice.covers_tile());
    std::set<int> rows;
    for (int r = 0; r < layout.registers(); ++r) rows.insert(layout.apply(r, 5, 1).row);
    std::set<int> sliced;
    for (int r = 0; r < slice.registers(); ++r) sliced.insert(slice.apply(r, 5, 1).row);
    EXPECT_EQ(rows, sliced) << "a thread keeps the rows it reduced";
  }
}

TEST(BitRuns, SplitsAnIndexIntoFields) {
  for (const std::vector<int>& images :
       {std::vector<int>{1, 2, 4, 64, 128}, {8, 16, 0, 1}, {0, 0, 4}, {}}) {
    const std::vector<BitRun> runs = bit_runs(images);
    for (int x = 0; x < 1 << images.size(); ++x) {
      int expected = 0;
      for (std::size_t bit = 0; bit < images.size(); ++bit)
        expected ^= (x >> bit & 1) * images[bit];
      int got = 0;
      for (const BitRun& run : runs) got += (x >> run.shift & run.mask) << run.out;
      EXPECT_EQ(got, expected);
    }
  }
}

// The banks that eight lanes touch when each reads 16 bytes (one wavefront of ldmatrix or
// cp.async): all 32, each once.
TEST(SharedLayout, EightRowsOfOnePieceTouchEveryBankOnce) {
  for (int element_bytes : {1, 2, 4}) {
    for (int cols = 16 / element_bytes * 2; cols <= 256; cols *= 2) {
      const SharedLayout s = SharedLayout::swizzled(64, cols, element_bytes);
      const int row_bytes = cols * element_bytes;
      // Fewer than eight pieces in 128 bytes' worth of rows cannot be told apart by column alone:
      // the rows differ.
      for (int row = 0; row < 64; row += 8) {
        for (int col = 0; col < cols; col += s.piece) {
          std::set<int> banks;
          for (int i = 0; i < 8; ++i) banks.insert(s.offset(row + i, col) * element_bytes / 16 % 8);
          EXPECT_EQ(banks.size(), 8u)
              << cols << " columns of " << element_bytes << " bytes, row bytes " << row_bytes;
        }
      }
    }
  }
}

// The FMA dot reads single elements: four rows and eight groups of four columns per warp. Lanes
// that read one address share it; the others must differ in their banks.
TEST(SharedLayout, ElementsOfOneFmaStepLieInDifferentBanks) {
  for (const int cols : {32, 64, 128}) {
    const SharedLayout s = SharedLayout::swizzled(64, cols, 4);
    for (int k = 0; k < 32; ++k) {
      const auto distinct = [&](const auto& offset_of_lane) {
        std::set<int> offsets, banks;
        for (int lane = 0; lane < 32; ++lane) {
          offsets.insert(offset_of_lane(lane));
          banks.insert(offset_of_lane(lane) % 32);
        }
        return offsets.size() == banks.size();
      };
      // A by rows, B by columns; A and B stored transposed.
      EXPECT_TRUE(distinct([&](int lane) { return s.offset(lane / 8, k); })) << cols << " " << k;
      EXPECT_TRUE(distinct([&](int lane) { return s.offset(k, lane % 8 * 4); })) << cols;
      EXPECT_TRUE(distinct([&](int lane) { return s.offset(k, lane / 8); })) << cols;
      const SharedLayout transposed = SharedLayout::swizzled(64, cols, 4, 4);
      EXPECT_TRUE(distinct([&](int lane) { return transposed.offset(lane % 8 * 4, k); })) << cols;
    }
  }
}

TEST(SharedLayout, IsABijection) {
  const SharedLayout s = SharedLayout::swizzled(32, 64, 2);
  std::set<int> seen;
  for (int row = 0; row < 32; ++row) {
    for (int col = 0; col < 64; ++col) seen.insert(s.offset(row, col));
  }
  EXPECT_EQ(seen.size(), 32u * 64u);
  EXPECT_EQ(*seen.rbegin(), 32 * 64 - 1);
}

}  // namespace
}  // namespace braid::tile
