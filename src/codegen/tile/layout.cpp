#include "codegen/tile/layout.h"

#include <algorithm>
#include <set>

namespace braid::tile {
namespace {

int log2_of(int power) {
  int bits = 0;
  while ((1 << bits) < power) ++bits;
  return bits;
}

Coord image(const std::vector<Coord>& basis, int index) {
  Coord at;
  for (std::size_t bit = 0; bit < basis.size(); ++bit) {
    if ((index >> bit) & 1) at = at ^ basis[bit];
  }
  return at;
}

/// Hands out the bits of a tile: columns first, then rows, then nothing (copies).
class BitSource {
 public:
  BitSource(int rows, int cols, int row = 1, int col = 1)
      : rows_(rows), cols_(cols), row_(row), col_(col) {}
  bool has_column() const { return col_ < cols_; }
  bool has_any() const { return has_column() || row_ < rows_; }
  Coord next() {
    if (col_ < cols_) return take(col_, false);
    if (row_ < rows_) return take(row_, true);
    return {};
  }

 private:
  static Coord take(int& at, bool is_row) {
    const int value = at;
    at *= 2;
    return is_row ? Coord{value, 0} : Coord{0, value};
  }
  int rows_, cols_, row_, col_;
};

}  // namespace

Coord Layout::apply(int reg_index, int lane_index, int warp_index) const {
  return image(reg, reg_index) ^ image(lane, lane_index) ^ image(warp, warp_index);
}

int Layout::vector_width() const {
  int width = 1;
  for (const Coord& c : reg) {
    if (c != Coord{0, width}) break;
    width *= 2;
  }
  return width;
}

Layout Layout::slice_columns() const {
  Layout out{rows, 1, {}, {}, {}};
  for (Coord c : reg) {
    if (c.row != 0) out.reg.push_back({c.row, 0});
  }
  for (Coord c : lane) out.lane.push_back({c.row, 0});
  for (Coord c : warp) out.warp.push_back({c.row, 0});
  return out;
}

bool Layout::covers_tile() const {
  std::set<std::pair<int, int>> seen;
  for (int w = 0; w < warps(); ++w) {
    for (int l = 0; l < 32; ++l) {
      for (int r = 0; r < registers(); ++r) {
        const Coord c = apply(r, l, w);
        if (c.row >= rows || c.col >= cols) return false;
        seen.emplace(c.row, c.col);
      }
    }
  }
  return static_cast<int>(seen.size()) == rows * cols;
}

Layout Layout::blocked(int rows, int cols, int vec, int warps) {
  Layout out{rows, cols, {}, {}, {}};
  BitSource bits(rows, cols);
  for (int i = 0; i < log2_of(vec) && bits.has_column(); ++i) out.reg.push_back(bits.next());
  for (int i = 0; i < 5; ++i) out.lane.push_back(bits.next());
  for (int i = 0; i < log2_of(warps); ++i) out.warp.push_back(bits.next());
  while (bits.has_any()) out.reg.push_back(bits.next());
  return out;
}

Layout Layout::mma_accumulator(int rows, int cols, int warps_m, int warps_n) {
  // PTX ISA, m16n8 accumulator: lane = 4 * group + t; registers (0,1): row group, columns 2t, 2t+1;
  // registers (2,3): row group + 8.
  Layout out{rows, cols, {{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {}};
  const int warp_cols = cols / warps_n;
  const int warp_rows = rows / warps_m;
  for (int c = 8; c < warp_cols; c *= 2) out.reg.push_back({0, c});
  for (int r = 16; r < warp_rows; r *= 2) out.reg.push_back({r, 0});
  for (int c = warp_cols; c < cols; c *= 2) out.warp.push_back({0, c});
  for (int r = warp_rows; r < rows; r *= 2) out.warp.push_back({r, 0});
  return out;
}

std::vector<BitRun> bit_runs(const std::vector<int>& images) {
  std::vector<BitRun> runs;
  for (std::size_t bit = 0; bit < images.size(); ++bit) {
    if (images[bit] == 0) continue;
    const int out = log2_of(images[bit]);
    const int at = static_cast<int>(bit);
    if (!runs.empty()) {
      BitRun& last = runs.back();
      const int width = log2_of(last.mask + 1);
      if (last.shift + width == at && last.out + width == out) {
        last.mask = last.mask * 2 + 1;
        continue;
      }
    }
    runs.push_back({at, 1, out});
  }
  return runs;
}

SharedLayout SharedLayout::swizzled(int rows, int cols, int element_bytes, int row_step) {
  const int piece = 16 / element_bytes;
  // One wavefront reads 128 bytes. Rows shorter than that share a phase.
  const int row_bytes = cols * element_bytes;
  const int in_line = std::max(1, 128 / row_bytes);
  const int max_phase = std::max(1, std::min(8 / in_line, cols / piece));
  return {rows, cols, piece, std::max(in_line, row_step), max_phase};
}

int SharedLayout::offset(int row, int col) const {
  return row * cols + (col ^ ((row / per_phase % max_phase) * piece));
}

}  // namespace braid::tile
