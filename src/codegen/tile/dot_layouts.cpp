#include "codegen/tile/dot_layouts.h"

#include "codegen/tile/fragments.h"
#include "codegen/units.h"

namespace braid::tile {
namespace {

/// The extent along which it multiplies.
int extent_of_k(const Program& p, const Inst& dot) {
  const Type& a = p.at(dot.args[0]).type;
  return dot.trans_a ? a.rows : a.cols;
}

/// Whether pairs of rows of a shared B become columns of two fragments: as ldmatrix.trans moves
/// 16 bits, so it is where 8-bit elements are stored along N.
bool has_columns_in_pairs(const Inst& dot) { return dtype_size(dot.dtype) == 1 && !dot.trans_b; }

}  // namespace

DotLayouts dot_layouts(const Program& p, const Inst& dot) {
  return unit_of(p, dot)->multiplies->layouts(p, dot);
}

DotLayouts mma_layouts(const Program& p, const Inst& dot) {
  const int rows = dot.type.rows;
  const int cols = dot.type.cols;
  const int k = extent_of_k(p, dot);
  const WarpGrid warps = warp_grid(rows, cols, p.num_warps, p.warps_m);
  const int bytes = static_cast<int>(dtype_size(dot.dtype));
  const Columns columns = has_columns_in_pairs(dot) ? Columns::kInPairs : Columns::kInOrder;
  return {mma_accumulator(rows, cols, warps, columns), mma_operand_a(rows, k, bytes, warps),
          mma_operand_b(k, cols, bytes, warps, columns)};
}

int mma_row_step(const Inst& dot, std::size_t side) {
  return side == 1 && has_columns_in_pairs(dot) ? SharedLayout::kPairsOfRows : 1;
}

DotLayouts wgmma_layouts(const Program& p, const Inst& dot) {
  // Words of an operand in registers lie as sums do.
  return {wgmma_accumulator(dot.type.rows, dot.type.cols, p.num_warps),
          wgmma_accumulator(dot.type.rows, extent_of_k(p, dot), p.num_warps),
          {}};
}

int wgmma_row_step(const Inst& /*dot*/, std::size_t /*side*/) { return SharedLayout::kPanels; }

DotLayouts fma_layouts(const Program& p, const Inst& dot) {
  const int rows = dot.type.rows;
  const int cols = dot.type.cols;
  const int k = extent_of_k(p, dot);
  DotLayouts out{Layout::fma_accumulator(rows, cols, p.num_warps),
                 {rows, k, {}, {}, {}},
                 {k, cols, {}, {}, {}}};
  for (int bit = 1; bit < k; bit *= 2) {
    out.a.reg.push_back({0, bit});
    out.b.reg.push_back({bit, 0});
  }
  for (Coord c : out.accumulator.reg) {
    if (c.row != 0) out.a.reg.push_back({c.row, 0});
    if (c.col != 0) out.b.reg.push_back({0, c.col});
  }
  for (Coord c : out.accumulator.lane) {
    out.a.lane.push_back({c.row, 0});
    out.b.lane.push_back({0, c.col});
  }
  for (Coord c : out.accumulator.warp) {
    out.a.warp.push_back({c.row, 0});
    out.b.warp.push_back({0, c.col});
  }
  return out;
}

int mma_steps(const Program& p, const Inst& dot) {
  const Type& a = p.at(dot.args[0]).type;
  return (dot.trans_a ? a.rows : a.cols) / units::kMmaSync.multiplies->step(dot.dtype);
}

int fma_row_step(const Inst& dot, std::size_t side) {
  // The lanes own four columns each, which are rows of a transposed B.
  return side == 1 && dot.trans_b ? 4 : 1;
}

}  // namespace braid::tile
