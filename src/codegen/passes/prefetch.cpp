// Prefetching into registers: loads for later pieces are in flight while earlier pieces are worked
// on. Matches a loop, at any depth, whose own body loads from the arenas of ranks, or reduces what
// it loads, at addresses that depend only on the induction variable and on values from outside the
// loop:
//
//     load what the first iterations need, if there are as many
//     for i:  load what a later one needs, if there is one; the body, on what was loaded for it
//
// Loaded values are carried in registers, packed as in memory. Loads from arenas are taken, in
// order, as far as a quarter of a thread's registers holds them; the others stay in place. Local
// loads are taken as far as another eighth holds them, since a thread would otherwise wait for them
// before it requests the next piece. The loop runs as many iterations ahead as these registers
// allow, up to four for loads from other ranks and two for loads from this one: a link, and memory,
// need more bytes in flight than one piece per thread. The body is then unrolled by one more than
// that, each copy with registers of its own, because moving a register from turn to turn would wait
// for its load. Local loads that are the same in every iteration move in front of the loop where
// room is left. The largest blocks, with 64 registers per thread, are left alone, since the piece
// itself needs those; so is a loop with dots, whose registers hold sums and whose operands come by
// a ring; and one that signals or waits for peers: nothing moves across a wait.

#include "codegen/passes/prefetch.h"

#include <algorithm>

#include "codegen/passes/ahead.h"
#include "codegen/tile/builder.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/remote.h"
#include "codegen/tile/walk.h"

namespace braid::tile {
namespace {

/// The most iterations ahead for loads from other ranks, and for loads from this GPU alone, whose
/// memory all multiprocessors share.
constexpr int kMostAhead = 4;
constexpr int kMostAheadHere = 2;

/// Registers of a thread for a load, rows side by side. Values are widened later, except 8-bit
/// floats, which compilers widen at once.
int registers_of(const Inst& load, int num_warps) {
  const int elements = std::max(1, load.type.rows * load.type.cols / (32 * num_warps));
  const auto bytes = static_cast<int>(is_float8(load.dtype) ? 4 : dtype_size(load.dtype));
  return std::max(1, elements * bytes / 4);
}

class LoopPrefetcher {
 public:
  LoopPrefetcher(Program& p, Id loop)
      : p_(p), b_(p), loop_(p.at(loop)), ahead_(p, loop_, /*loads=*/false), loop_id_(loop) {}

  /// Transforms the loop; returns the instructions to place before it.
  std::vector<Id> run() {
    std::vector<Id> before;
    find_loads();
    if (loads_.empty()) return before;
    const Id low = loop_.args[0], step = loop_.args[2];
    const auto after = [&](Id position, int iterations) {
      if (iterations == 0) return position;
      const Id distance = iterations == 1 ? step : b_.map(Fn::kMul, {step, b_.integer(iterations)});
      return b_.map(Fn::kAdd, {position, distance});
    };
    b_.set_block(&before);
    hoist(before);
    std::vector<std::vector<Id>> first;  // for each iteration
    for (int i = 0; i < iterations_; ++i) first.push_back(load_for(after(low, i)));
    std::vector<Id> body;
    b_.set_block(&body);
    const std::vector<Id> next = load_for(after(loop_.body_args[0], iterations_));
    std::copy_if(loop_.body.begin(), loop_.body.end(), std::back_inserter(body), [&](Id id) {
      return std::find(loads_.begin(), loads_.end(), id) == loads_.end() &&
             std::find(same_.begin(), same_.end(), id) == same_.end();
    });
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      for (int ahead = 0; ahead < iterations_; ++ahead) {
        const Id from = first[ahead][i];
        const Inst carried{.op = Op::kForArg,
                           .type = p_.at(loads_[i]).type,
                           .args = {from},
                           .index = static_cast<int>(loop_.body_args.size())};
        Id value = loads_[i];
        if (ahead == 0) {
          p_.at(value) = carried;
        } else {
          value = b_.detached(carried);
          loop_.yields.push_back(value);
        }
        loop_.args.push_back(from);
        loop_.body_args.push_back(value);
      }
      loop_.yields.push_back(next[i]);
    }
    loop_.body = std::move(body);
    if (iterations_ > 1) loop_.unroll = iterations_ + 1;
    p_.at(loop_id_) = std::move(loop_);
    return before;
  }

