// Shared memory. Every ring of tiles, every reduction across warps and every layout change across
// warps gets its own range, in program order, at multiples of 128 bytes.

#include "codegen/passes/allocate_shared.h"

#include "codegen/tile/layout.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

int scratch_bytes(const Program& p, const Inst& inst) {
  const auto layout = [&](const Inst& of) -> const Layout& {
    return p.layouts[static_cast<std::size_t>(of.layout)];
  };
  switch (inst.op) {
    case Op::kAllocShared:
      return inst.stages * inst.type.rows * inst.type.cols *
             static_cast<int>(dtype_size(inst.dtype));
    case Op::kAllocRing:
      return inst.stages * 16;
    case Op::kReduce: {
      // One partial result for each row and each warp along the columns.
      int warps = 1;
      for (Coord c : layout(p.at(inst.args[0])).warp) warps *= c.col != 0 ? 2 : 1;
      return warps > 1 ? inst.type.rows * warps * value_bytes(inst.type.kind) : 0;
    }
    case Op::kConvertLayout: {
      const Conversion conversion = convert(layout(p.at(inst.args[0])), layout(inst));
      if (conversion.change != LayoutChange::kShared) return 0;
      return inst.type.rows * inst.type.cols * value_bytes(inst.type.kind);
    }
    default:
      return 0;
  }
}

}  // namespace

void allocate_shared(Program& p) {
  int offset = 0;
  for_each_inst(p, [&](Id id) {
    const int bytes = scratch_bytes(p, p.at(id));
    if (bytes == 0) return;
    // Where the hardware's swizzle begins anew.
    if (p.at(id).op == Op::kAllocShared && p.at(id).index == SharedLayout::kPanels) {
      offset = (offset + 1023) / 1024 * 1024;
    }
    p.at(id).shared_offset = offset;
    offset += (bytes + 127) / 128 * 128;
  });
  p.shared_bytes = offset;
}

}  // namespace braid::tile
