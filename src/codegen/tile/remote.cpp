#include "codegen/tile/remote.h"

#include <set>

namespace braid::tile {
namespace {

/// The symmetric buffer that a pointer leads to on a peer, or null.
const KernelParam* peers_operand(const Program& p, Id pointer) {
  while (p.at(pointer).op == Op::kPtrAdd) pointer = p.at(pointer).args[0];
  if (p.at(pointer).op != Op::kPeer) return nullptr;
  Id offset = p.at(pointer).args[0];
  while (p.at(offset).op == Op::kMap) offset = p.at(offset).args[0];
  if (p.at(offset).op != Op::kParam) return nullptr;
  const KernelParam& what = p.params[static_cast<std::size_t>(p.at(offset).index)].what;
  const bool operand =
      what.kind == KernelParam::Kind::kOffset || what.kind == KernelParam::Kind::kResultOffset;
  return operand ? &what : nullptr;
}

}  // namespace

std::vector<RemoteAccess> remote_accesses(const Program& p) {
  std::set<RemoteAccess> found;
  for (const Inst& inst : p.insts) {
    const bool write = inst.op == Op::kStore;
    if (!write && inst.op != Op::kLoad && inst.op != Op::kCopyToShared) continue;
    const KernelParam* what = peers_operand(p, inst.args[inst.op == Op::kCopyToShared ? 2 : 0]);
    if (what == nullptr) continue;
    found.insert({what->kind == KernelParam::Kind::kResultOffset, what->index, write});
  }
  return {found.begin(), found.end()};
}

}  // namespace braid::tile
