#include "codegen/tile/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "codegen/tile/fragments.h"

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
  EXPECT_EQ(mma_accumulator(64, 64, {2, 2, 1}).vector_width(), 2);
}

TEST(Layout, MmaAccumulatorIsThePtxFragment) {
  // PTX ISA, "Matrix Fragments for mma.m16n8k16", accumulator: row = groupID (+8 for c2, c3), col =
  // 2 * threadID_in_group + (i & 1).
  const Layout one = mma_accumulator(16, 8, {1, 1, 1});
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const Coord expected{lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + (i & 1)};
      EXPECT_EQ(one.apply(i, lane, 0), expected);
    }
  }
}

// However small the tile, every element is some thread's, and an element that several threads
// accumulate is a copy of one.
TEST(Layout, AccumulatorsCoverEveryTile) {
  for (int rows = 16; rows <= 128; rows *= 2) {
    for (int cols = 16; cols <= 128; cols *= 2) {
      for (int warps : {1, 2, 4, 8}) {
        for (int m = 1; m <= warps; m *= 2) {
          const WarpGrid grid = warp_grid(rows, cols, warps, m);
          EXPECT_EQ(grid.m * grid.n * grid.copies, warps);
          const Layout layout = mma_accumulator(rows, cols, grid);
          EXPECT_TRUE(layout.covers_tile()) << rows << "x" << cols << " on " << warps;
          EXPECT_EQ(layout.warps(), warps);
        }
        const Layout fma = Layout::fma_accumulator(rows, cols, warps);
        EXPECT_TRUE(fma.covers_tile()) << rows << "x" << cols << " on " << warps;
        EXPECT_EQ(fma.lane.size(), 5U);
        EXPECT_EQ(fma.warps(), warps);
      }
    }
  }
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16" and "k32": group g = lane / 4, t = lane % 4.
TEST(Layout, MmaOperandsAreThePtxFragments) {
  for (const int bytes : {2, 1}) {
    const int e = 4 / bytes;  // elements of one word
    const Layout a = mma_operand_a(16, 8 * e, bytes, {1, 1, 1});
    const Layout b = mma_operand_b(8 * e, 8, bytes, {1, 1, 1});
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4 * e; ++i) {
        const int word = i / e;
        const Coord in_a{lane / 4 + word % 2 * 8, lane % 4 * e + word / 2 * 4 * e + i % e};
        EXPECT_EQ(a.apply(i, lane, 0), in_a);
        if (i >= 2 * e) continue;
        EXPECT_EQ(b.apply(i, lane, 0), (Coord{lane % 4 * e + word * 4 * e + i % e, lane / 4}));
      }
    }
  }
}

// The rows given to ldmatrix deliver to each lane and register what the fragment wants: row r of
// matrix j comes from lane 8j + r; lane l gets words l % 4 of row l / 4, or transposed elements l /
// 4 of rows 2 (l % 4) and the next.
TEST(Layout, MatrixLoadsFillTheFragments) {
  struct Case {
    Layout operand;
    int bytes;
    std::vector<int> matrices;
    bool transposed;
  };
  const WarpGrid warps{2, 2, 1};
  const Case cases[] = {
      {mma_operand_a(64, 32, 2, warps), 2, {1, 2}, false},
      {mma_operand_a(64, 32, 2, warps).transposed(), 2, {1, 2}, true},
      {mma_operand_b(32, 64, 2, warps), 2, {1, 3}, true},
      {mma_operand_b(32, 64, 2, warps).transposed(), 2, {1, 3}, false},
      {mma_operand_a(64, 64, 1, warps), 1, {2, 3}, false},
      {mma_operand_b(64, 64, 1, warps).transposed(), 1, {2, 4}, false},
  };
  for (const Case& c : cases) {
    const MatrixLoad load = matrix_load(c.operand, c.bytes, c.matrices);
    EXPECT_EQ(load.transposed, c.transposed);
    const int word = 4 / c.bytes;
    for (int warp = 0; warp < 4; ++warp) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int j = 0; j < 4; ++j) {
          for (int e = 0; e < word; ++e) {
            const int matrix = (j & 1 ? 1 << c.matrices[0] : 0) | (j & 2 ? 1 << c.matrices[1] : 0);
            const int row = load.transposed ? lane % 4 * 2 + e : lane / 4;
            const int element = load.transposed ? lane / 4 : lane % 4 * word + e;
            const Coord begin = load.rows.apply(0, 8 * j + row, warp);
            EXPECT_EQ(c.operand.apply(matrix | e, lane, warp),
                      (Coord{begin.row, begin.col + element}));
          }
        }
      }
    }
  }
  EXPECT_ANY_THROW((void)matrix_load(mma_operand_b(64, 64, 1, warps), 1, {2, 4}));
}

