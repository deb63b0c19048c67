#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/protocol.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// Which operands of a program a body's are, by the body's numbers; empty: those of these numbers.
struct Operands {
  struct Operand {
    bool is_output;
    int index;
  };
  std::vector<Operand> inputs, outputs;
};

/// Appends instructions to a program. It folds integer constants and reuses equal pure
/// instructions, to keep the text small.
class Builder {
 public:
  explicit Builder(Program& program);

  Id param(const KernelParam& what, std::int64_t divisor = 1);
  /// What parameters for operands mean from here on.
  void set_operands(Operands operands) { operands_ = std::move(operands); }
  /// The value of an expression over symbols: a constant, or an i64 parameter.
  Id scalar(const Expr& expr, std::int64_t divisor = 1);
  Id constant(Kind kind, double value);
  Id integer(std::int64_t value, Kind kind = Kind::kI64);
  Id program_id() { return append({.op = Op::kProgramId, .type = {Kind::kI64}, .args = {}}); }
  Id num_programs() { return append({.op = Op::kNumPrograms, .type = {Kind::kI64}, .args = {}}); }
  Id range(int rows, int cols, int axis);
  Id map(Fn fn, std::vector<Id> args, DType dtype = DType::kF32);
  Id plus(Id a, Id b) { return map(Fn::kAdd, {a, b}); }
  Id minus(Id a, Id b) { return map(Fn::kSub, {a, b}); }
  Id times(Id a, Id b) { return map(Fn::kMul, {a, b}); }
  Id less(Id a, Id b) { return map(Fn::kLt, {a, b}); }
  Id both(Id a, Id b) { return map(Fn::kAnd, {a, b}); }
  Id inverse(Id a) { return map(Fn::kNot, {a}); }
  Id round(DType dtype, Id value) {
    if (dtype == DType::kF32 || dtype == DType::kI64 || is_exact(dtype, value)) return value;
    return map(Fn::kRound, {value}, dtype);
  }
  /// Whether the dtype is known to hold it exactly: a loaded 8-bit float, or an integer.
  [[nodiscard]] bool is_exact(DType dtype, Id value) const;
  Id ptr_add(Id pointer, Id elements, DType dtype);
  Id peer(Id offset, Id rank);
  Id load(Id pointer, Id offset, Id mask, DType dtype) {
    return load_by(Op::kLoad, pointer, offset, mask, dtype);
  }
  void store(Id pointer, Id offset, Id value, Id mask, DType dtype) {
    store_by(Op::kStore, pointer, offset, value, mask, dtype);
  }
  /// Of a scalar pointer, index (elements) and mask; the result is the same for all threads.
  Id load_scalar(Id pointer, Id index, Id mask, DType dtype) {
    return load_by(Op::kLoadScalar, pointer, index, mask, dtype);
  }
  /// Adds the parameters with which a kernel reports errors.
  void can_fail();
  /// This block's epoch, and packets (tile.h).
  Id epoch() { return append({.op = Op::kEpoch, .type = {Kind::kI64}, .args = {}}); }
  Id ll_load(Id pointer, Id offset, Id rank, Id mask, DType dtype);
  void ll_store(Id pointer, Id offset, Id value, Id mask, DType dtype) {
    store_by(Op::kLlStore, pointer, offset, value, mask, dtype);
  }
  /// Accesses to all ranks (tile.h): the multicast address of an offset in the group's arenas.
  Id multicast(Id offset, const std::string& group);
  Id multimem_reduce(Id pointer, Id offset, Id mask, DType dtype) {
    return load_by(Op::kMultimemReduce, pointer, offset, mask, dtype);
  }
  void multimem_store(Id pointer, Id offset, Id value, Id mask, DType dtype) {
    store_by(Op::kMultimemStore, pointer, offset, value, mask, dtype);
  }
  /// The same tile in a layout of its own, independent of earlier layouts.
  Id convert_layout(Id tile);
  void check_index(Id index, Id extent, Id mask, int node);
  Id reduce(Fn fn, Id tile);
  Id dot(Id a, Id b, Id accumulator, bool trans_a, bool trans_b, DType dtype);
  /// A tile filled with a constant.
  Id splat(Kind kind, int rows, int cols, double value);
  Id splat_integer(int rows, int cols, std::int64_t value);
  /// A scalar, or a tile of one column, broadcast to this shape.
  Id spread(Id value, int rows, int cols);
  /// Adds the parameters of a kernel that waits for peers of `group`.
  void communicate(const std::string& group, int world);
  /// Without a rank: every rank of the group.
  void signal(Id slot, Id rank = kNone, Id predicate = kNone);
  /// Only for kernels with the marks setting.
  void mark(protocol::Mark::What what, Id rank, Id number);
  void wait(Id slot, Id rank = kNone, Id predicate = kNone);
  void wait_slots(Id first, Id count);
  /// All blocks of the grid meet; adds the parameters of a kernel in which they do.
  void meet_blocks();

