#pragma once

#include "codegen/tile/layout.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

// Layouts of the operands and results of mma.m16n8 (PTX ISA, "Matrix Fragments") for a block's
// tiles: `warps_m` x `warps_n` warps over the result, each repeating the fragment. A word is 32
// bits: two 16-bit or four 8-bit elements.

/// The arrangement of `warps` warps over a result [rows, cols]: at most `warps_m` along the rows,
/// fragments of at least 16x16 each, copies where the tile is too small for all.
struct WarpGrid {
  int m;
  int n;
  int copies;
};
[[nodiscard]] WarpGrid warp_grid(int rows, int cols, int warps, int warps_m);

/// The columns of a fragment: eight in order; or every other one of 16, with the next fragment
/// between them. The latter is how ldmatrix.trans, which moves 16 bits, delivers 8-bit elements.
enum class Columns : std::uint8_t { kInOrder, kInPairs };

/// Layout of the result. Its registers number a fragment's, then further columns, then rows; with
/// columns in pairs, those of two fragments alternate.
[[nodiscard]] Layout mma_accumulator(int rows, int cols, const WarpGrid& warps,
                                     Columns columns = Columns::kInOrder);
/// How the warps of a block share a result [rows, ...] that wgmma computes: groups of four, each
/// with 64 rows at a time, side by side along the rows, or along the columns where these are too
/// few.
inline constexpr int kWarpsOfGroup = 4;
struct GroupGrid {
  int along_rows, along_cols;
};
[[nodiscard]] GroupGrid group_grid(int rows, int warps, int rows_of_product = 64);

/// The result of wgmma (PTX ISA, "Register Fragments" of wgmma.mma_async) in a block's tile. Its
/// registers are those of eight columns of m64, then further columns, then rows.
[[nodiscard]] Layout wgmma_accumulator(int rows, int cols, int warps);
/// How the threads of a block take sums from tensor memory (PTX ISA, "tcgen05.ld", .32x32b): a
/// thread has a row, or of each kColumnsOfLoad columns those of its group, so that any part of the
/// columns is in the first registers; each warp of a group has 32 of 128 rows. Registers are
/// columns, then further rows.
inline constexpr int kColumnsOfLoad = 32;
inline constexpr int kRowsOfSums = 128;
inline constexpr int kColumnsOfSums = 512;  ///< of tensor memory
[[nodiscard]] Layout sums_layout(int rows, int cols, int warps);
/// Columns of tensor memory that kAllocSums takes.
[[nodiscard]] inline int columns_of_sums(const Inst& alloc) {
  return alloc.type.rows / kRowsOfSums * alloc.type.cols * alloc.stages;
}
/// [rows, k]; its registers are words of a 16-row fragment, then K, then further rows.
[[nodiscard]] Layout mma_operand_a(int rows, int k, int element_bytes, const WarpGrid& warps);
/// Layout of B [k, cols]. Its registers number the words of an 8-column fragment, then K, then
/// further columns.
[[nodiscard]] Layout mma_operand_b(int k, int cols, int element_bytes, const WarpGrid& warps,
                                   Columns columns = Columns::kInOrder);

/// How ldmatrix fills an operand's registers from a tile in memory, four 8x8 matrices (of 16-bit
/// elements, or pairs of 8-bit ones) at a time: lane 8j + r gives the address of row r of matrix j.
/// Transposed, pairs of 8-bit elements are columns of two fragments, whose words are the even and
/// the odd bytes of two matrices.
struct MatrixLoad {
  bool transposed;  ///< ldmatrix.trans
  Layout rows;      ///< the start of each lane's row; its registers number the loads
};
/// `operand` is in the coordinates of the tile as stored; `matrices` are the two register bits (of
/// its words) that one load fills. Throws kInternal when no form of ldmatrix fits.
[[nodiscard]] MatrixLoad matrix_load(const Layout& operand, int element_bytes,
                                     const std::vector<int>& matrices);

}  // namespace braid::tile
