#pragma once

#include <vector>

#include "codegen/tile/linear_map.h"

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
///
/// Addresses are layouts, too: of one row, whose columns are the elements of a buffer.
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

  /// The whole map: registers, then lanes, then warps, to row * cols + col.
  [[nodiscard]] LinearMap map() const;
  /// Where a map of row * cols + col into a buffer of `size` elements puts what a thread holds.
  [[nodiscard]] Layout in_buffer(const LinearMap& to_offset, int size) const;
  [[nodiscard]] Layout transposed() const;

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

  /// What thread-by-thread FMAs accumulate: four columns per thread, a warp over eight such groups
  /// and as many rows as are left, further warps along the rows first. Small tiles have copies.
  static Layout fma_accumulator(int rows, int cols, int warps);
};

/// What becomes of a thread's registers when a tile changes its layout.
enum class LayoutChange : std::uint8_t {
  kNone,       ///< the same layout
  kRegisters,  ///< every thread has what it needs, in other registers
  kShuffle,  ///< every warp has: one shuffle per register, from a register that all lanes agree on
  kShared    ///< it goes through shared memory
};
struct Conversion {
  LayoutChange change;
  LinearMap source;  ///< from (register, lane, warp) of the new layout to those of the old
};
[[nodiscard]] Conversion convert(const Layout& from, const Layout& to);

/// The register of `narrow`, a tile of one column, beside each register of `wide`.
[[nodiscard]] LinearMap column_registers(const Layout& wide, const Layout& narrow);

/// A row-major tile in shared memory whose 16-byte pieces are swizzled, so that eight consecutive
/// rows of one column piece lie in different banks: element (row, col) is at row * cols + (col ^
/// (phase(row) * piece)).
struct SharedLayout {
  int rows;
  int cols;
  LinearMap to_offset;  ///< of row * cols + col

  /// `row_step`: the distance of the rows that one access touches (1 for ldmatrix and rows that
  /// neighbouring lanes read), or kPairsOfRows: of every four rows two neighbours. kPanels is what
  /// bulk copies of tensors and wgmma know as the swizzle of 128 bytes: columns in panels of 128
  /// bytes, one panel after the other, in each all rows.
  static constexpr int kPairsOfRows = 2;
  static constexpr int kPanels = 128;
  static SharedLayout swizzled(int rows, int cols, int element_bytes, int row_step = 1);
  [[nodiscard]] int offset(int row, int col) const {
    return static_cast<int>(to_offset.apply(static_cast<std::uint32_t>(row * cols + col)));
  }
};

}  // namespace braid::tile
