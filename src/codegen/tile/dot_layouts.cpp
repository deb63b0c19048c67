#include "codegen/tile/dot_layouts.h"

#include "codegen/tile/fragments.h"

namespace braid::tile {

DotLayouts dot_layouts(const Program& p, const Inst& dot) {
  const Type& a = p.at(dot.args[0]).type;
  const int rows = dot.type.rows;
  const int cols = dot.type.cols;
  const int k = dot.trans_a ? a.rows : a.cols;
  if (dot.dtype != DType::kF32) {
    const WarpGrid warps = warp_grid(rows, cols, p.num_warps, p.warps_m);
    const int bytes = static_cast<int>(dtype_size(dot.dtype));
    const Columns columns = bytes == 1 && !dot.trans_b ? Columns::kInPairs : Columns::kInOrder;
    return {mma_accumulator(rows, cols, warps, columns), mma_operand_a(rows, k, bytes, warps),
            mma_operand_b(k, cols, bytes, warps, columns)};
  }
  // Each thread needs the rows and the columns of its elements, at every k.
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
  constexpr int kBytes = 32;
  const Type& a = p.at(dot.args[0]).type;
  return (dot.trans_a ? a.rows : a.cols) * static_cast<int>(dtype_size(dot.dtype)) / kBytes;
}

}  // namespace braid::tile
