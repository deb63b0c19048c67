#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile/layout.h"
#include "ir/scalar_functions.h"

namespace braid::tile {

// A tile program: what one block does, as SSA over tiles (DESIGN §6). A template builds it, the
// tile passes rewrite it, the printer turns it into CUDA text. Tiles are two-dimensional [rows,
// cols], extents powers of two; scalars are the same for all threads. Floats are computed in f32
// and integers in i64 whatever the dtype in memory: `round` maps a value to what its dtype can
// hold.

using Id = std::int32_t;
inline constexpr Id kNone = -1;

enum class Kind : std::uint8_t { kF32, kI32, kI64, kPred, kPtr, kShared };

struct Type {
  Kind kind = Kind::kI64;
  int rows = 0;  ///< 0: a scalar
  int cols = 0;
  [[nodiscard]] bool is_scalar() const { return rows == 0; }
  bool operator==(const Type&) const = default;
};

enum class Op : std::uint8_t {
  kParam,        ///< scalar or pointer parameter `index`
  kConstant,     ///< scalar `number`, or `integer` of the integer kinds
  kProgramId,    ///< block index
  kNumPrograms,  ///< blocks in the grid
  kRange,        ///< tile: the row (`index` 0) or column (`index` 1) of each element
  kMap,          ///< `fn` element by element; scalars and [rows, 1] operands are broadcast
  kPtrAdd,       ///< pointer, scalar offset in bytes
  kPeer,         ///< address of symmetric-arena offset args[0] on rank args[1], a scalar
  kLoad,         ///< pointer, offset tile (elements), [mask]; masked elements are 0
  kStore,        ///< pointer, offset tile, value, [mask]
  kCheckIndex,   ///< scalar extent, index tile, [mask]: an index outside of [0, extent) goes to the
                 ///< record, as one of node `index` of the body
  kReduce,       ///< over columns -> [rows, 1]; `fn` is kAdd, kMax or kMin
  kDot,          ///< a, b, accumulator: a x b + accumulator, in the accumulator's place
  kFor,     ///< low, high, step, initial values...; `body`; the induction variable is body_args[0]
  kForArg,  ///< the induction variable (index 0) or carried value index - 1 inside a loop
  kForResult,     ///< carried value `index` after loop args[0]
  kAllocShared,   ///< `stages` shared tiles of `dtype`, [rows, cols], swizzled for row step `index`
  kCopyToShared,  ///< shared, slot, pointer, offset tile, mask or none, scalar predicate:
                  ///< asynchronous where wide enough
  kStoreShared,   ///< shared, slot, tile
  kCommitGroup,   ///< ends a group of asynchronous copies
  kWaitGroup,     ///< waits until at most `index` groups are in flight, then a block barrier
  kSignal,        ///< block barrier, then releases flag phase `index` at every peer; [predicate]
  kWait,  ///< waits for every peer's flag of phase `index`, then a block barrier; [predicate]
};

/// Scalar functions of kMap. Comparison and logic give predicates. Of floats, kMin and kMax keep
/// NaN and order -0 below +0. Integers that may overflow (values, not indices) take the kWrap
/// forms.
enum class Fn : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kRem,
  kNeg,
  kAbs,
  kWrapAdd,
  kWrapSub,
  kWrapMul,
  kWrapNeg,
  kMin,
  kMax,
#define BRAID_FUNCTION(Name, name, value, cuda) k##Name,
  BRAID_SCALAR_FUNCTIONS(BRAID_FUNCTION, BRAID_FUNCTION)  // kExp, ...
#undef BRAID_FUNCTION
  kLt,
  kEq,
  kAnd,
  kNot,
  kSelect,
  kToI32,
  kToI64,
  kToF32,
  kSaturate,  ///< f32 to an integer dtype, as to_integer
  kRound
};

/// What a reduction by `fn` begins with.
double float_identity(Fn fn);
std::int64_t integer_identity(Fn fn);

