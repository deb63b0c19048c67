#include "codegen/tile/layout.h"

#include <algorithm>

#include "braid/error.h"

namespace braid::tile {
namespace {

Coord image(const std::vector<Coord>& basis, int index) {
  Coord at;
  for (std::size_t bit = 0; bit < basis.size(); ++bit) {
    if ((index >> bit) & 1) at = at ^ basis[bit];
  }
  return at;
}

/// Hands out the bits of a tile: columns first, then rows, then none (copies).
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

LinearMap Layout::map() const {
  LinearMap out;
  for (const auto* basis : {&reg, &lane, &warp}) {
    for (Coord c : *basis) out.images.push_back(static_cast<std::uint32_t>(c.row * cols + c.col));
  }
  return out;
}

Layout Layout::in_buffer(const LinearMap& to_offset, int size) const {
  Layout out{1, size, {}, {}, {}};
  const auto images = [&](const std::vector<Coord>& basis, std::vector<Coord>& to) {
    for (Coord c : basis) {
      const auto at = to_offset.apply(static_cast<std::uint32_t>(c.row * cols + c.col));
      to.push_back({0, static_cast<int>(at)});
    }
  };
  images(reg, out.reg);
  images(lane, out.lane);
  images(warp, out.warp);
  return out;
}

Layout Layout::transposed() const {
  Layout out{cols, rows, reg, lane, warp};
  for (auto* basis : {&out.reg, &out.lane, &out.warp}) {
    for (Coord& c : *basis) std::swap(c.row, c.col);
  }
  return out;
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
  const LinearMap whole = map();
  const auto inside = [&](std::uint32_t image) {
    return image < static_cast<std::uint32_t>(rows * cols);
  };
  for (const auto* basis : {&reg, &lane, &warp}) {
    for (Coord c : *basis) {
      if (c.row >= rows || c.col >= cols) return false;
    }
  }
  return std::all_of(whole.images.begin(), whole.images.end(), inside) &&
         whole.rank() == log2_of(rows * cols);
}

Layout Layout::blocked(int rows, int cols, int vec, int warps, int run) {
  run = std::min({run, rows, std::max(1, rows * cols / (32 * warps * vec))});
  if (run > 1) {
    Layout out = blocked(rows / run, cols, vec, warps);
    for (auto* basis : {&out.reg, &out.lane, &out.warp}) {
      for (Coord& c : *basis) c.row *= run;
    }
    const auto after =
        std::ranges::find_if(out.reg, [&](Coord c) { return c.col == 0 || c.col >= vec; });
    std::vector<Coord> of_run;
    for (int row = 1; row < run; row *= 2) of_run.push_back({row, 0});
    out.reg.insert(after, of_run.begin(), of_run.end());
    out.rows = rows;
    return out;
  }
  Layout out{rows, cols, {}, {}, {}};
  BitSource bits(rows, cols);
  for (int i = 0; i < log2_of(vec) && bits.has_column(); ++i) out.reg.push_back(bits.next());
  for (int i = 0; i < 5; ++i) out.lane.push_back(bits.next());
  for (int i = 0; i < log2_of(warps); ++i) out.warp.push_back(bits.next());
  while (bits.has_any()) out.reg.push_back(bits.next());
  return out;
}

Layout Layout::fma_accumulator(int rows, int cols, int warps) {
  Layout out{rows, cols, {}, {}, {}};
  int row = 1;
  int col = 1;
  const auto along_columns = [&](std::vector<Coord>& to, int limit) {
    for (; col < std::min(cols, limit); col *= 2) to.push_back({0, col});
  };
  const auto along_rows = [&](std::vector<Coord>& to, std::size_t bits) {
    for (; row < rows && to.size() < bits; row *= 2) to.push_back({row, 0});
  };
  along_columns(out.reg, 4);
  along_columns(out.lane, 32);
  along_rows(out.lane, 5);
  const auto warp_bits = static_cast<std::size_t>(log2_of(warps));
  along_rows(out.warp, warp_bits);
  for (; col < cols && out.warp.size() < warp_bits; col *= 2) out.warp.push_back({0, col});
  out.lane.resize(5);
  out.warp.resize(warp_bits);
  along_columns(out.reg, cols);
  along_rows(out.reg, 32);
  return out;
}

Conversion convert(const Layout& from, const Layout& to) {
  const auto tile_bits = log2_of(from.rows * from.cols);
  const auto back = from.map().inverse(tile_bits);
  if (!back) throw_internal("layout", "a layout that does not cover its tile");
  const int reg_bits = static_cast<int>(from.reg.size());
  Conversion out{LayoutChange::kNone, compose(*back, to.map())};
  if (from == to) return out;
  // A thread or warp that holds a copy itself uses that one.
  const auto keep_own = [&](int first, int own_first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_copy = from.map().images[static_cast<std::size_t>(first) + i] == 0;
      if (is_copy) {
        out.source.images[static_cast<std::size_t>(own_first) + i] ^=
            std::uint32_t{1} << (first + static_cast<int>(i));
      }
    }
  };
  const int to_bits = static_cast<int>(to.reg.size());
  keep_own(reg_bits, to_bits, 5);
  keep_own(reg_bits + 5, to_bits + 5, from.warp.size());
  const std::uint32_t reg_mask = (std::uint32_t{1} << reg_bits) - 1;
  const std::uint32_t lane_mask = std::uint32_t{31} << reg_bits;
  bool same_warp = true;
  bool same_lane = true;
  bool one_register = true;  // the register does not depend on the lane
  for (int i = 0; i < out.source.bits(); ++i) {
    const std::uint32_t image = out.source.images[i];
    const std::uint32_t own = i < to_bits ? 0 : std::uint32_t{1} << (reg_bits + i - to_bits);
    same_warp = same_warp && ((image ^ own) & ~(reg_mask | lane_mask)) == 0;
    same_lane = same_lane && ((image ^ own) & lane_mask) == 0;
    if (i >= to_bits) one_register = one_register && (image & reg_mask) == 0;
  }
  out.change = !same_warp || !one_register ? LayoutChange::kShared
               : same_lane                 ? LayoutChange::kRegisters
                                           : LayoutChange::kShuffle;
  return out;
}

LinearMap column_registers(const Layout& wide, const Layout& narrow) {
  LinearMap out;
  for (Coord c : wide.reg) {
    const auto at = std::find(narrow.reg.begin(), narrow.reg.end(), Coord{c.row, 0});
    out.images.push_back(at == narrow.reg.end() ? 0
                                                : std::uint32_t{1} << (at - narrow.reg.begin()));
  }
  return out;
}

ReductionParts reduction_parts(const Layout& from) {
  ReductionParts parts;
  int most = 0;
  for (const Coord c : from.warp) {
    parts.of_warps *= c.col != 0 ? 2 : 1;
    most = std::max(most, c.col);
  }
  for (const Coord c : from.lane) {
    if (c.col == 0) return parts;
    most = std::max(most, c.col);
  }
  for (std::size_t bit = 0; bit < from.reg.size(); ++bit) {
    const Coord c = from.reg[bit];
    if (c.row != 0 || c.col <= most || 2 * parts.count() > ReductionParts::kMostParts) continue;
    parts.bits.push_back(bit);
  }
  return parts;
}

SharedLayout SharedLayout::swizzled(int rows, int cols, int element_bytes, int row_step) {
  const int piece = 16 / element_bytes;
  if (row_step == kPanels) {
    const int width = std::min(cols, 128 / element_bytes);
    SharedLayout panels = swizzled(rows, width, element_bytes);
    panels.cols = cols;
    auto& images = panels.to_offset.images;
    for (int col = width, at = log2_of(width); col < cols; col *= 2, ++at) {
      images.insert(images.begin() + at, static_cast<std::uint32_t>(col * rows));
    }
    return panels;
  }
  // One wavefront reads 128 bytes. Rows shorter than that share a phase.
  const int in_line = std::max(1, 128 / (cols * element_bytes));
  const int max_phase = std::max(1, std::min(8 / in_line, cols / piece));
  const bool in_pairs = row_step == kPairsOfRows;
  const int per_phase = std::max(in_line, in_pairs ? 1 : row_step);
  SharedLayout out{rows, cols, LinearMap::identity(log2_of(rows * cols))};
  const int col_bits = log2_of(cols);
  if (in_pairs) {
    // Makes the rows of one access adjacent: bits 0, 2 and 3 of a row, then bit 1.
    auto& images = out.to_offset.images;
    const auto bit1 = images.begin() + col_bits + 1;
    std::rotate(bit1, bit1 + 2, bit1 + 3);
  }
  for (int phase = 1; phase < max_phase && per_phase * phase < rows; phase *= 2) {
    const int place = log2_of(per_phase * phase);
    const int row_bit = col_bits + (!in_pairs || place < 1 || place > 3 ? place : place % 3 + 1);
    out.to_offset.images[row_bit] ^= static_cast<std::uint32_t>(phase * piece);
  }
  return out;
}

}  // namespace braid::tile
