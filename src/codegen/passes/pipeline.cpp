// Software pipelining. Matches an innermost loop that computes the operands of dots and nothing
// else. Each operand becomes a ring of num_stages slots in shared memory; slot i % num_stages is
// filled num_stages - 1 iterations ahead, by an asynchronous copy when the operand is a load, else
// through registers:
//
//     copy tiles 0 .. S-2, one group each
//     for i:  wait until tile i has landed; barrier; copy tile i + S-1 (if there is one); dot on
//     slot i % S
//
// One barrier per iteration is enough: the slot that is overwritten was last read in iteration i-1,
// before it.

#include "codegen/passes/pipeline.h"

#include <algorithm>
#include <map>
#include <set>

#include "braid/error.h"
#include "codegen/tile/builder.h"

namespace braid::tile {
namespace {

/// Copies, into the current block, the instructions of a loop body that a value needs, with the
/// induction variable replaced.
class Cloner {
 public:
  Cloner(Builder& builder, const std::set<Id>& body, Id induction, Id replacement)
      : b_(builder), body_(body) {
    done_[induction] = replacement;
  }
  Id operator()(Id id) {
    if (id == kNone) return id;
    if (auto it = done_.find(id); it != done_.end()) return it->second;
    if (!body_.contains(id)) return id;
    Inst copy = b_.program().at(id);
    for (Id& arg : copy.args) arg = (*this)(arg);
    return done_[id] = b_.append(std::move(copy));
  }

 private:
  Builder& b_;
  const std::set<Id>& body_;
  std::map<Id, Id> done_;
};

struct Ring {
  Id operand;
  Id shared;
};

}  // namespace

void pipeline(Program& p, int num_stages) {
  for (std::size_t at = 0; at < p.body.size(); ++at) {
    const Id loop_id = p.body[at];
    if (p.at(loop_id).op != Op::kFor) continue;
    const Inst loop = p.at(loop_id);
    std::vector<Ring> rings;
    std::vector<DType> dtypes;
    std::vector<int> row_steps;
    for (Id id : loop.body) {
      if (p.at(id).op != Op::kDot) continue;
      for (std::size_t side = 0; side < 2; ++side) {
        const Id operand = p.at(id).args[side];
        if (std::none_of(rings.begin(), rings.end(),
                         [&](const Ring& ring) { return ring.operand == operand; })) {
          rings.push_back({operand, kNone});
          dtypes.push_back(p.at(operand).op == Op::kLoad ? p.at(operand).dtype : p.at(id).dtype);
          // An FMA dot's lanes own four columns each, which are rows of a transposed B.
          const bool fma = p.at(id).dtype == DType::kF32;
          row_steps.push_back(fma && side == 1 && p.at(id).trans_b ? 4 : 1);
        }
      }
    }
    if (rings.empty()) continue;
    if (num_stages < 2) throw_internal("pipeline", "num_stages must be at least 2");

    Builder b(p);
    std::vector<Id> before;
    b.set_block(&before);
    for (std::size_t i = 0; i < rings.size(); ++i) {
      const Type type = p.at(rings[i].operand).type;
      rings[i].shared = b.append({.op = Op::kAllocShared,
                                  .type = {Kind::kShared, type.rows, type.cols},
                                  .args = {},
                                  .dtype = dtypes[i],
                                  .index = row_steps[i],
                                  .stages = num_stages});
    }
    const std::set<Id> in_body(loop.body.begin(), loop.body.end());
    const Id low = loop.args[0];
    const Id high = loop.args[1];
    const Id step = loop.args[2];
    const auto copy_tiles = [&](Id position, Id slot) {
      Cloner clone(b, in_body, loop.body_args[0], position);
      const Id inside = b.map(Fn::kLt, {position, high});
      for (const Ring& ring : rings) {
        const Inst load = p.at(ring.operand);
        if (load.op != Op::kLoad) {
          // Past the end the loads are masked, so nothing is read there.
          b.append({.op = Op::kStoreShared,
                    .type = {},
                    .args = {ring.shared, slot, clone(ring.operand)},
                    .dtype = p.at(ring.shared).dtype});
          continue;
        }
        const Id pointer = clone(load.args[0]);
        const Id offset = clone(load.args[1]);
        const Id mask = load.args.size() > 2 ? clone(load.args[2]) : kNone;
        b.append({.op = Op::kCopyToShared,
                  .type = {},
                  .args = {ring.shared, slot, pointer, offset, mask, inside},
                  .dtype = load.dtype});
      }
      for (Id id : loop.body) {
        if (p.at(id).op == Op::kCheckIndex) clone(id);
      }
      b.append({.op = Op::kCommitGroup, .type = {}, .args = {}});
    };
    const Id stages = b.integer(num_stages);
    for (int s = 0; s < num_stages - 1; ++s) {
      copy_tiles(b.map(Fn::kAdd, {low, b.map(Fn::kMul, {step, b.integer(s)})}), b.integer(s));
    }

    std::vector<Id> body;
    b.set_block(&body);
    const Id position = loop.body_args[0];
    const Id iteration = b.map(Fn::kDiv, {b.map(Fn::kSub, {position, low}), step});
    const Id slot = b.map(Fn::kRem, {iteration, stages});
    b.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = num_stages - 2});
    const Id ahead =
        b.map(Fn::kAdd, {position, b.map(Fn::kMul, {step, b.integer(num_stages - 1)})});
    copy_tiles(ahead,
               b.map(Fn::kRem, {b.map(Fn::kAdd, {iteration, b.integer(num_stages - 1)}), stages}));
    for (Id id : loop.body) {
      if (p.at(id).op != Op::kDot) continue;
      Inst dot = p.at(id);
      for (std::size_t side = 0; side < 2; ++side) {
        const auto ring = std::find_if(rings.begin(), rings.end(),
                                       [&](const Ring& r) { return r.operand == dot.args[side]; });
        dot.args[side] = ring->shared;
      }
      dot.args.push_back(slot);
      p.at(id) = dot;
      body.push_back(id);
    }
    p.at(loop_id).body = std::move(body);
    p.body.insert(p.body.begin() + static_cast<std::ptrdiff_t>(at), before.begin(), before.end());
    at += before.size();
  }
}

}  // namespace braid::tile
