#include "codegen/tile/remote.h"

#include <set>

namespace braid::tile {

const KernelParam* symmetric_buffer(const Program& p, Id pointer) {
  while (p.at(pointer).op == Op::kPtrAdd) pointer = p.at(pointer).args[0];
  if (p.at(pointer).op != Op::kPeer) return nullptr;
  Id offset = p.at(pointer).args[0];
  while (p.at(offset).op == Op::kMap) offset = p.at(offset).args[0];
  if (p.at(offset).op != Op::kParam) return nullptr;
  return &p.params[static_cast<std::size_t>(p.at(offset).index)].what;
}

std::vector<RemoteAccess> remote_accesses(const Program& p) {
  std::set<RemoteAccess> found;
  for (const Inst& inst : p.insts) {
    const bool write = inst.op == Op::kStore;
    if (!write && inst.op != Op::kLoad && inst.op != Op::kCopyToShared) continue;
    const KernelParam* what = symmetric_buffer(p, inst.args[inst.op == Op::kCopyToShared ? 2 : 0]);
    if (what == nullptr) continue;
    const bool output = what->kind == KernelParam::Kind::kResultOffset;
    // Scratch is the step's own.
    if (output || what->kind == KernelParam::Kind::kOffset) {
      found.insert({output, what->index, write});
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace braid::tile
