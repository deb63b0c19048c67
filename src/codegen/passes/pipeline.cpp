// Software pipelining. Matches a loop, at any depth, whose body holds dots. An operand of such a
// dot that depends only on the induction variable and on values from outside becomes a ring of
// num_stages slots in shared memory; slot i % num_stages is filled num_stages - 1 iterations ahead:
// by an asynchronous copy when the operand is a load; when it is computed from one, by a copy of
// that, of which one tile is made just before the dot; else through registers:
//
//     copy tiles 0 .. S-2, one group each
//     for i:  wait until tile i has landed; barrier; copy tile i + S-1 (if there is one); the body,
//     with dots on slot i % S
//
// Carried values count the slots. Where the offsets of a load grow by the same amount in each step,
// the pointer advances instead, and threads compute the offsets once.
//
// One barrier per iteration is enough: the slot that is overwritten was last read in iteration i-1,
// before it. An inner loop first waits until the previous round's copies have landed and all warps
// have read them.
//
// An operand from outside the loop is one tile that is filled before it, or before the loop around
// it where it comes from outside of that, too. An operand that depends on
// carried values or other dots stays in registers, or is put into a tile just before an f32 dot,
// which reads shared memory alone. Everything else in the body stays in place; index checks are
// done with the copies where possible. A loop that waits for peers is left alone: nothing moves
// across a wait.

#include "codegen/passes/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "braid/error.h"
#include "codegen/passes/ahead.h"
#include "codegen/tile/builder.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"
#include "codegen/units.h"

namespace braid::tile {
namespace {

/// An operand that moves to shared memory.
struct Ring {
  Id operand;
  DType dtype;  ///< of the dot
  int row_step;
  /// When it is filled: inside the loop, ahead of its use; just before it; or once, before the
  /// loop.
  enum class Filled : std::uint8_t { kAhead, kInPlace, kBefore } filled;
  [[nodiscard]] bool ahead() const { return filled == Filled::kAhead; }
  Id load = kNone;  ///< what is copied; an operand without one goes through registers
  /// Whether a slot becomes the operand, in a tile of its own, just before the dot.
  bool is_made = false;
  Id shared = kNone;
  Id made = kNone;       ///< that tile
  bool is_used = false;  ///< a dot has read it, so what stands just before one is there
  /// For a load whose offsets grow by the same amount in each step: the offsets of the first
  /// iteration, and elements per unit of the induction variable.
  Id first_offset = kNone, slope = kNone;
};

/// The loop around one, if there is one.
struct Around {
  std::set<Id> inside;      ///< what it has, its carried values too
  std::vector<Id>* before;  ///< the block that it will end
};

class LoopPipeliner {
 public:
  LoopPipeliner(Program& p, Id loop, int num_stages, const Around* around)
      : p_(p),
        b_(p),
        loop_id_(loop),
        loop_(p.at(loop)),
        stages_(num_stages),
        around_(around),
        ahead_(p, loop_, /*loads=*/true) {}

  /// Transforms the loop; returns the instructions to place before it.
  std::vector<Id> run() {
    find_rings();
    std::vector<Id> before;
    if (rings_.empty()) return before;
    if (stages_ < 2) throw_internal("pipeline", "num_stages must be at least 2");
    const auto is_outer = [&](const Ring& ring) { return is_further_out(ring); };
    const auto inner = std::stable_partition(rings_.begin(), rings_.end(), is_outer);
    if (inner != rings_.begin()) {
      b_.set_block(around_->before);
      const std::span<Ring> outer(rings_.begin(), inner);
      allocate(outer);
      fill_once(outer);
    }
    b_.set_block(&before);
    const std::span<Ring> others(inner, rings_.end());
    allocate(others);
    if (around_ != nullptr) {
      b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = 0});
    }
    fill_once(others);
    hoist_loads();
    find_slopes();
    const Id low = loop_.args[0];
    const Id step = loop_.args[2];
    for (int s = 0; s < stages_ - 1; ++s) {
      copy_tiles(b_.map(Fn::kAdd, {low, b_.map(Fn::kMul, {step, b_.integer(s)})}), b_.integer(s));
    }
    const Id slot = carry(b_.integer(0, Kind::kI32));
    const Id slot_ahead = carry(b_.integer(stages_ - 1, Kind::kI32));

