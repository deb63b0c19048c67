#include "codegen/tile/remote.h"

#include <algorithm>
#include <set>

#include "codegen/tile/op_info.h"

namespace braid::tile {

namespace {

/// The arena address, of one rank or of all, that a pointer is derived from.
Id remote_of(const Program& p, Id pointer) {
  while (p.at(pointer).op == Op::kPtrAdd) pointer = p.at(pointer).args[0];
  return op_info(p.at(pointer).op).leads_to_arena ? pointer : kNone;
}

/// Whether a pointer leads to this rank's own arena through its rank.
bool is_own(const Program& p, Id pointer) {
  const Id peer = remote_of(p, pointer);
  if (peer == kNone || p.at(peer).op != Op::kPeer) return false;
  const Inst& rank = p.at(p.at(peer).args[1]);
  return rank.op == Op::kParam && p.params[rank.index].what.kind == KernelParam::Kind::kRank;
}

bool is_operand(const KernelParam* what) {
  return what != nullptr && (what->kind == KernelParam::Kind::kResultOffset ||
                             what->kind == KernelParam::Kind::kOffset);
}
bool is_output(const KernelParam* what) { return what->kind == KernelParam::Kind::kResultOffset; }

/// Whether the value depends on whether the step closes a run.
bool knows_closing(const Program& p, Id id) {
  if (id == kNone) return false;
  const Inst& inst = p.at(id);
  if (inst.op == Op::kParam) {
    return p.params[inst.index].what.kind == KernelParam::Kind::kClosing;
  }
  return std::any_of(inst.args.begin(), inst.args.end(),
                     [&](Id arg) { return knows_closing(p, arg); });
}

}  // namespace

const KernelParam* symmetric_buffer(const Program& p, Id pointer) {
  const Id peer = remote_of(p, pointer);
  if (peer == kNone) return nullptr;
  Id offset = p.at(peer).args[0];
  while (p.at(offset).op == Op::kMap) offset = p.at(offset).args[0];
  if (p.at(offset).op != Op::kParam) return nullptr;
  return &p.params[p.at(offset).index].what;
}

bool meets(const Program& p) {
  return std::any_of(p.body.begin(), p.body.end(), [&](Id id) {
    const Inst& inst = p.at(id);
    return inst.op == Op::kWait && inst.args[1] == kNone && !knows_closing(p, inst.args[2]);
  });
}

// Scratch belongs to the step. Where a rank writes in its peers' memory, they write in its own. A
// store to all ranks stands between two barriers (verify), so it is complete on each rank within
// the step, like a local store.
std::vector<Clobbered> clobbered_operands(const Program& p) {
  std::set<Clobbered> found;
  for (const Inst& inst : p.insts) {
    const OpInfo& info = op_info(inst.op);
    if (!info.writes) continue;
    const Id pointer = inst.args[info.pointer];
    const KernelParam* what = symmetric_buffer(p, pointer);
    if (is_operand(what)) found.insert({is_output(what), what->index});
  }
  return {found.begin(), found.end()};
}

bool is_multicast(const Program& p, Id pointer) {
  const Id address = remote_of(p, pointer);
  return address != kNone && p.at(address).op == Op::kMulticast;
}

// Multimem reads and writes complete within the step.
std::vector<RemoteAccess> remote_accesses(const Program& p) {
  std::set<RemoteAccess> found;
  for (const Inst& inst : p.insts) {
    const OpInfo& info = op_info(inst.op);
    if (info.pointer < 0 || info.multimem) continue;
    const Id pointer = inst.args[info.pointer];
    const KernelParam* what = symmetric_buffer(p, pointer);
    if (is_operand(what) && !is_own(p, pointer)) {
      found.insert({is_output(what), what->index, info.writes});
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace braid::tile
