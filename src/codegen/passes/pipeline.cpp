// Software pipelining. Matches a loop, at any depth, whose body holds dots. An operand of such a
// dot that the body makes from the induction variable and from what stands outside alone becomes a
// ring of num_stages slots in shared memory; slot i % num_stages is filled num_stages - 1
// iterations ahead, by an asynchronous copy when the operand is a load, else through registers:
//
//     copy tiles 0 .. S-2, one group each
//     for i:  wait until tile i has landed; barrier; copy tile i + S-1 (if there is one); the body,
//     with dots on slot i % S
//
// One barrier per iteration is enough: the slot that is overwritten was last read in iteration i-1,
// before it. A loop inside of another one first waits until the last round's copies have landed and
// all warps have read them.
//
// An operand from outside of the loop is one tile that is filled before it. One that depends on
// carried values or other dots stays in registers. All else in the body stays where it was; checks
// of indices that can be made ahead are made with the copies. A loop that waits for peers is left
// alone: nothing moves across a wait.

#include "codegen/passes/pipeline.h"

#include <algorithm>

#include "braid/error.h"
#include "codegen/passes/ahead.h"
#include "codegen/passes/walk.h"
#include "codegen/tile/builder.h"

namespace braid::tile {
namespace {

/// An operand that moves to shared memory.
struct Ring {
  Id operand;
  DType dtype;
  int row_step;
  bool ahead;  ///< filled in the loop, ahead of its use; else once, before the loop
  Id shared = kNone;
};

class LoopPipeliner {
 public:
  LoopPipeliner(Program& p, Id loop, int num_stages, bool nested)
      : p_(p),
        b_(p),
        loop_id_(loop),
        loop_(p.at(loop)),
        stages_(num_stages),
        nested_(nested),
        ahead_(p, loop_, /*last=*/Op::kLoad) {}

  /// What is to stand before the loop.
  std::vector<Id> run() {
    find_rings();
    std::vector<Id> before;
    if (rings_.empty()) return before;
    if (stages_ < 2) throw_internal("pipeline", "num_stages must be at least 2");
    b_.set_block(&before);
    for (Ring& ring : rings_) {
      const Type type = p_.at(ring.operand).type;
      ring.shared = b_.append({.op = Op::kAllocShared,
                               .type = {Kind::kShared, type.rows, type.cols},
                               .args = {},
                               .dtype = ring.dtype,
                               .index = ring.row_step,
                               .stages = ring.ahead ? stages_ : 1});
    }
    if (nested_) b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = 0});
    for (const Ring& ring : rings_) {
      if (!ring.ahead) fill(ring, b_.integer(0), kNone, [](Id id) { return id; });
    }
    const Id low = loop_.args[0];
    const Id step = loop_.args[2];
    const Id stages = b_.integer(stages_);
    for (int s = 0; s < stages_ - 1; ++s) {
      copy_tiles(b_.map(Fn::kAdd, {low, b_.map(Fn::kMul, {step, b_.integer(s)})}), b_.integer(s));
    }