  /// The roles of warps, rings of tiles that bulk copies fill, and products beside the threads
  /// (ops.inc). Registers: of each thread of the role; 0: as many as all.
  Id begin_role(int warps, int registers) {
    Inst role{.op = Op::kRole, .type = {}, .args = {}, .index = registers};
    role.warps = warps;
    return open(append(std::move(role)));
  }
  void end_role(Id role) { close(role); }
  Id alloc_ring(int stages) {
    Inst ring{.op = Op::kAllocRing, .type = {Kind::kRing}, .args = {}};
    ring.stages = stages;
    return append(std::move(ring));
  }
  /// In panels of 128 bytes.
  Id alloc_panels(DType dtype, int rows, int cols, int stages) {
    Inst tile{.op = Op::kAllocShared,
              .type = {Kind::kShared, rows, cols},
              .args = {},
              .dtype = dtype,
              .index = SharedLayout::kPanels};
    tile.stages = stages;
    return append(std::move(tile));
  }
  void acquire(Id ring, Id step, int bytes) {
    append({.op = Op::kAcquire, .type = {}, .args = {ring, step}, .index = bytes});
  }
  /// `outer`: which of several matrices, by the map's outer dims.
  void copy_tile(Id ring, Id step, Id shared, Id map, Id row, Id col,
                 const std::vector<Id>& outer = {}) {
    std::vector<Id> args{ring, step, shared, map, row, col};
    args.insert(args.end(), outer.begin(), outer.end());
    append(
        {.op = Op::kCopyTile, .type = {}, .args = std::move(args), .dtype = p_.at(shared).dtype});
  }
  void await(Id ring, Id step) { append({.op = Op::kAwait, .type = {}, .args = {ring, step}}); }
  void release(Id ring, Id step, Id predicate = kNone) {
    std::vector<Id> args{ring, step};
    if (predicate != kNone) args.push_back(predicate);
    append({.op = Op::kRelease, .type = {}, .args = std::move(args)});
  }
  /// Of tiles of b's dtype.
  Id async_dot(Id a, Id b, Id accumulator, Id slot, Id adds, bool trans_a, bool trans_b) {
    Inst dot{.op = Op::kAsyncDot,
             .type = type(accumulator),
             .args = {a, b, accumulator, slot, adds},
             .dtype = p_.at(b).dtype};
    dot.trans_a = trans_a;
    dot.trans_b = trans_b;
    return append(std::move(dot));
  }
  void wait_dots(int under_way) {
    append({.op = Op::kWaitDots, .type = {}, .args = {}, .index = under_way});
  }
  Id settled(Id product) {
    return append({.op = Op::kSettled, .type = type(product), .args = {product}});
  }
  /// Slots for sums of a unit that has a memory for them.
  Id alloc_sums(int rows, int cols, int stages) {
    Inst sums{.op = Op::kAllocSums, .type = {Kind::kSums, rows, cols}, .args = {}};
    sums.stages = stages;
    return append(std::move(sums));
  }
  struct SumsSlot {
    Id sums, slot;
  };
  void dot_to_sums(Id a, Id b, Id slot, SumsSlot to, Id adds, bool trans_a, bool trans_b) {
    Inst dot{.op = Op::kDotToSums,
             .type = {},
             .args = {a, b, to.sums, slot, to.slot, adds},
             .dtype = p_.at(b).dtype};
    dot.trans_a = trans_a;
    dot.trans_b = trans_b;
    append(std::move(dot));
  }
  void publish(Id ring, Id step) { append({.op = Op::kPublish, .type = {}, .args = {ring, step}}); }
  /// So many columns from `first` on.
  Id load_sums(SumsSlot from, int first, int cols) {
    return append({.op = Op::kLoadSums,
                   .type = {Kind::kF32, type(from.sums).rows, cols},
                   .args = {from.sums, from.slot},
                   .index = first});
  }
  Id undefined(int rows, int cols) {
    return append({.op = Op::kUndefined, .type = {Kind::kF32, rows, cols}, .args = {}});
  }
  void push_tile(Id shared, Id map, Id row, Id col, Id value) {
    append({.op = Op::kPushTile,
            .type = {},
            .args = {shared, map, row, col, value},
            .dtype = p_.at(shared).dtype});
  }

