// Software pipelining. Matches a loop, at any depth, whose body holds dots. An operand of such a
// dot that depends only on the induction variable and on values from outside becomes a ring of
// num_stages slots in shared memory; slot i % num_stages is filled num_stages - 1 iterations ahead:
// by an asynchronous copy when the operand is a load; when it is computed from some, by copies of
// these, of which one tile is made just before the dot; else through registers:
//
//     copy tiles 0 .. S-2, one group each
//     for i:  wait until tile i has landed; barrier; copy tile i + S-1 (if there is one); the body,
//     with dots on slot i % S
//
// A load that is the same for runs of rows or columns, such as numbers packed into words, or scales
// of groups, has one element for each run in its slots. One that has a single element in each row
// of a step is too narrow for asynchronous copies: it is loaded into registers, a step ahead.
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
#include "codegen/passes/axis_info.h"
#include "codegen/tile/builder.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"
#include "codegen/units.h"

namespace braid::tile {
namespace {

/// A load that is copied to shared memory: one element of each `rows` x `cols`, which are alike.
struct Copied {
  Id load;
  int rows = 1, cols = 1;
  Id shared = kNone;
  bool is_column = false;  ///< it has no slots, but registers that the loop carries
  Id carried = kNone;
  /// Where offsets grow by the same amount in each step: those of the first iteration, and elements
  /// per unit of the induction variable.
  Id first_offset = kNone, slope = kNone;
  [[nodiscard]] bool is_whole() const { return rows == 1 && cols == 1; }
};

/// An operand that moves to shared memory.
struct Ring {
  Id operand;
  DType dtype;  ///< of the dot
  int row_step;
  /// When it is filled: inside the loop, ahead of its use; just before it; or once, before the
  /// loop.
  enum class Filled : std::uint8_t { kAhead, kInPlace, kBefore } filled;
  [[nodiscard]] bool ahead() const { return filled == Filled::kAhead; }
  std::vector<Copied> copies;  ///< an operand without one goes through registers
  /// Whether slots become the operand, in a tile of its own, just before the dot.
  bool is_made = false;
  Id tile = kNone;       ///< the operand, where it is no copy
  bool is_used = false;  ///< a dot has read it, so what stands just before one is there
  [[nodiscard]] Id shared() const { return tile != kNone ? tile : copies[0].shared; }
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
        ahead_(p, loop_, /*loads=*/true),
        along_rows_(p, /*axis=*/0),
        along_columns_(p, /*axis=*/1) {}

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
    for_each_column([&](Copied& column) { column.carried = carry(load_column(column, low)); });

