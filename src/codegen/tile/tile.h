#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/spec.h"
#include "codegen/tile/layout.h"
#include "ir/scalar_functions.h"

namespace braid::tile {

// A tile program: the work of one block, in SSA form over tiles (docs/architecture.md, Tile
// programs). A template builds it, the tile passes rewrite it, the printer turns it into CUDA text.
// Tiles are two-dimensional [rows, cols], with powers of two as extents; scalars are the same for
// all threads. Whatever the dtype in memory, floats are computed in f32 and integers in i64;
// `round` maps a value to what its dtype can hold.

using Id = std::int32_t;
inline constexpr Id kNone = -1;

enum class Kind : std::uint8_t { kF32, kI32, kI64, kPred, kPtr, kShared, kRing, kSums };

/// A packet is one access: a payload of 4 bytes, and above it the epoch as its flag.
inline constexpr int kPacketBytes = 8;
/// Adjacent elements in one packet, for a tile with that many columns.
inline int packet_elements(DType dtype, int cols) {
  const int most = kPacketBytes / 2 / static_cast<int>(dtype_size(dtype));
  return most < cols ? most : cols;
}

/// Registers of a multiprocessor.
inline constexpr int kRegisters = 65536;
/// Registers per thread when a block of that many warps has its multiprocessor to itself.
inline int registers_of_thread(int num_warps) {
  constexpr int kMost = 256;
  const int share = kRegisters / (32 * num_warps);
  return share < kMost ? share : kMost;
}

/// Registers that a thread has at its launch, in a block of so many that has its multiprocessor to
/// itself.
inline int registers_at_launch(int threads) { return kRegisters / threads / 8 * 8; }

/// Loops over more ranks are not unrolled, or text and compile time would grow with the ranks.
inline constexpr int kUnrolledRanks = 16;

/// Bytes of a computed value in shared memory.
inline int value_bytes(Kind kind) { return kind == Kind::kI64 ? 8 : kind == Kind::kPred ? 1 : 4; }

struct Type {
  Kind kind = Kind::kI64;
  int rows = 0;  ///< 0: a scalar
  int cols = 0;
  [[nodiscard]] bool is_scalar() const { return rows == 0; }
  bool operator==(const Type&) const = default;
};

/// Operations, as listed in ops.inc: Op::kParam, ...
enum class Op : std::uint8_t {
#define BRAID_TILE_OP(Name, ...) k##Name,
#include "codegen/tile/ops.inc"
#undef BRAID_TILE_OP
};

/// Scalar functions for kMap. Comparisons and logic give predicates. For floats, kMin and kMax
/// propagate NaN and order -0 below +0. Integers that may overflow (values, not indices) use the
/// kWrap forms.
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
  kBitAnd,  ///< of integers, as kBitOr and kBitXor
  kBitOr,
  kBitXor,
  kShiftLeft,  ///< of integers by any number, as in ir/scalar.h; kShiftRight keeps the sign
  kShiftRight,
  kMin,
  kMax,
  kExp2,  ///< of a float, with a relative error of 2^-22; a result below 2^-126 is 0
  kFma,   ///< a * b + c of floats, rounded once
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
  kAsF32,     ///< the same bits
  kSaturate,  ///< f32 to an integer dtype, as to_integer
  kRound
};

/// The neutral element of a reduction by `fn`.
double float_identity(Fn fn);
std::int64_t integer_identity(Fn fn);

/// Where the elements of a value live.
enum class Place : std::uint8_t {
  kRegisters,  ///< in its own registers
  kInline,     ///< nowhere: they are computed in the expressions that use them
  kAlias       ///< in another value's registers
};

struct Inst {
  Op op;
  Type type;
  std::vector<Id> args;
  Fn fn = Fn::kAdd;
  DType dtype = DType::kF32;  ///< in memory (load, store, shared), or the dtype to round to
  int index = 0;
  double number = 0;
  std::int64_t integer = 0;
  bool trans_a = false, trans_b = false;    ///< kDot: the operand tile is stored transposed
  int stages = 1;                           ///< kAllocShared, kAllocRing, kAllocSums
  std::vector<Id> body, body_args, yields;  ///< kFor; kRole has a body alone
  int layout = -1;                          ///< index into Program::layouts, by assign_layouts
  /// Bytes: kAllocShared, kAllocRing, kAllocSums (what says where they are), scratch of kReduce,
  /// kConvertLayout.
  int shared_offset = -1;

  // Set by lower_to_threads.
  Place place = Place::kRegisters;
  Id storage = kNone;  ///< Place::kAlias: whose registers
  int width = 1;       ///< elements of one access
  int width_in = 1;    ///< kConvertLayout: of one that fills its scratch
  /// kDot: the steps of K, and kCopyToShared: the accesses of a thread, that this part of it has;
  /// `last` 0: all.
  int first = 0, last = 0;
  bool whole = false;  ///< accesses of all ranks: the elements of one have the same mask;
                       ///< kPushTile: by stmatrix
  /// Of the loop over registers or K; 0: wholly. kFor: so many turns stand in a row.
  int unroll = 0;
  bool barrier = false;  ///< a block barrier comes first: the scratch may still be read, or a
                         ///< packet be missing
  int lanes = 0;         ///< kReduce: bits of the lane to combine over; else: threads where one
  int warps = 0;         ///<   of these bits is set hold copies and stay out; kRole: how many
  LayoutChange change = LayoutChange::kNone;        ///< kConvertLayout
  bool trans_load_a = false, trans_load_b = false;  ///< kDot: its fragments are loaded by
                                                    ///< ldmatrix.trans
  /// Layouts of one row: the buffer element for each register, lane and warp (kCopyToShared and the
  /// fragments of kDot: the byte). kDot: of a and b, -1 if in registers. kReduce: for writing and
  /// reading the scratch. kConvertLayout: likewise, or the operand's register and lane.
  std::vector<int> addresses;
};

/// A parameter, with facts for the printer and the axis analysis.
struct Param {
  KernelParam what;
  std::int64_t divisor = 1;  ///< a scalar is a multiple of it; a pointer is aligned to it (bytes)
};

struct Program {
  std::string entry;
  Target target;  ///< whose units it uses (codegen/units.h)
  std::vector<Param> params;
  std::vector<Inst> insts;
  std::vector<Id> body;
  int num_warps = 4;  ///< that compute: of all, where there are no roles
  int warps_m = 1;    ///< arrangement of warps over a dot's result
  int columns = 8;    ///< that lie together in a thread, of tiles that nothing else lays out
  int world = 0;      ///< ranks of the group, when it communicates
  bool communicates = false;
  bool in_place = false;           ///< operands may share a place
  std::int64_t flag_slots = 0;     ///< slots owned by the step; each has a flag per rank
  std::int64_t scratch_bytes = 0;  ///< bytes in the symmetric arena that peers write
  std::vector<Layout> layouts;
  int shared_bytes = 0;
  Expr grid = 1;
  LaunchAttributes attributes;  ///< the grid has one dim, and so do its clusters

  [[nodiscard]] const Inst& at(Id id) const { return insts[id]; }
  [[nodiscard]] Inst& at(Id id) { return insts[id]; }
};

/// How a layout change moves floats through shared memory: as the dtype that they were rounded to
/// just before, else as f32.
[[nodiscard]] DType moved_dtype(const Program& program, const Inst& change);

/// Of a block: those that compute, and those of the other roles.
[[nodiscard]] int block_threads(const Program& program);

}  // namespace braid::tile
