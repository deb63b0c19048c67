// Dead code elimination. Live are instructions with an effect, loops that contain a live
// instruction or whose results are used, and everything that these use. A live loop keeps its
// carried values.

#include "codegen/passes/remove_dead.h"

#include <algorithm>

#include "codegen/tile/op_info.h"

namespace braid::tile {
namespace {

class Liveness {
 public:
  explicit Liveness(Program& p) : p_(p), alive_(p.insts.size(), false) {}

  void run() {
    effects(p_.body);
    filter(p_.body);
  }

 private:
  /// Marks instructions with an effect; returns whether there was any.
  bool effects(const std::vector<Id>& block) {
    bool any = false;
    for (Id id : block) {
      const Inst& inst = p_.at(id);
      const bool effect = op_info(inst.op).has_body ? effects(inst.body) : has_effect(inst.op);
      if (effect) mark(id);
      any = any || effect;
    }
    return any;
  }

  void mark(Id id) {
    if (id == kNone || alive_[id]) return;
    alive_[id] = true;
    const Inst& inst = p_.at(id);
    for (Id arg : inst.args) mark(arg);
    for (Id yield : inst.yields) mark(yield);
  }

  void filter(std::vector<Id>& block) {
    std::erase_if(block, [&](Id id) { return !alive_[id]; });
    for (Id id : block) filter(p_.at(id).body);
  }

  Program& p_;
  std::vector<bool> alive_;
};

}  // namespace

void remove_dead(Program& program) { Liveness(program).run(); }

}  // namespace braid::tile
