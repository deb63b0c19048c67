#pragma once

#include <array>
#include <string>
#include <vector>

namespace braid::tile {

/// A position in a two-dimensional tile. As a vector over GF(2): addition is XOR of the bits.
struct Coord {
  int row = 0;
  int col = 0;
  bool operator==(const Coord&) const = default;
  friend Coord operator^(Coord a, Coord b) { return {a.row ^ b.row, a.col ^ b.col}; }
};

/// Which elements of a tile each thread of a block holds: a linear map over GF(2) from the bits of
/// (register, lane, warp) to tile coordinates, given by the images of its basis vectors. After the
/// linear layouts of Triton (include/triton/Tools/LinearLayout.h).
///
/// Example: a row of 256 elements, 8 per thread, one warp:
///     register bits -> (0,1) (0,2) (0,4);  lane bits -> (0,8) (0,16) (0,32) (0,64) (0,128)
/// so lane 3 holds columns 24..31 in its registers 0..7. A lane or warp bit whose image is (0,0)
/// holds the same elements again (a copy).
struct Layout {
  int rows = 1;
  int cols = 1;
  std::vector<Coord> reg;
  std::vector<Coord> lane;  ///< always 5
  std::vector<Coord> warp;

  bool operator==(const Layout&) const = default;

  [[nodiscard]] int registers() const { return 1 << reg.size(); }
  [[nodiscard]] int warps() const { return 1 << warp.size(); }
  [[nodiscard]] Coord apply(int reg_index, int lane_index, int warp_index) const;

  /// How many consecutive registers, from each multiple of the result, hold consecutive columns.
  [[nodiscard]] int vector_width() const;

  /// The layout of the tile [rows, 1] that a reduction over columns leaves: registers that differ
  /// only in their column become one; lanes and warps that differ only in their column hold copies.
  [[nodiscard]] Layout slice_columns() const;

  /// True when every element is held by some thread.
  [[nodiscard]] bool covers_tile() const;

  /// `vec` consecutive columns per thread, then lanes, then warps along the columns and, when those
  /// are used up, along the rows; the rest in further registers. All extents are powers of two.
  static Layout blocked(int rows, int cols, int vec, int warps);

  /// The accumulators of mma.m16n8: `warps_m` x `warps_n` warps over the tile; each warp repeats
  /// the 16x8 fragment.
  static Layout mma_accumulator(int rows, int cols, int warps_m, int warps_n);
};

/// One field of a linear index computation: ((x >> shift) & mask) << out.
struct BitRun {
  int shift;
  int mask;
  int out;
};
/// The image of an index under basis images that are 0 or distinct powers of two, as few shifted
/// fields; what the printer turns into an expression.
std::vector<BitRun> bit_runs(const std::vector<int>& images);

/// A row-major tile in shared memory whose 16-byte pieces are swizzled, so that eight consecutive
/// rows of one column piece lie in different banks: element (row, col) is at row * cols + (col ^
/// (phase(row) * piece)).
struct SharedLayout {
  int rows;
  int cols;
  int piece;      ///< elements of 16 bytes
  int per_phase;  ///< rows per phase
  int max_phase;  ///< number of phases; 1 = no swizzle

  /// `row_step`: the distance of the rows that one access touches (1 for ldmatrix and rows that
  /// neighbouring lanes read).
  static SharedLayout swizzled(int rows, int cols, int element_bytes, int row_step = 1);
  [[nodiscard]] int offset(int row, int col) const;
};

}  // namespace braid::tile