    std::vector<Id> body;
    b_.set_block(&body);
    b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = stages_ - 2});
    copy_tiles(
        b_.map(Fn::kAdd, {loop_.body_args[0], b_.map(Fn::kMul, {step, b_.integer(stages_ - 1)})}),
        slot_ahead);
    for (Id id : loop_.body) {
      if (p_.at(id).op == Op::kCheckIndex && ahead_.can_make(id)) continue;
      if (p_.at(id).op == Op::kDot) use_rings(id, slot, body);
      body.push_back(id);
    }
    b_.set_block(&body);
    loop_.yields.push_back(slot_after(slot));
    loop_.yields.push_back(slot_after(slot_ahead));
    loop_.body = std::move(body);
    p_.at(loop_id_) = std::move(loop_);
    return before;
  }

 private:
  void find_rings() {
    bool waits = false;
    for_each_inst(p_, loop_.body, [&](Id id) { waits = waits || op_info(p_.at(id).op).waits; });
    if (waits) return;
    for (Id id : loop_.body) {
      const Inst dot = p_.at(id);
      if (dot.op != Op::kDot) continue;
      const Multiplier& unit = *unit_of(p_, dot)->multiplies;
      for (std::size_t side = 0; side < 2; ++side) {
        const Id operand = dot.args[side];
        const bool outside = !ahead_.in_body(operand) && !ahead_.is_carried(operand);
        if (p_.at(operand).type.kind == Kind::kShared || find(operand) != nullptr) continue;
        const bool ahead = !outside && ahead_.can_make(operand);
        if (!outside && !ahead && unit.from_registers) continue;
        Ring ring{.operand = operand,
                  .dtype = dot.dtype,
                  .row_step = unit.row_step(dot, side),
                  .filled = outside ? Ring::Filled::kBefore
                            : ahead ? Ring::Filled::kAhead
                                    : Ring::Filled::kInPlace};
        if (const Inst& load = p_.at(operand); load.op == Op::kLoad) {
          // A dot takes two dtypes of one size.
          const bool fits = dtype_size(load.dtype) == dtype_size(dot.dtype);
          if (fits) ring.dtype = load.dtype;
          if (fits || ahead) ring.load = operand;
          ring.is_made = ahead && !fits;
        } else if (ahead) {
          ring.load = load_to_copy(operand, dot.dtype);
          ring.is_made = ring.load != kNone;
        }
        rings_.push_back(ring);
      }
    }
    // Operands from outside alone are not worth the ring's barriers.
    if (std::none_of(rings_.begin(), rings_.end(), [](const Ring& ring) { return ring.ahead(); })) {
      rings_.clear();
    }
  }

  /// The loads of the body that a value is computed from.
  [[nodiscard]] std::vector<Id> loads_of(Id value) const {
    std::vector<Id> loads, next{value};
    std::set<Id> seen;
    while (!next.empty()) {
      const Id id = next.back();
      next.pop_back();
      if (id == kNone || !ahead_.in_body(id) || !seen.insert(id).second) continue;
      const Inst& inst = p_.at(id);
      if (inst.op == Op::kLoad) loads.push_back(id);
      if (inst.op != Op::kLoad) next.insert(next.end(), inst.args.rbegin(), inst.args.rend());
    }
    return loads;
  }
  /// The one load of a computed operand that is of another step in each step, and has elements of
  /// its own, no larger ones, for each element. Indices are checked in registers: those that are
  /// loaded stay there.
  Id load_to_copy(Id operand, DType dtype) {
    std::vector<Id> loads = loads_of(operand);
    std::erase_if(loads, [&](Id load) { return !ahead_.varies(load); });
    const bool is_checked = std::ranges::any_of(loop_.body, [&](Id id) {
      return p_.at(id).op == Op::kCheckIndex && std::ranges::count(loads, p_.at(id).args[1]) > 0;
    });
    if (loads.size() != 1 || is_checked) return kNone;
    const Inst& load = p_.at(loads[0]);
    const Type& whole = p_.at(operand).type;
    const bool fits = load.type.rows == whole.rows && load.type.cols == whole.cols &&
                      dtype_size(load.dtype) <= dtype_size(dtype);
    return fits ? loads[0] : kNone;
  }

  /// Adds a value carried by the loop.
  Id carry(Id first) {
    const Id value = b_.detached({.op = Op::kForArg,
                                  .type = p_.at(first).type,
                                  .args = {first},
                                  .index = static_cast<int>(loop_.body_args.size())});
    loop_.args.push_back(first);
    loop_.body_args.push_back(value);
    return value;
  }

  Id slot_after(Id slot) {
    const Id next = b_.map(Fn::kAdd, {slot, b_.integer(1)});
    return b_.map(Fn::kSelect, {b_.map(Fn::kLt, {next, b_.integer(stages_)}), next, b_.integer(0)});
  }

  void find_slopes() {
    Cloner first(b_, ahead_, loop_.args[0]);
    for (Ring& ring : rings_) {
      if (!ring.ahead() || ring.load == kNone) continue;
      const Inst load = p_.at(ring.load);
      if (ahead_.varies(load.args[0])) continue;
      const auto slope = slope_of(load.args[1], first);
      if (!slope) continue;
      ring.slope = *slope;
      ring.first_offset = first(load.args[1]);
    }
  }

  /// The amount that a unit of the induction variable adds to each element of an integer value, as
  /// a scalar outside the loop; nothing where elements differ.
  std::optional<Id> slope_of(Id id, Cloner& outside) {
    if (id == ahead_.induction()) return b_.integer(1);
    if (!ahead_.varies(id)) return b_.integer(0);
    const Inst inst = p_.at(id);
    if (inst.op != Op::kMap) return std::nullopt;
    const auto of = [&](std::size_t arg) { return slope_of(inst.args[arg], outside); };
    switch (inst.fn) {
      case Fn::kToI32:
      case Fn::kToI64:
        return of(0);
      case Fn::kAdd:
      case Fn::kSub: {
        const auto a = of(0);
        const auto b = of(1);
        return a && b ? std::optional(b_.map(inst.fn, {*a, *b})) : std::nullopt;
      }
      case Fn::kMul: {
        const std::size_t factor = ahead_.varies(inst.args[0]) ? 1 : 0;
        if (ahead_.varies(inst.args[factor]) || !p_.at(inst.args[factor]).type.is_scalar()) {
          return std::nullopt;
        }
        const auto slope = of(1 - factor);
        if (!slope) return std::nullopt;
        return b_.map(Fn::kMul, {b_.map(Fn::kToI64, {outside(inst.args[factor])}), *slope});
      }
      default:
        return std::nullopt;
    }
  }

  void allocate(std::span<Ring> rings) {
    for (Ring& ring : rings) {
      const Type type = p_.at(ring.operand).type;
      const auto tiles = [&](DType dtype, int stages) {
        return b_.append({.op = Op::kAllocShared,
                          .type = {Kind::kShared, type.rows, type.cols},
                          .args = {},
                          .dtype = dtype,
                          .index = ring.row_step,
                          .stages = stages});
      };
      ring.shared = tiles(ring.load != kNone ? p_.at(ring.load).dtype : ring.dtype,
                          ring.ahead() ? stages_ : 1);
      if (ring.is_made) ring.made = tiles(ring.dtype, 1);
    }
  }

  /// Fills those of the operands from outside.
  void fill_once(std::span<const Ring> rings) {
    for (const Ring& ring : rings) {
      if (ring.filled != Ring::Filled::kBefore) continue;
      fill(ring, b_.integer(0), kNone, kNone, [](Id id) { return id; });
    }
  }

  /// Whether the ring is filled before the loop around this one.
  [[nodiscard]] bool is_further_out(const Ring& ring) const {
    return ring.filled == Ring::Filled::kBefore && around_ != nullptr &&
           !around_->inside.contains(ring.operand);
  }

  Ring* find(Id operand) {
    const auto it = std::find_if(rings_.begin(), rings_.end(),
                                 [&](const Ring& ring) { return ring.operand == operand; });
    return it == rings_.end() ? nullptr : &*it;
  }

  /// Fills a slot with the operand of `value_of` at `position`, if the scalar `inside` holds.
  template <class ValueOf>
  void fill(const Ring& ring, Id slot, Id position, Id inside, const ValueOf& value_of) {
    if (ring.load == kNone || ring.filled == Ring::Filled::kInPlace) {
      // The loads are masked past the end, so nothing is read there.
      b_.append({.op = Op::kStoreShared,
                 .type = {},
                 .args = {ring.shared, slot, value_of(ring.operand)},
                 .dtype = ring.dtype});
      return;
    }
    const Inst load = p_.at(ring.load);
    Id pointer = value_of(load.args[0]);
    Id offset = ring.first_offset;
    if (offset == kNone) {
      offset = value_of(load.args[1]);
    } else {
      const Id moved = b_.map(Fn::kMul, {b_.map(Fn::kSub, {position, loop_.args[0]}), ring.slope});
      pointer = b_.ptr_add(pointer, moved, load.dtype);
    }
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
      if (ring.ahead()) fill(ring, slot, position, inside, [&](Id id) { return clone(id); });
    }
    for (Id id : loop_.body) {
      if (p_.at(id).op == Op::kCheckIndex && ahead_.can_make(id)) clone(id);
    }
    b_.append({.op = Op::kCommitGroup, .type = {}, .args = {}});
  }

  /// Fills the one tile of an operand that is made of a slot.
  void make(const Ring& ring, Id slot, Id first) {
    const Inst load = p_.at(ring.load);
    if (ring.load == ring.operand || b_.is_exact(ring.dtype, ring.operand)) {
      b_.append({.op = Op::kCastShared,
                 .type = {},
                 .args = {ring.made, first, ring.shared, slot},
                 .dtype = ring.dtype});
      return;
    }
    Cloner clone(b_, ahead_, ahead_.induction());
    clone.replace(ring.load, b_.append({.op = Op::kLoadShared,
                                        .type = load.type,
                                        .args = {ring.shared, slot},
                                        .dtype = load.dtype}));
    for (const auto& [besides, value] : hoisted_) clone.replace(besides, value);
    b_.append({.op = Op::kStoreShared,
               .type = {},
               .args = {ring.made, first, clone(ring.operand)},
               .dtype = ring.dtype});
  }

  /// Loads in front of the loop what operands that are made of slots take besides.
  void hoist_loads() {
    Cloner outside(b_, ahead_, loop_.args[0]);
    for (const Ring& ring : rings_) {
      if (!ring.is_made) continue;
      for (const Id load : loads_of(ring.operand)) {
        if (load != ring.load) hoisted_[load] = outside(load);
      }
    }
  }

  void use_rings(Id id, Id slot, std::vector<Id>& body) {
    b_.set_block(&body);
    const Id first = b_.integer(0);
    Inst dot = p_.at(id);
    std::vector<Id> slots;
    for (std::size_t side = 0; side < 2; ++side) {
      Ring* const ring = find(dot.args[side]);
      const bool is_made = ring != nullptr && ring->is_made;
      const bool in_place = is_made || (ring != nullptr && ring->filled == Ring::Filled::kInPlace);
      if (in_place && !std::exchange(ring->is_used, true)) {
        // The barrier of this step was after the last read. This one waits for no copy.
        if (is_made) {
          make(*ring, slot, first);
        } else {
          fill(*ring, first, kNone, kNone, [](Id operand) { return operand; });
        }
        b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = stages_ - 1});
      }
      if (ring != nullptr) dot.args[side] = is_made ? ring->made : ring->shared;
      slots.push_back(ring != nullptr && ring->ahead() && !is_made ? slot : first);
    }
    dot.args.insert(dot.args.end(), slots.begin(), slots.end());
    p_.at(id) = std::move(dot);
  }

  Program& p_;
  Builder b_;
  Id loop_id_;
  Inst loop_;
  int stages_;
  const Around* around_;
  Ahead ahead_;
  std::vector<Ring> rings_;
  std::map<Id, Id> hoisted_;  ///< loads that are done in front of the loop, and their values
};

void pipeline_block(Program& p, std::vector<Id>& block, int num_stages, const Around* around) {
  std::vector<Id> out;
  for (Id id : block) {
    if (!p.at(id).body.empty()) {
      std::vector<Id> body = std::move(p.at(id).body);
      if (p.at(id).op == Op::kFor) {
        Around own{{body.begin(), body.end()}, &out};
        own.inside.insert(p.at(id).body_args.begin(), p.at(id).body_args.end());
        pipeline_block(p, body, num_stages, &own);
      } else {
        pipeline_block(p, body, num_stages, around);
      }
      p.at(id).body = std::move(body);
    }
    if (p.at(id).op == Op::kFor) {
      const std::vector<Id> before = LoopPipeliner(p, id, num_stages, around).run();
      out.insert(out.end(), before.begin(), before.end());
    }
    out.push_back(id);
  }
  block = std::move(out);
}

}  // namespace

void pipeline(Program& p, int num_stages) { pipeline_block(p, p.body, num_stages, nullptr); }

}  // namespace braid::tile