struct Inst {
  Op op;
  Type type;
  std::vector<Id> args;
  Fn fn = Fn::kAdd;
  DType dtype = DType::kF32;  ///< in memory (load, store, shared) or to round to
  int index = 0;
  double number = 0;
  std::int64_t integer = 0;
  bool trans_a = false, trans_b = false;    ///< kDot: the operand tile is stored transposed
  int stages = 1;                           ///< kAllocShared
  std::vector<Id> body, body_args, yields;  ///< kFor
  int layout = -1;                          ///< index into Program::layouts, by assign_layouts
  int shared_offset = -1;                   ///< bytes: kAllocShared, and the scratch of kReduce
};

/// A parameter's facts for the printer and the axis analysis.
struct Param {
  KernelParam what;
  std::int64_t divisor = 1;  ///< a scalar is a multiple of this; a pointer is aligned to it (bytes)
};

struct Program {
  std::string entry;
  std::vector<Param> params;
  std::vector<Inst> insts;
  std::vector<Id> body;
  int num_warps = 4;
  int warps_m = 1;  ///< arrangement of warps over a dot's result
  int world = 0;    ///< ranks of the group, when it communicates
  bool communicates = false;
  std::vector<Layout> layouts;
  int shared_bytes = 0;
  Expr grid = 1;

