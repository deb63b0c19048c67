// What comes from other ranks is under way while the piece before it is worked on. Matches a loop,
// at any depth, whose own body loads from the arenas of ranks, at places that follow from the
// induction variable and from what stands outside of the loop:
//
//     load what the first iteration needs, if there is one
//     for i:  load what the next one needs, if there is one; the body, on what was loaded for it
//
// What was loaded is carried in registers: as many loads, in order, as a quarter of a thread's
// registers holds; the others stay where they were. The local loads go along as far as another
// eighth holds them, for a thread would wait for them, too, before it sends for the next piece. The
// largest blocks, whose threads have 64 registers, are left alone, for the piece itself takes
// those; and so is a loop that signals or waits for peers: nothing moves across a wait.

#include "codegen/passes/prefetch.h"

#include <algorithm>

#include "codegen/passes/ahead.h"
#include "codegen/passes/walk.h"
#include "codegen/tile/builder.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/remote.h"

namespace braid::tile {
namespace {

/// Registers of a thread that a value takes, rows side by side.
int registers_of(const Type& type, int num_warps) {
  const int elements = std::max(1, type.rows * type.cols / (32 * num_warps));
  return elements * std::max(1, value_bytes(type.kind) / 4);
}

class LoopPrefetcher {
 public:
  LoopPrefetcher(Program& p, Id loop)
      : p_(p), b_(p), loop_(p.at(loop)), ahead_(p, loop_, /*last=*/Op::kPeer), loop_id_(loop) {}

  /// What is to stand before the loop.
  std::vector<Id> run() {
    std::vector<Id> before;
    find_loads();
    if (loads_.empty()) return before;
    const Id position = loop_.body_args[0];
    std::vector<Id> body;
    b_.set_block(&before);
    const std::vector<Id> first = load_for(loop_.args[0]);
    b_.set_block(&body);
    const std::vector<Id> next = load_for(b_.map(Fn::kAdd, {position, loop_.args[2]}));
    std::copy_if(loop_.body.begin(), loop_.body.end(), std::back_inserter(body), [&](Id id) {
      return std::find(loads_.begin(), loads_.end(), id) == loads_.end();
    });
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      const auto number = static_cast<int>(loop_.body_args.size());
      p_.at(loads_[i]) = {
          .op = Op::kForArg, .type = p_.at(loads_[i]).type, .args = {first[i]}, .index = number};
      loop_.args.push_back(first[i]);
      loop_.body_args.push_back(loads_[i]);
      loop_.yields.push_back(next[i]);
    }
    loop_.body = std::move(body);
    p_.at(loop_id_) = std::move(loop_);
    return before;
  }

 private:
  void find_loads() {
    bool meets = false;
    for_each_inst(p_, loop_.body, [&](Id id) {
      const Op op = p_.at(id).op;
      meets = meets || op == Op::kSignal || op == Op::kWait || op == Op::kLlLoad;
    });
    constexpr int kLeastRegisters = 128;
    const int registers = registers_of_thread(p_.num_warps);
    if (meets || registers < kLeastRegisters) return;
    left_ = registers / 4;
    for (Id id : loop_.body) {
      if (is_of_arena(id)) take(id);
    }
    if (loads_.empty()) return;
    left_ += registers / 8;
    for (Id id : loop_.body) {
      if (p_.at(id).op == Op::kLoad && !is_of_arena(id) && ahead_.varies(id)) take(id);
    }
  }

  bool is_of_arena(Id id) const {
    const Inst& inst = p_.at(id);
    const bool loads = inst.op == Op::kLoad || inst.op == Op::kMultimemReduce;
    return loads && symmetric_buffer(p_, inst.args[0]) != nullptr;
  }

  /// Where its place is known ahead, and there is room.
  void take(Id load) {
    const Inst& inst = p_.at(load);
    const int registers = registers_of(inst.type, p_.num_warps);
    const bool known = std::all_of(inst.args.begin(), inst.args.end(),
                                   [&](Id arg) { return ahead_.can_make(arg); });
    if (!known || registers > left_) return;
    left_ -= registers;
    loads_.push_back(load);
  }

  /// The loads of the iteration at `position`; nothing where there is none.
  std::vector<Id> load_for(Id position) {
    Cloner clone(b_, ahead_, position);
    const Id exists = b_.map(Fn::kLt, {position, loop_.args[1]});
    std::vector<Id> values;
    for (Id load : loads_) {
      Inst inst = p_.at(load);
      for (Id& arg : inst.args) arg = clone(arg);
      inst.args.resize(3, kNone);
      Id& mask = inst.args[2];
      mask = mask == kNone ? exists : b_.map(Fn::kAnd, {mask, exists});
      values.push_back(b_.append(std::move(inst)));
    }
    return values;
  }

  Program& p_;
  Builder b_;
  Inst loop_;
  Ahead ahead_;
  Id loop_id_;
  int left_ = 0;  ///< registers
  std::vector<Id> loads_;
};

void prefetch_block(Program& p, std::vector<Id>& block) {
  std::vector<Id> out;
  for (Id id : block) {
    if (p.at(id).op == Op::kFor) {
      std::vector<Id> body = std::move(p.at(id).body);
      prefetch_block(p, body);
      p.at(id).body = std::move(body);
      const std::vector<Id> before = LoopPrefetcher(p, id).run();
      out.insert(out.end(), before.begin(), before.end());
    }
    out.push_back(id);
  }
  block = std::move(out);
}

}  // namespace

void prefetch(Program& p) { prefetch_block(p, p.body); }

}  // namespace braid::tile