// Transposed, 8-bit elements come as pairs of columns: of two matrices, which have rows 0, 1, 4, 5,
// ... and 2, 3, 6, 7, ... of 16, the even bytes are one fragment's word and the odd bytes the next
// one's.
TEST(Layout, TransposedBytesAreEveryOtherColumn) {
  const WarpGrid warps{2, 2, 1};
  const Layout operand = mma_operand_b(64, 64, 1, warps, Columns::kInPairs);
  const Layout sums = mma_accumulator(64, 64, warps, Columns::kInPairs);
  EXPECT_TRUE(operand.covers_tile());
  EXPECT_TRUE(sums.covers_tile());
  EXPECT_EQ(sums.vector_width(), 4);
  const MatrixLoad load = matrix_load(operand, 1, {2, 4});
  EXPECT_TRUE(load.transposed);
  for (int warp = 0; warp < 4; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 16; ++i) {
        const int e = i % 4, word = i / 4 % 2, fragment = i / 8;
        const int matrix = 2 * word + e / 2;
        const Coord row = load.rows.apply(0, 8 * matrix + lane % 4 * 2 + e % 2, warp);
        EXPECT_EQ(operand.apply(fragment << 4 | word << 2 | e, lane, warp),
                  (Coord{row.row, row.col + 2 * (lane / 4) + fragment}));
        // A fragment's column g is that of its sums: 2t and 2t + 1 of lanes 4g + t.
        const int g = lane / 4;
        const Coord sum = sums.apply(fragment | g % 2 << 1, g / 2, warp);
        EXPECT_EQ(sum.col, operand.apply(fragment << 4, lane, warp).col);
      }
    }
  }
}

/// The layouts of a tile between which the tests convert.
std::vector<Layout> layouts_of(int rows, int cols) {
  std::vector<Layout> out{Layout::blocked(rows, cols, 8, 4), Layout::blocked(rows, cols, 1, 4),
                          Layout::fma_accumulator(rows, cols, 4)};
  for (int m : {1, 2, 4}) {
    const WarpGrid grid = warp_grid(rows, cols, 4, m);
    out.push_back(mma_accumulator(rows, cols, grid));
    out.push_back(mma_operand_a(rows, cols, 2, grid));
    out.push_back(mma_operand_b(rows, cols, 2, grid));
  }
  return out;
}

// Follows the source map of a conversion: every (register, lane, warp) of the new layout takes the
// element it is to hold, and the kind of change is as narrow as it says.
TEST(Layout, ConversionsTakeEachElementFromWhoHasIt) {
  for (const auto& [rows, cols] : {std::pair{16, 16}, {64, 32}, {32, 64}}) {
    for (const Layout& from : layouts_of(rows, cols)) {
      ASSERT_TRUE(from.covers_tile());
      for (const Layout& to : layouts_of(rows, cols)) {
        const Conversion change = convert(from, to);
        const int from_reg = static_cast<int>(from.reg.size());
        const int to_reg = static_cast<int>(to.reg.size());
        std::set<std::pair<int, int>> registers;
        for (std::uint32_t x = 0; x < 1U << change.source.bits(); ++x) {
          const std::uint32_t y = change.source.apply(x);
          ASSERT_EQ(from.map().apply(y), to.map().apply(x));
          const std::uint32_t threads = (x >> to_reg) ^ (y >> from_reg);
          const bool own = change.change == LayoutChange::kRegisters;
          const bool within_warp = own || change.change == LayoutChange::kShuffle;
          ASSERT_TRUE(!own || threads == 0);
          ASSERT_TRUE(!within_warp || threads >> 5 == 0);
          registers.emplace(x & ((1 << to_reg) - 1), y & ((1 << from_reg) - 1));
        }
        if (change.change == LayoutChange::kRegisters || change.change == LayoutChange::kShuffle) {
          EXPECT_EQ(registers.size(), 1U << to_reg) << "one source register for each";
        }
        EXPECT_EQ(change.change == LayoutChange::kNone, from == to);
      }
    }
  }
  // The result of one dot is the left operand of the next without leaving its thread.
  const WarpGrid rows_only = warp_grid(64, 64, 4, 4);
  EXPECT_EQ(mma_accumulator(64, 64, rows_only), mma_operand_a(64, 64, 2, rows_only));
  EXPECT_EQ(convert(Layout::blocked(1, 256, 2, 1), Layout::blocked(1, 256, 1, 1)).change,
            LayoutChange::kShared)
      << "lanes want different registers of one lane";
}

