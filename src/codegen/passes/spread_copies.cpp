// The pipeliner starts all copies of a step behind the barrier at its beginning. There all warps
// would queue for the same unit at one time, with the loads of the first fragments behind them.
// This pass cuts the products of matrix instructions into their steps of K, and the copies of a
// thread into as many parts, and puts a part behind each step:
//
//     copies; commit_group; dot      ->      step 0 of dot; first copies; step 1; next copies; ...;
//                                            commit_group
//
// A loop with two products is left alone: the addresses of copies beside two sums are too many
// registers.
//
// The slot that is filled has been read before the barrier, so a copy may start at any time in the
// step. The group of copies ends behind the last one, and each step still has one group.

#include "codegen/passes/spread_copies.h"

#include <algorithm>

#include "codegen/tile/dot_layouts.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"
#include "codegen/units.h"

namespace braid::tile {
namespace {

class Spreader {
 public:
  explicit Spreader(Program& p) : p_(p) {}

  void loop(Id id) {
    const std::vector<Id> body = p_.at(id).body;
    const auto is = [&](Op op) { return [this, op](Id at) { return p_.at(at).op == op; }; };
    const auto copy = std::ranges::find_if(body, is(Op::kCopyToShared));
    const auto commit = std::find_if(copy, body.end(), is(Op::kCommitGroup));
    const auto dot = std::find_if(commit, body.end(), is(Op::kDot));
    if (dot == body.end() || std::any_of(dot + 1, body.end(), is(Op::kDot))) return;
    // Nothing is moved past an instruction that meets other threads, or memory that others see.
    if (!std::all_of(copy, dot + 1, [&](Id at) { return may_pass(at); })) return;

    std::vector<Id> copies;
    std::vector<Id> out(body.begin(), copy);
    for (auto at = copy; at != dot; ++at) {
      const Op op = p_.at(*at).op;
      if (op == Op::kCopyToShared) copies.push_back(*at);
      if (op != Op::kCopyToShared && at != commit) out.push_back(*at);
    }
    int accesses = 0;
    for (Id at : copies) accesses += accesses_of(p_.at(at));

    const Inst whole = p_.at(*dot);
    const int steps = mma_steps(p_, whole);
    Id sum = whole.args[2];
    for (int k = 0; k < steps; ++k) {
      Inst part = whole;
      part.args[2] = sum;
      part.first = k;
      part.last = k + 1;
      sum = *dot;  // keeps its name in the last step
      if (k + 1 < steps) {
        p_.insts.push_back(std::move(part));
        sum = static_cast<Id>(p_.insts.size()) - 1;
      } else {
        p_.at(sum) = std::move(part);
      }
      out.push_back(sum);
      add_copies(copies, accesses * k / steps, accesses * (k + 1) / steps, out);
    }
    out.push_back(*commit);
    out.insert(out.end(), dot + 1, body.end());
    p_.at(id).body = std::move(out);
  }

 private:
  [[nodiscard]] bool may_pass(Id id) const {
    const Inst& inst = p_.at(id);
    const OpInfo& info = op_info(inst.op);
    // A sum that is copied between the steps would be copied for each.
    if (inst.op == Op::kDot) {
      return unit_of(p_, inst) == &units::kMmaSync && inst.place == Place::kAlias;
    }
    return info.pure || info.repeatable || info.fills_shared || inst.op == Op::kCommitGroup;
  }

  [[nodiscard]] int accesses_of(const Inst& copy) const {
    return p_.layouts[copy.layout].registers() / copy.width;
  }

  /// Appends the accesses from `first` to `last`, counted over all copies.
  void add_copies(const std::vector<Id>& copies, int first, int last, std::vector<Id>& out) {
    int before = 0;
    for (Id id : copies) {
      const int count = accesses_of(p_.at(id));
      Inst part = p_.at(id);
      part.first = std::clamp(first - before, 0, count);
      part.last = std::clamp(last - before, 0, count);
      before += count;
      if (part.first == part.last) continue;
      p_.insts.push_back(std::move(part));
      out.push_back(static_cast<Id>(p_.insts.size()) - 1);
    }
  }

  Program& p_;
};

}  // namespace

void spread_copies(Program& program) {
  std::vector<Id> loops;
  for_each_inst(program, [&](Id id) {
    if (program.at(id).op == Op::kFor) loops.push_back(id);
  });
  for (Id id : loops) Spreader(program).loop(id);
}

}  // namespace braid::tile
