#include "codegen/tile/fragments.h"

#include <algorithm>

#include "braid/error.h"

namespace braid::tile {
namespace {

/// Warp bits: along the columns, along the rows, then copies.
std::vector<Coord> warp_basis(const WarpGrid& warps, int col, int row) {
  std::vector<Coord> out;
  for (int i = 1; i < warps.n; i *= 2) out.push_back({0, col * i});
  for (int i = 1; i < warps.m; i *= 2) out.push_back({row * i, 0});
  for (int i = 1; i < warps.copies; i *= 2) out.push_back({});
  return out;
}

}  // namespace

WarpGrid warp_grid(int rows, int cols, int warps, int warps_m) {
  WarpGrid grid{std::min(warps_m, std::max(1, rows / 16)), 1, 1};
  grid.n = std::min(warps / warps_m, std::max(1, cols / 16));
  // Warps beyond the columns take rows.
  while (grid.m * grid.n < warps && grid.m * 32 <= rows) grid.m *= 2;
  grid.copies = warps / (grid.m * grid.n);
  return grid;
}

Layout mma_accumulator(int rows, int cols, const WarpGrid& warps, Columns columns) {
  // lane = 4 * group + t; registers (0,1): row group, columns 2t, 2t+1; registers (2,3): row
  // group + 8.
  Layout out{rows, cols, {{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {}};
  int next = 8;
  if (columns == Columns::kInPairs) {
    // Register 0 belongs to one fragment, register 1 to the other.
    out.reg = {{0, 1}, {0, 2}, {8, 0}};
    out.lane[0] = {0, 4};
    out.lane[1] = {0, 8};
    next = 16;
  }
  for (int c = next; c < cols / warps.n; c *= 2) out.reg.push_back({0, c});
  for (int r = 16; r < rows / warps.m; r *= 2) out.reg.push_back({r, 0});
  out.warp = warp_basis(warps, cols / warps.n, rows / warps.m);
  return out;
}

GroupGrid group_grid(int rows, int warps, int rows_of_product) {
  const int groups = std::max(1, warps / kWarpsOfGroup);
  const int along_rows = std::clamp(rows / rows_of_product, 1, groups);
  return {along_rows, groups / along_rows};
}

Layout wgmma_accumulator(int rows, int cols, int warps) {
  const auto [along_rows, along_cols] = group_grid(rows, warps);
  Layout out{rows, cols, {{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {}};
  for (int c = 8; c < cols / along_cols; c *= 2) out.reg.push_back({0, c});
  for (int r = 64; r < rows / along_rows; r *= 2) out.reg.push_back({r, 0});
  out.warp = {{16, 0}, {32, 0}};
  for (int g = 1; g < along_rows; g *= 2) out.warp.push_back({rows / along_rows * g, 0});
  for (int g = 1; g < along_cols; g *= 2) out.warp.push_back({0, cols / along_cols * g});
  return out;
}

Layout sums_layout(int rows, int cols, int warps) {
  const auto [along_rows, along_cols] = group_grid(rows, warps, kRowsOfSums);
  Layout out{rows, cols, {}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}}, {{32, 0}, {64, 0}}};
  for (int g = 1; g < along_rows; g *= 2) out.warp.push_back({rows / along_rows * g, 0});
  for (int g = 1; g < along_cols; g *= 2) out.warp.push_back({0, kColumnsOfLoad * g});
  for (int c = 1; c < cols; c *= 2) {
    const bool is_of_groups = c >= kColumnsOfLoad && c < kColumnsOfLoad * along_cols;
    if (!is_of_groups) out.reg.push_back({0, c});
  }
  for (int r = kRowsOfSums; r < rows / along_rows; r *= 2) out.reg.push_back({r, 0});
  return out;
}

Layout mma_operand_a(int rows, int k, int element_bytes, const WarpGrid& warps) {
  const int word = 4 / element_bytes;
  Layout out{rows, k, {}, {{0, word}, {0, 2 * word}, {1, 0}, {2, 0}, {4, 0}}, {}};
  for (int e = 1; e < word; e *= 2) out.reg.push_back({0, e});
  out.reg.push_back({8, 0});
  for (int e = 4 * word; e < k; e *= 2) out.reg.push_back({0, e});
  for (int r = 16; r < rows / warps.m; r *= 2) out.reg.push_back({r, 0});
  out.warp = warp_basis(warps, 0, rows / warps.m);
  return out;
}

Layout mma_operand_b(int k, int cols, int element_bytes, const WarpGrid& warps, Columns columns) {
  const int word = 4 / element_bytes;
  const bool in_pairs = columns == Columns::kInPairs;
  const int c = in_pairs ? 2 : 1;
  Layout out{k, cols, {}, {{word, 0}, {2 * word, 0}, {0, c}, {0, 2 * c}, {0, 4 * c}}, {}};
  for (int e = 1; e < word; e *= 2) out.reg.push_back({e, 0});
  for (int e = 4 * word; e < k; e *= 2) out.reg.push_back({e, 0});
  for (int n = 8; n < cols / warps.n; n *= 2) out.reg.push_back({0, in_pairs && n == 8 ? 1 : n});
  out.warp = warp_basis(warps, cols / warps.n, 0);
  return out;
}

MatrixLoad matrix_load(const Layout& operand, int element_bytes, const std::vector<int>& matrices) {
  const int word_bits = log2_of(4 / element_bytes);
  const std::vector<Coord>& reg = operand.reg;
  const std::vector<Coord>& lane = operand.lane;
  // A row of a matrix has 16 bytes: words for four lanes; or, transposed, elements for eight groups
  // of lanes.
  std::vector<Coord> straight(reg.begin(), reg.begin() + word_bits);
  straight.insert(straight.end(), {lane[0], lane[1]});
  std::vector<Coord> across{lane[2], lane[3], lane[4]};
  const auto is_row = [](const std::vector<Coord>& bits) {
    for (std::size_t i = 0; i < bits.size(); ++i) {
      if (bits[i] != Coord{0, 1 << i}) return false;
    }
    return true;
  };
  MatrixLoad load{!is_row(straight), operand};
  std::vector<Coord>& rows = load.rows.lane;
  if (!load.transposed) {
    rows = across;
  } else {
    // With 8-bit elements a row is a column of two fragments; half a word is two of its rows.
    const auto next = reg[matrices[1]];
    if (element_bytes == 1) across.insert(across.begin(), next);
    if (!is_row(across)) throw_internal("ldmatrix", "no form of it loads this operand");
    rows = {straight[0], lane[0], lane[1]};
    if (element_bytes == 1) rows.push_back(straight[1]);
  }
  for (int bit : matrices) {
    if (rows.size() < 5) rows.push_back(reg[bit]);
  }
  load.rows.reg.clear();
  for (int bit = word_bits; bit < static_cast<int>(reg.size()); ++bit) {
    if (std::find(matrices.begin(), matrices.end(), bit) == matrices.end()) {
      load.rows.reg.push_back(reg[bit]);
    }
  }
  return load;
}

}  // namespace braid::tile
