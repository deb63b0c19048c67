#include "codegen/passes/recomputed.h"

#include <algorithm>

#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

bool is_recomputed(const Program& p, const std::vector<bool>& out, const Inst& inst) {
  if (inst.type.is_scalar() || !op_info(inst.op).pure) return false;
  if (inst.args.empty()) return true;
  if (inst.type.kind == Kind::kF32 || inst.type.cols == 1) return false;
  return std::all_of(inst.args.begin(), inst.args.end(), [&](Id arg) {
    const Type& type = p.at(arg).type;
    const bool small = type.is_scalar() || (type.cols == 1 && type.kind != Kind::kF32);
    return small || out[arg];
  });
}

}  // namespace

std::vector<bool> recomputed_tiles(const Program& p) {
  std::vector<bool> out(p.insts.size(), false);
  std::vector<bool> wanted(p.insts.size(), false);
  const auto want = [&](Id id) { wanted[id] = true; };
  for_each_inst(p, [&](Id id) {
    const Inst& inst = p.at(id);
    const int value = op_info(inst.op).value;
    if (value >= 0) want(inst.args[value]);
    if (op_info(inst.op).multiplies) want(inst.args[0]), want(inst.args[1]);
    if (inst.op == Op::kReduce) want(inst.args[0]);
    // A yield is written while other carried values change.
    for (Id yield : inst.yields) want(yield);
  });
  for_each_inst(p, [&](Id id) {
    const auto at = static_cast<std::size_t>(id);
    out[at] = !wanted[at] && is_recomputed(p, out, p.at(id));
  });
  return out;
}

}  // namespace braid::tile