  /// Opens a loop and returns its id. Inside, `induction` and `carried` give the values; `end_for`
  /// closes it.
  Id begin_for(Id low, Id high, Id step, std::vector<Id> initial);
  Id induction(Id loop) { return p_.at(loop).body_args[0]; }
  Id carried(Id loop, int index) {
    return p_.at(loop).body_args[static_cast<std::size_t>(index) + 1];
  }
  /// Closes the loop and returns the carried values after it.
  std::vector<Id> end_for(Id loop, std::vector<Id> yields);

  /// How many instructions the open block has.
  [[nodiscard]] std::size_t position() const { return block_->size(); }
  /// Orders those from a position on, which store nothing, by how many loads each waits for, one
  /// after the other. So loads that do not wait for each other are under way together.
  void order_by_loads(std::size_t from);

  Id append(Inst inst);
  /// Makes an instruction outside of all blocks (loop arguments).
  Id detached(Inst inst);
  /// Sets where the next instructions go, for passes that insert.
  void set_block(std::vector<Id>* block) {
    block_ = block;
    known_.assign(1, {});
  }
  [[nodiscard]] Program& program() { return p_; }
  [[nodiscard]] const Type& type(Id id) const { return p_.at(id).type; }

 private:
  /// A sum of numbers that are not negative, without multiples of the divisor.
  Id without_multiples(Id sum, std::int64_t divisor);
  /// (a + b * d) / d of numbers that are not negative: a / d + b; nothing where the sum is no such.
  std::optional<Id> divided(Id sum, std::int64_t divisor);
  Id load_by(Op op, Id pointer, Id offset, Id mask, DType dtype);
  void store_by(Op op, Id pointer, Id offset, Id value, Id mask, DType dtype);
  /// What follows goes into the body of the instruction, until it is closed.
  Id open(Id id);
  void close(Id id);

  [[nodiscard]] KernelParam in_program(KernelParam what) const;

  Program& p_;
  Operands operands_;
  std::vector<Id>* block_;
  struct OpenLoop {
    Id id;
    std::unique_ptr<std::vector<Id>> body;  ///< its address stays valid while loops nest
  };
  std::vector<std::vector<Id>*> outer_;
  std::vector<OpenLoop> open_;
  std::vector<std::map<std::string, Id>> known_{
      1};                                        ///< pure instructions, one table per open block
  std::unordered_map<std::string, int> params_;  ///< index of each parameter, by its key
};

}  // namespace braid::tile
