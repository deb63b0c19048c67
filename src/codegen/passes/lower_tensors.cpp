// Tensor tiles. A load_tile or store_tile becomes a load or store in place:
//
//     pointer + (row * row_stride + col), a scalar
//     offsets r * row_stride + c for r, c from 0 on: the same for all tiles, so that a loop that
//             moves the origin computes them once; in i32 where a constant stride keeps them there
//     mask    r < rows - row and c < cols - col; a half is left out where extent and origin are
//             constants that hold the tile
//
// It runs first: later passes handle only loads and stores, which pipelining turns into
// asynchronous copies. Hardware copies of tensor tiles (TMA) belong in a pass before it.

#include "codegen/passes/lower_tensors.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "codegen/tile/builder.h"

namespace braid::tile {
namespace {

class TensorLowering {
 public:
  TensorLowering(Program& p, std::vector<Id>& out) : p_(p), b_(p) { b_.set_block(&out); }

  /// Appends the instructions that it needs to the block and rewrites it.
  void lower(Id id) {
    const Inst inst = p_.at(id);
    const bool is_store = inst.op == Op::kStoreTile;
    const Type tile = is_store ? p_.at(inst.args[6]).type : inst.type;
    const Id row_stride = wide(inst.args[3]);
    const Id row = wide(inst.args[4]);
    const Id col = wide(inst.args[5]);
    const Id origin = b_.map(Fn::kAdd, {b_.map(Fn::kMul, {row, row_stride}), col});
    const Id r = b_.range(tile.rows, tile.cols, 0);
    const Id c = b_.range(tile.rows, tile.cols, 1);
    const Id r_wide = fits_i32(tile, row_stride) ? r : b_.map(Fn::kToI64, {r});
    const Id offset = b_.map(Fn::kAdd, {b_.map(Fn::kMul, {r_wide, row_stride}), c});
    const Id mask = both(inside(r, tile.rows, wide(inst.args[1]), row),
                         inside(c, tile.cols, wide(inst.args[2]), col));

    Inst access = inst;
    access.op = is_store ? Op::kStore : Op::kLoad;
    access.args = {b_.ptr_add(inst.args[0], origin, inst.dtype), offset};
    if (is_store) access.args.push_back(inst.args[6]);
    if (mask != kNone) access.args.push_back(mask);
    p_.at(id) = std::move(access);
  }

 private:
  [[nodiscard]] std::optional<std::int64_t> constant(Id id) const {
    const Inst& inst = p_.at(id);
    return inst.op == Op::kConstant ? std::optional(inst.integer) : std::nullopt;
  }

  /// A scalar as i64, since an origin may be far into a tensor.
  Id wide(Id scalar) {
    if (b_.type(scalar).kind == Kind::kI64) return scalar;
    if (const auto value = constant(scalar)) return b_.integer(*value);
    return b_.map(Fn::kToI64, {scalar});
  }

  [[nodiscard]] bool fits_i32(const Type& tile, Id row_stride) const {
    const auto stride = constant(row_stride);
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    return stride && *stride <= (kMost - tile.cols) / tile.rows;
  }

  /// The mask of a tile's rows or columns that exist; kNone if all do.
  Id inside(Id range, int size, Id extent, Id origin) {
    const auto end = constant(extent);
    const auto first = constant(origin);
    if (end && first && *end - *first >= size) return kNone;
    return b_.map(Fn::kLt, {range, b_.map(Fn::kSub, {extent, origin})});
  }

  Id both(Id a, Id b) {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return b_.map(Fn::kAnd, {a, b});
  }

  Program& p_;
  Builder b_;
};

void lower_block(Program& p, std::vector<Id>& block) {
  std::vector<Id> out;
  TensorLowering tensors(p, out);
  for (Id id : block) {
    const Op op = p.at(id).op;
    if (op == Op::kLoadTile || op == Op::kStoreTile) tensors.lower(id);
    if (!p.at(id).body.empty()) {
      std::vector<Id> body = std::move(p.at(id).body);
      lower_block(p, body);
      p.at(id).body = std::move(body);
    }
    out.push_back(id);
  }
  block = std::move(out);
}

}  // namespace

void lower_tensors(Program& program) { lower_block(program, program.body); }

}  // namespace braid::tile
