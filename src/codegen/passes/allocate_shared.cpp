// Shared memory. Every ring of tiles and every reduction across warps has its own place, in the
// order of the program, at multiples of 128 bytes.

#include "codegen/passes/allocate_shared.h"

namespace braid::tile {

void allocate_shared(Program& p) {
  int offset = 0;
  const auto take = [&](int bytes) {
    const int at = offset;
    offset += (bytes + 127) / 128 * 128;
    return at;
  };
  for (Inst& inst : p.insts) {
    if (inst.op == Op::kAllocShared) {
      inst.shared_offset = take(inst.stages * inst.type.rows * inst.type.cols *
                                static_cast<int>(dtype_size(inst.dtype)));
    }
    if (inst.op == Op::kReduce) {
      // One partial result for each row and each warp along the columns.
      const Layout& from = p.layouts[static_cast<std::size_t>(p.at(inst.args[0]).layout)];
      int warps = 1;
      for (Coord c : from.warp) warps *= c.col != 0 ? 2 : 1;
      if (warps > 1) inst.shared_offset = take(inst.type.rows * warps * 8);
    }
  }
  p.shared_bytes = offset;
}

}  // namespace braid::tile