    std::vector<Id> body;
    b_.set_block(&body);
    b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = stages_ - 2});
    copy_tiles(
        b_.map(Fn::kAdd, {loop_.body_args[0], b_.map(Fn::kMul, {step, b_.integer(stages_ - 1)})}),
        slot_ahead);
    std::vector<Id> columns;
    for_each_column([&](Copied& column) {
      columns.push_back(load_column(column, b_.plus(loop_.body_args[0], step)));
    });
    for (Id id : loop_.body) {
      if (p_.at(id).op == Op::kCheckIndex && ahead_.can_make(id)) continue;
      if (p_.at(id).op == Op::kDot) use_rings(id, slot, body);
      body.push_back(id);
    }
    b_.set_block(&body);
    loop_.yields.push_back(slot_after(slot));
    loop_.yields.push_back(slot_after(slot_ahead));
    loop_.yields.insert(loop_.yields.end(), columns.begin(), columns.end());
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
          if (fits || ahead) ring.copies = {{operand}};
          ring.is_made = ahead && !fits;
        } else if (ahead) {
          ring.copies = loads_to_copy(operand, dot.dtype);
          ring.is_made = !ring.copies.empty();
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
  /// The loads of a computed operand that are others in each step, if slots or columns can hold
  /// all, in hardly more bytes than the operand has. Indices are checked in registers: those that
  /// are loaded stay there.
  std::vector<Copied> loads_to_copy(Id operand, DType dtype) {
    const Type whole = p_.at(operand).type;
    std::vector<Copied> copies;
    double bytes = 0;  // for each element of the operand
    for (const Id id : loads_of(operand)) {
      if (!ahead_.varies(id)) continue;
      const Inst& load = p_.at(id);
      const bool is_checked = std::ranges::any_of(loop_.body, [&](Id check) {
        return p_.at(check).op == Op::kCheckIndex && p_.at(check).args[1] == id;
      });
      if (is_checked || load.type.rows != whole.rows || load.type.cols != whole.cols) return {};
      Copied& copied = copies.emplace_back(runs_of(id));
      const auto size = static_cast<int>(dtype_size(load.dtype));
      const int width = load.type.cols / copied.cols;
      copied.is_column = width == 1;
      if (copied.is_column) copied.rows = 1;
      if (width > 1 && width * size < kLeastCopied) return {};
      bytes += static_cast<double>(size) / (copied.rows * copied.cols);
    }
    if (bytes > kMostCopied * static_cast<double>(dtype_size(dtype))) return {};
    // Columns alone would make a ring without slots.
    if (std::ranges::all_of(copies, &Copied::is_column)) return {};
    return copies;
  }
  /// Which elements of a load are the same.
  Copied runs_of(Id id) {
    const Inst& load = p_.at(id);
    const std::span<const Id> at(load.args.begin() + 1, load.args.end());
    if (!std::ranges::all_of(at, [&](Id arg) { return is_counted(arg); })) return {id};
    Copied copied{id, load.type.rows, load.type.cols};
    for (const Id arg : at) {
      const auto least = [&](int run, AxisAnalysis& axis) {
        return static_cast<int>(std::min<std::int64_t>(run, axis.of(arg).constancy));
      };
      copied.rows = least(copied.rows, along_rows_);
      copied.cols = least(copied.cols, along_columns_);
    }
    return copied;
  }
  /// Whether a value is computed from rows, columns and scalars alone.
  [[nodiscard]] bool is_counted(Id id) const {
    const Inst& inst = p_.at(id);
    if (inst.type.is_scalar() || inst.op == Op::kRange) return true;
    return inst.op == Op::kMap &&
           std::ranges::all_of(inst.args, [&](Id arg) { return is_counted(arg); });
  }
  /// Such a value for the elements that are copied; `value_of` gives scalars.
  template <class ValueOf>
  Id of_copied(const Copied& copied, Id id, const ValueOf& value_of) {
    if (copied.is_whole() || id == kNone || p_.at(id).type.is_scalar()) return value_of(id);
    const Inst inst = p_.at(id);
    if (inst.op == Op::kRange) {
      const int rows = inst.type.rows / copied.rows;
      const int cols = std::max(1, inst.type.cols / copied.cols);
      return b_.map(Fn::kMul, {b_.range(rows, cols, inst.index),
                               b_.integer(inst.index == 0 ? copied.rows : copied.cols)});
    }
    std::vector<Id> args;
    for (const Id arg : inst.args) args.push_back(of_copied(copied, arg, value_of));
    return b_.map(inst.fn, std::move(args), inst.dtype);
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
      if (!ring.ahead()) continue;
      for (Copied& copied : ring.copies) {
        const Inst load = p_.at(copied.load);
        if (copied.is_column || ahead_.varies(load.args[0])) continue;
        const auto slope = slope_of(load.args[1], first);
        if (!slope) continue;
        copied.slope = *slope;
        copied.first_offset = of_copied(copied, load.args[1], [&](Id id) { return first(id); });
      }
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

  Id tiles(const Type& type, DType dtype, int row_step, int stages) {
    return b_.append({.op = Op::kAllocShared,
                      .type = {Kind::kShared, type.rows, type.cols},
                      .args = {},
                      .dtype = dtype,
                      .index = row_step,
                      .stages = stages});
  }
  void allocate(std::span<Ring> rings) {
    for (Ring& ring : rings) {
      const int stages = ring.ahead() ? stages_ : 1;
      const bool is_tile = ring.copies.empty() || ring.is_made;
      for (Copied& copied : ring.copies) {
        if (copied.is_column) continue;
        const Inst load = p_.at(copied.load);
        const Type type{load.type.kind, load.type.rows / copied.rows, load.type.cols / copied.cols};
        copied.shared = tiles(type, load.dtype, copied.is_whole() ? ring.row_step : 1, stages);
      }
      if (is_tile) {
        ring.tile = tiles(Type(p_.at(ring.operand).type), ring.dtype, ring.row_step,
                          ring.is_made ? 1 : stages);
      }
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
    if (ring.copies.empty()) {
      // The loads are masked past the end, so nothing is read there.
      b_.append({.op = Op::kStoreShared,
                 .type = {},
                 .args = {ring.tile, slot, value_of(ring.operand)},
                 .dtype = ring.dtype});
      return;
    }
    if (inside == kNone) inside = b_.integer(1, Kind::kPred);
    for (const Copied& copied : ring.copies) {
      if (copied.is_column) continue;
      const Inst load = p_.at(copied.load);
      Id pointer = value_of(load.args[0]);
      Id offset = copied.first_offset;
      if (offset == kNone) {
        offset = of_copied(copied, load.args[1], value_of);
      } else {
        const Id moved =
            b_.map(Fn::kMul, {b_.map(Fn::kSub, {position, loop_.args[0]}), copied.slope});
        pointer = b_.ptr_add(pointer, moved, load.dtype);
      }
      const Id mask = load.args.size() > 2 ? of_copied(copied, load.args[2], value_of) : kNone;
      b_.append({.op = Op::kCopyToShared,
                 .type = {},
                 .args = {copied.shared, slot, pointer, offset, mask, inside},
                 .dtype = load.dtype});
    }
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

  /// Fills the one tile of an operand that is made of slots.
  void make(const Ring& ring, Id slot, Id first) {
    const Copied& only = ring.copies[0];
    const Inst& operand = p_.at(ring.operand);
    const bool is_cast = only.load == ring.operand ||
                         (operand.op == Op::kMap && operand.fn == Fn::kToF32 &&
                          operand.args[0] == only.load && b_.is_exact(ring.dtype, ring.operand));
    if (is_cast && only.is_whole()) {
      b_.append({.op = Op::kCastShared,
                 .type = {},
                 .args = {ring.tile, first, only.shared, slot},
                 .dtype = ring.dtype});
      return;
    }
    std::map<Id, Id> known = hoisted_;
    for (const Copied& copied : ring.copies) {
      const Inst load = p_.at(copied.load);
      known[copied.load] = copied.is_column ? copied.carried
                                            : b_.append({.op = Op::kLoadShared,
                                                         .type = load.type,
                                                         .args = {copied.shared, slot},
                                                         .dtype = load.dtype});
    }
    // What is made of columns alone is one.
    const auto made = [&](const auto& self, Id id) -> Id {
      if (id == kNone || !ahead_.in_body(id)) return id;
      if (const auto at = known.find(id); at != known.end()) return at->second;
      Inst copy = p_.at(id);
      for (Id& arg : copy.args) arg = self(self, arg);
      return known[id] = copy.op == Op::kMap ? b_.map(copy.fn, std::move(copy.args), copy.dtype)
                                             : b_.append(std::move(copy));
    };
    b_.append({.op = Op::kStoreShared,
               .type = {},
               .args = {ring.tile, first, made(made, ring.operand)},
               .dtype = ring.dtype});
  }

  template <class Body>
  void for_each_column(const Body& body) {
    for (Ring& ring : rings_) {
      for (Copied& copied : ring.copies) {
        if (copied.is_column) body(copied);
      }
    }
  }
  Id load_column(const Copied& column, Id position) {
    Cloner clone(b_, ahead_, position);
    const auto value_of = [&](Id id) { return clone(id); };
    const Inst load = p_.at(column.load);
    Id mask = b_.map(Fn::kLt, {position, loop_.args[1]});
    if (load.args.size() > 2) {
      mask = b_.map(Fn::kAnd, {mask, of_copied(column, load.args[2], value_of)});
    }
    return b_.load(clone(load.args[0]), of_copied(column, load.args[1], value_of), mask,
                   load.dtype);
  }

  /// Loads in front of the loop what operands that are made of slots take besides.
  void hoist_loads() {
    Cloner outside(b_, ahead_, loop_.args[0]);
    for (const Ring& ring : rings_) {
      if (!ring.is_made) continue;
      for (const Id load : loads_of(ring.operand)) {
        if (!ahead_.varies(load)) hoisted_[load] = outside(load);
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
        // The barrier of this step was after the last read. This one waits for no copy. What other
        // dots read that is made of slots is made in front of it, too.
        if (is_made) {
          make(*ring, slot, first);
          for (Ring& other : rings_) {
            if (other.is_made && !std::exchange(other.is_used, true)) make(other, slot, first);
          }
        } else {
          fill(*ring, first, kNone, kNone, [](Id operand) { return operand; });
        }
        b_.append({.op = Op::kWaitGroup, .type = {}, .args = {}, .index = stages_ - 1});
      }
      if (ring != nullptr) dot.args[side] = ring->shared();
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
  AxisAnalysis along_rows_, along_columns_;
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