    std::vector<Id> body;
    b_.set_block(&body);
    const Id position = loop_.body_args[0];
    const Id iteration = b_.map(Fn::kDiv, {b_.map(Fn::kSub, {position, low}), step});
    const Id slot = b_.map(Fn::kRem, {iteration, stages});
    b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = stages_ - 2});
    const Id ahead =
        b_.map(Fn::kAdd, {position, b_.map(Fn::kMul, {step, b_.integer(stages_ - 1)})});
    copy_tiles(ahead,
               b_.map(Fn::kRem, {b_.map(Fn::kAdd, {iteration, b_.integer(stages_ - 1)}), stages}));
    for (Id id : loop_.body) {
      if (p_.at(id).op == Op::kCheckIndex && ahead_.can_make(id)) continue;
      if (p_.at(id).op == Op::kDot) use_rings(id, slot, body);
      body.push_back(id);
    }
    p_.at(loop_id_).body = std::move(body);
    return before;
  }

 private:
  void find_rings() {
    bool waits = false;
    for_each_inst(p_, loop_.body, [&](Id id) {
      waits = waits || p_.at(id).op == Op::kWait || p_.at(id).op == Op::kLlLoad;
    });
    if (waits) return;
    for (Id id : loop_.body) {
      const Inst dot = p_.at(id);
      if (dot.op != Op::kDot) continue;
      for (std::size_t side = 0; side < 2; ++side) {
        const Id operand = dot.args[side];
        const bool outside = !ahead_.in_body(operand) && !ahead_.is_carried(operand);
        if (p_.at(operand).type.kind == Kind::kShared || find(operand) != nullptr) continue;
        if (!outside && !ahead_.can_make(operand)) continue;
        // An FMA dot's lanes own four columns each, which are rows of a transposed B.
        const bool fma = dot.dtype == DType::kF32;
        const bool load = p_.at(operand).op == Op::kLoad;
        rings_.push_back({operand, load ? p_.at(operand).dtype : dot.dtype,
                          fma && side == 1 && dot.trans_b ? 4 : 1, !outside});
      }
    }
    // Tiles from outside alone are not worth a ring's barriers.
    if (std::none_of(rings_.begin(), rings_.end(), [](const Ring& ring) { return ring.ahead; })) {
      rings_.clear();
    }
  }

  const Ring* find(Id operand) const {
    const auto it = std::find_if(rings_.begin(), rings_.end(),
                                 [&](const Ring& ring) { return ring.operand == operand; });
    return it == rings_.end() ? nullptr : &*it;
  }

  /// Fills a slot with the operand as `value_of` gives it, where `inside` (a scalar) holds.
  template <class ValueOf>
  void fill(const Ring& ring, Id slot, Id inside, const ValueOf& value_of) {
    const Inst load = p_.at(ring.operand);
    if (load.op != Op::kLoad) {
      // Past the end the loads are masked, so nothing is read there.
      b_.append({.op = Op::kStoreShared,
                 .type = {},
                 .args = {ring.shared, slot, value_of(ring.operand)},
                 .dtype = ring.dtype});
      return;
    }
    const Id pointer = value_of(load.args[0]);
    const Id offset = value_of(load.args[1]);
    const Id mask = load.args.size() > 2 ? value_of(load.args[2]) : kNone;
    if (inside == kNone) inside = b_.integer(1, Kind::kPred);
    b_.append({.op = Op::kCopyToShared,
               .type = {},
               .args = {ring.shared, slot, pointer, offset, mask, inside},
               .dtype = load.dtype});
  }

  void copy_tiles(Id position, Id slot) {
    Cloner clone(b_, ahead_, position);
    const Id inside = b_.map(Fn::kLt, {position, loop_.args[1]});
    for (const Ring& ring : rings_) {
      if (ring.ahead) fill(ring, slot, inside, [&](Id id) { return clone(id); });
    }
    for (Id id : loop_.body) {
      if (p_.at(id).op == Op::kCheckIndex && ahead_.can_make(id)) clone(id);
    }
    b_.append({.op = Op::kCommitGroup, .type = {}, .args = {}});
  }

  void use_rings(Id id, Id slot, std::vector<Id>& body) {
    b_.set_block(&body);
    const Id first = b_.integer(0);
    Inst dot = p_.at(id);
    std::vector<Id> slots;
    for (std::size_t side = 0; side < 2; ++side) {
      const Ring* const ring = find(dot.args[side]);
      if (ring != nullptr) dot.args[side] = ring->shared;
      slots.push_back(ring != nullptr && ring->ahead ? slot : first);
    }
    dot.args.insert(dot.args.end(), slots.begin(), slots.end());
    p_.at(id) = std::move(dot);
  }

  Program& p_;
  Builder b_;
  Id loop_id_;
  Inst loop_;
  int stages_;
  bool nested_;
  Ahead ahead_;
  std::vector<Ring> rings_;
};

void pipeline_block(Program& p, std::vector<Id>& block, int num_stages, bool nested) {
  std::vector<Id> out;
  for (Id id : block) {
    if (p.at(id).op == Op::kFor) {
      std::vector<Id> body = std::move(p.at(id).body);
      pipeline_block(p, body, num_stages, true);
      p.at(id).body = std::move(body);
      const std::vector<Id> before = LoopPipeliner(p, id, num_stages, nested).run();
      out.insert(out.end(), before.begin(), before.end());
    }
    out.push_back(id);
  }
  block = std::move(out);
}

}  // namespace

void pipeline(Program& p, int num_stages) { pipeline_block(p, p.body, num_stages, false); }

}  // namespace braid::tile
