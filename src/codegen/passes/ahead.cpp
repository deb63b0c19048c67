#include "codegen/passes/ahead.h"

#include <algorithm>

#include "codegen/tile/op_info.h"

namespace braid::tile {

bool Ahead::can_make(Id id) {
  if (id == kNone || id == induction_) return true;
  if (is_carried(id)) return false;
  if (!in_body(id)) return true;
  if (const auto it = can_make_.find(id); it != can_make_.end()) return it->second;
  const Inst& inst = p_.at(id);
  const OpInfo& info = op_info(inst.op);
  const bool fits = info.pure || (info.repeatable && (loads_ || !info.reads));
  const bool result = fits && std::all_of(inst.args.begin(), inst.args.end(),
                                          [&](Id arg) { return can_make(arg); });
  return can_make_[id] = result;
}

bool Ahead::varies(Id id) {
  if (args_.contains(id)) return true;
  if (!in_body(id)) return false;
  if (const auto it = varies_.find(id); it != varies_.end()) return it->second;
  const std::vector<Id>& args = p_.at(id).args;
  return varies_[id] = std::any_of(args.begin(), args.end(), [&](Id arg) { return varies(arg); });
}

Id Cloner::operator()(Id id) {
  if (id == kNone) return id;
  if (auto it = done_.find(id); it != done_.end()) return it->second;
  if (!ahead_.in_body(id)) return id;
  Inst copy = b_.program().at(id);
  for (Id& arg : copy.args) arg = (*this)(arg);
  return done_[id] = b_.append(std::move(copy));
}

}  // namespace braid::tile