  [[nodiscard]] const Inst& at(Id id) const { return insts[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Inst& at(Id id) { return insts[static_cast<std::size_t>(id)]; }
};

/// Appends instructions to a program, folding integer constants and reusing equal pure
/// instructions, so that the text stays small.
class Builder {
 public:
  explicit Builder(Program& program) : p_(program), block_(&program.body) {}

  Id param(const KernelParam& what, std::int64_t divisor = 1);
  /// The value of an expression over symbols: a constant, or an i64 parameter.
  Id scalar(const Expr& expr, std::int64_t divisor = 1);
  Id constant(Kind kind, double value);
  Id integer(std::int64_t value, Kind kind = Kind::kI64);
  Id program_id() { return append({.op = Op::kProgramId, .type = {Kind::kI64}, .args = {}}); }
  Id num_programs() { return append({.op = Op::kNumPrograms, .type = {Kind::kI64}, .args = {}}); }
  Id range(int rows, int cols, int axis);
  Id map(Fn fn, std::vector<Id> args, DType dtype = DType::kF32);
  /// The value nearest to `value` that `dtype` holds.
  Id round(DType dtype, Id value) {
    if (dtype == DType::kF32 || dtype == DType::kI64) return value;
    return map(Fn::kRound, {value}, dtype);
  }
  Id ptr_add(Id pointer, Id elements, DType dtype);
  Id peer(Id offset, Id rank);
  Id load(Id pointer, Id offset, Id mask, DType dtype);
  void store(Id pointer, Id offset, Id value, Id mask, DType dtype);
  /// Adds the parameters with which a kernel tells what went wrong.
  void can_fail();
  void check_index(Id index, Id extent, Id mask, int node);
  Id reduce(Fn fn, Id tile);
  Id dot(Id a, Id b, Id accumulator, bool trans_a, bool trans_b, DType dtype);
  /// A tile full of a constant.
  Id splat(Kind kind, int rows, int cols, double value);
  Id splat_integer(int rows, int cols, std::int64_t value);
  /// A tile of one column, or a scalar, spread over a tile of this shape.
  Id spread(Id value, int rows, int cols);
  void signal(int phase, Id predicate = kNone);
  void wait(int phase, Id predicate = kNone);

  /// Opens a loop; returns its id. Inside, `induction` and `carried` give the values; `end_for`
  /// closes it.
  Id begin_for(Id low, Id high, Id step, std::vector<Id> initial);
  Id induction(Id loop) { return p_.at(loop).body_args[0]; }
  Id carried(Id loop, int index) {
    return p_.at(loop).body_args[static_cast<std::size_t>(index) + 1];
  }
  /// Returns the carried values after the loop.
  std::vector<Id> end_for(Id loop, std::vector<Id> yields);

  Id append(Inst inst);
  /// Makes an instruction that stands in no block (loop arguments).
  Id detached(Inst inst);
  /// Where the next instructions go (passes that insert).
  void set_block(std::vector<Id>* block) {
    block_ = block;
    known_.assign(1, {});
  }
  [[nodiscard]] Program& program() { return p_; }
  [[nodiscard]] const Type& type(Id id) const { return p_.at(id).type; }

 private:
  Program& p_;
  std::vector<Id>* block_;
  struct OpenLoop {
    Id id;
    std::unique_ptr<std::vector<Id>> body;  ///< stays in place while loops nest
  };
  std::vector<std::vector<Id>*> outer_;
  std::vector<OpenLoop> open_;
  std::vector<std::map<std::string, Id>> known_{
      1};  ///< pure instructions, one table per open block
};

/// A tile value as the generic arithmetic of ir/scalar.h wants it.
struct TileExpr {
  Builder* builder;
  Id id;
};
inline bool is_float(TileExpr a) { return a.builder->type(a.id).kind == Kind::kF32; }
inline TileExpr operator+(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kAdd : Fn::kWrapAdd, {a.id, b.id})};
}
inline TileExpr operator-(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kSub : Fn::kWrapSub, {a.id, b.id})};
}
inline TileExpr operator*(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kMul : Fn::kWrapMul, {a.id, b.id})};
}
inline TileExpr operator/(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kDiv, {a.id, b.id})};
}
inline TileExpr operator-(TileExpr a) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kNeg : Fn::kWrapNeg, {a.id})};
}
inline TileExpr abs(TileExpr a) { return {a.builder, a.builder->map(Fn::kAbs, {a.id})}; }
#define BRAID_UNARY(Name, name, value, cuda) \
  inline TileExpr name(TileExpr a) { return {a.builder, a.builder->map(Fn::k##Name, {a.id})}; }
#define BRAID_BINARY(Name, name, value, cuda)                      \
  inline TileExpr name(TileExpr a, TileExpr b) {                   \
    return {a.builder, a.builder->map(Fn::k##Name, {a.id, b.id})}; \
  }
BRAID_SCALAR_FUNCTIONS(BRAID_UNARY, BRAID_BINARY)
#undef BRAID_UNARY
#undef BRAID_BINARY
inline TileExpr maximum(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kMax, {a.id, b.id})};
}
inline TileExpr minimum(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kMin, {a.id, b.id})};
}
/// Truth values are the integers 0 and 1.
inline TileExpr less(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kToI64, {a.builder->map(Fn::kLt, {a.id, b.id})})};
}
inline TileExpr equal(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kToI64, {a.builder->map(Fn::kEq, {a.id, b.id})})};
}
inline TileExpr select(TileExpr condition, TileExpr a, TileExpr b) {
  const Id zero = a.builder->constant(Kind::kI64, 0);
  const Id no = a.builder->map(Fn::kEq, {condition.id, zero});
  return {a.builder, a.builder->map(Fn::kSelect, {no, b.id, a.id})};
}
inline TileExpr like(TileExpr a, double constant) {
  return {a.builder, a.builder->constant(a.builder->type(a.id).kind, constant)};
}
inline TileExpr like(TileExpr a, std::int64_t constant) {
  if (is_float(a)) return like(a, static_cast<double>(static_cast<float>(constant)));
  return {a.builder, a.builder->integer(constant, a.builder->type(a.id).kind)};
}

// The tile passes, in order.

/// Turns each loop whose loads feed a dot into a ring of `num_stages` shared-memory slots, filled
/// by asynchronous copies num_stages - 1 iterations ahead.
void pipeline(Program& program, int num_stages);
/// Gives every tile its layout: accumulators and what is computed with them the mma (or FMA)
/// layout, the rest blocked rows. A reduction's layout depends only on its extent, so fusing never
/// changes its order.
void assign_layouts(Program& program);
/// Gives shared tiles and reduction scratch their offsets.
void allocate_shared(Program& program);

/// CUDA C++ of a program after all passes.
std::string print_cuda(const Program& program);

}  // namespace braid::tile