TEST(LinearMap, ComposesAndInverts) {
  // Every map of three bits to three, with every other one.
  const auto map_of = [](int number) {
    return LinearMap{{static_cast<std::uint32_t>(number & 7),
                      static_cast<std::uint32_t>(number >> 3 & 7),
                      static_cast<std::uint32_t>(number >> 6 & 7)}};
  };
  for (int a = 0; a < 512; ++a) {
    const LinearMap f = map_of(a);
    std::set<std::uint32_t> reached;
    for (std::uint32_t x = 0; x < 8; ++x) reached.insert(f.apply(x));
    EXPECT_EQ(reached.size(), 1U << f.rank());
    const auto back = f.inverse(3);
    EXPECT_EQ(back.has_value(), f.rank() == 3);
    if (back) {
      EXPECT_EQ(compose(f, *back), LinearMap::identity(3));
      EXPECT_EQ(compose(*back, f), LinearMap::identity(3));
    }
    for (int b = 0; b < 512; b += 7) {
      const LinearMap g = map_of(b);
      const LinearMap both = compose(f, g);
      for (std::uint32_t x = 0; x < 8; ++x) ASSERT_EQ(both.apply(x), f.apply(g.apply(x)));
    }
  }
  // Among copies, the first.
  const LinearMap copies{{1, 0, 2, 1}};
  EXPECT_EQ(copies.inverse(2), (LinearMap{{1, 4}}));
  EXPECT_EQ(LinearMap::identity(3).contiguous_bits(), 3);
  EXPECT_EQ((LinearMap{{1, 2, 8}}).contiguous_bits(), 2);
  EXPECT_EQ((LinearMap{{1, 2, 8}}).slice(1, 2), (LinearMap{{2, 8}}));
}

TEST(Layout, SliceHoldsTheRowsOfTheTile) {
  for (const Layout& layout : {Layout::blocked(1, 2048, 8, 8), Layout::blocked(16, 32, 4, 4),
                               mma_accumulator(32, 32, {2, 2, 1})}) {
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
  for (const LinearMap& map : {LinearMap{{1, 2, 4, 64, 128}}, LinearMap{{8, 16, 0, 1}},
                               LinearMap{{0, 0, 4}}, LinearMap{{9, 18, 3}}, LinearMap{}}) {
    const std::vector<BitRun> runs = bit_runs(map);
    for (std::uint32_t x = 0; x < 1U << map.bits(); ++x) {
      int all = 0;
      for (const BitRun& run : runs) {
        all ^= (static_cast<int>(x) >> run.shift & run.mask) << run.out;
      }
      EXPECT_EQ(all, static_cast<int>(map.apply(x)));
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
        for (int col = 0; col < cols; col += 16 / element_bytes) {
          std::set<int> banks;
          for (int i = 0; i < 8; ++i) banks.insert(s.offset(row + i, col) * element_bytes / 16 % 8);
          EXPECT_EQ(banks.size(), 8u)
              << cols << " columns of " << element_bytes << " bytes, row bytes " << row_bytes;
        }
      }
    }
  }
}

// Rows 0, 1, 4, 5, 8, 9, 12 and 13 of 16 are conflict-free, and so are those between them, if
// accessed that way.
TEST(SharedLayout, PairsOfRowsTouchEveryBankOnce) {
  for (int cols = 32; cols <= 256; cols *= 2) {
    const SharedLayout s = SharedLayout::swizzled(64, cols, 1, SharedLayout::kPairsOfRows);
    std::set<int> offsets;
    for (int i = 0; i < 64 * cols; ++i) offsets.insert(s.offset(i / cols, i % cols));
    EXPECT_EQ(offsets.size(), 64U * static_cast<unsigned>(cols));
    for (int row = 0; row < 64; row += row % 4 == 0 ? 2 : 14) {
      for (int col = 0; col < cols; col += 16) {
        std::set<int> banks;
        for (int i = 0; i < 8; ++i) {
          banks.insert(s.offset(row + i / 2 * 4 + i % 2, col) / 16 % 8);
          EXPECT_EQ(s.offset(row + i / 2 * 4 + i % 2, col) % 16, 0);
        }
        EXPECT_EQ(banks.size(), 8U) << cols << " columns, row " << row;
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
