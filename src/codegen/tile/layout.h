#pragma once

#include <vector>

#include "codegen/tile/linear_map.h"

namespace braid::tile {

/// A position in a two-dimensional tile, as a vector over GF(2): addition is bitwise XOR.
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
  std::vector<Coord> lane;  ///< always 5 bits
  std::vector<Coord> warp;

  bool operator==(const Layout&) const = default;

  [[nodiscard]] int registers() const { return 1 << reg.size(); }
  [[nodiscard]] int warps() const { return 1 << warp.size(); }
  [[nodiscard]] Coord apply(int reg_index, int lane_index, int warp_index) const;

  /// The whole map from (register, lane, warp) bits to row * cols + col.
  [[nodiscard]] LinearMap map() const;
  /// The layout of the same elements in a buffer of `size` elements, given the map from row * cols
  /// + col to buffer offsets.
  [[nodiscard]] Layout in_buffer(const LinearMap& to_offset, int size) const;
  [[nodiscard]] Layout transposed() const;

  /// The length of aligned runs of consecutive registers that hold consecutive columns.
  [[nodiscard]] int vector_width() const;

  /// The layout of the tile [rows, 1] that a reduction over columns leaves: registers that differ
  /// only in their column are merged; lanes and warps that differ only in their column hold copies.
  [[nodiscard]] Layout slice_columns() const;

  /// True when every element is held by some thread.
  [[nodiscard]] bool covers_tile() const;

  /// `vec` consecutive columns per thread, then lanes, then warps along the columns and, when those
  /// are used up, along the rows; the rest in further registers. All extents are powers of two.
  /// With `run`, as many consecutive rows are in a thread's first registers, too, as far as all
  /// threads still have elements.
  static Layout blocked(int rows, int cols, int vec, int warps, int run = 1);

  /// The accumulator of per-thread FMAs: four columns per thread, a warp over eight such groups and
  /// as many rows as are left, further warps along the rows first. Small tiles have copies.
  static Layout fma_accumulator(int rows, int cols, int warps);
};

/// The kind of data movement in a change of layout.
enum class LayoutChange : std::uint8_t {
  kNone,       ///< none, the layouts are equal
  kRegisters,  ///< within each thread, between registers
  kShuffle,    ///< within each warp: one shuffle per register, whose source register is the same in
               ///< all lanes
  kShared      ///< through shared memory
};
struct Conversion {
  LayoutChange change;
  LinearMap source;  ///< from (register, lane, warp) of the new layout to the old ones
};
[[nodiscard]] Conversion convert(const Layout& from, const Layout& to);

/// The register of `narrow`, a tile of one column, for each register of `wide`.
[[nodiscard]] LinearMap column_registers(const Layout& wide, const Layout& narrow);

/// How a reduction over the columns of a layout adds up: a thread what lies in its registers, then
/// lanes, then warps, one after the other. Where all lanes of a warp have the same row, registers
/// whose columns lie above those of lanes and warps are not added in the thread, but stand for
/// further warps, up to kMostParts in all. So the order of a row of blocked tiles does not depend
/// on the number of warps.
struct ReductionParts {
  static constexpr int kMostParts = 32;
  int of_warps = 1;               ///< warps along the columns
  std::vector<std::size_t> bits;  ///< of a register's number: those that stand for warps
  [[nodiscard]] int further() const { return 1 << bits.size(); }
  [[nodiscard]] int count() const { return of_warps * further(); }
};
[[nodiscard]] ReductionParts reduction_parts(const Layout& from);

/// A row-major tile in shared memory, swizzled in 16-byte pieces to avoid bank conflicts: eight
/// consecutive rows of one column piece lie in different banks. Element (row, col) is at row * cols
/// + (col ^ (phase(row) * piece)).
struct SharedLayout {
  int rows;
  int cols;
  LinearMap to_offset;  ///< from row * cols + col

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