 private:
  void find_loads() {
    bool meets = false, multiplies = false, reduces = false;
    for_each_inst(p_, loop_.body, [&](Id id) {
      const OpInfo& info = op_info(p_.at(id).op);
      meets = meets || info.signals || info.waits;
    });
    for (Id id : loop_.body) {
      multiplies = multiplies || op_info(p_.at(id).op).multiplies;
      reduces = reduces || p_.at(id).op == Op::kReduce;
    }
    constexpr int kLeastRegisters = 128;
    const int registers = registers_of_thread(p_.num_warps);
    if (meets || multiplies || registers < kLeastRegisters) return;
    const int for_arenas = registers / 4, for_local = registers / 8;
    left_ = for_arenas;
    for (Id id : loop_.body) {
      if (is_of_arena(id)) take(id);
    }
    if (loads_.empty() && !reduces) return;
    const int of_arenas = for_arenas - left_;
    left_ += for_local;
    for (Id id : loop_.body) {
      if (is_local_load(id) && ahead_.varies(id)) take(id);
    }
    if (loads_.empty()) return;
    const int of_all = for_arenas + for_local - left_;
    const int most = of_arenas > 0 ? kMostAhead : kMostAheadHere;
    while (iterations_ < most && (iterations_ + 1) * of_arenas <= for_arenas &&
           (iterations_ + 1) * of_all <= for_arenas + for_local) {
      ++iterations_;
    }
    left_ = for_arenas + for_local - iterations_ * of_all;
    for (Id id : loop_.body) {
      if (is_local_load(id) && !ahead_.varies(id) && fits(id)) same_.push_back(id);
    }
  }

  bool is_local_load(Id id) const { return p_.at(id).op == Op::kLoad && !is_of_arena(id); }

  bool is_of_arena(Id id) const {
    const Inst& inst = p_.at(id);
    const OpInfo& info = op_info(inst.op);
    return info.reads && info.has_result && symmetric_buffer(p_, inst.args[0]) != nullptr;
  }

  void take(Id load) {
    if (fits(load)) loads_.push_back(load);
  }

  /// Whether its address is known ahead and there is room; if so, it takes the room.
  bool fits(Id load) {
    const Inst& inst = p_.at(load);
    const int registers = registers_of(inst, p_.num_warps);
    const bool known = std::all_of(inst.args.begin(), inst.args.end(),
                                   [&](Id arg) { return ahead_.can_make(arg); });
    if (!known || registers > left_) return false;
    left_ -= registers;
    return true;
  }

  /// Moves loads that are the same in every iteration in front of the loop.
  void hoist(std::vector<Id>& before) {
    Cloner clone(b_, ahead_, loop_.args[0]);
    for (const Id load : same_) {
      std::vector<Id> args = p_.at(load).args;
      for (Id& arg : args) arg = clone(arg);
      p_.at(load).args = std::move(args);
      before.push_back(load);
    }
  }

  /// The loads of the iteration at `position`; empty where there is none.
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
  int left_ = 0;        ///< registers left
  int iterations_ = 1;  ///< iterations ahead
  std::vector<Id> loads_;
  std::vector<Id> same_;  ///< loads moved in front of the loop
};

void prefetch_block(Program& p, std::vector<Id>& block) {
  std::vector<Id> out;
  for (Id id : block) {
    if (!p.at(id).body.empty()) {
      std::vector<Id> body = std::move(p.at(id).body);
      prefetch_block(p, body);
      p.at(id).body = std::move(body);
    }
    if (p.at(id).op == Op::kFor) {
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
