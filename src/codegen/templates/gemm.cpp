// Matmul with a pointwise epilogue: one block per BLOCK_M x BLOCK_N tile of the result, one loop
// over K with a dot, whose loads the pipeliner turns into an asynchronous ring. Either operand may
// be read transposed. Blocks go down the columns first, so that neighbours share a panel of B.

#include "codegen/templates/body.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;

namespace {

/// An operand as it lies in memory: the body input, and whether it is read transposed.
struct Side {
  ValueId input;
  bool transposed;
};

Side side_of(const Graph& body, ValueId value) {
  const NodeId producer = body.value(value).producer;
  if (producer < 0) return {value, false};
  return {body.node(producer).inputs[0], true};
}

struct Extent {
  Dim dim;
  int block;
  Id start;  ///< first index of the tile, a scalar
};

/// Loads the tile [rows, cols] of a dense row-major matrix; masks the extents that blocks do not
/// divide.
Id load_tile(tile::Builder& b, const Graph& body, ValueId input, const Extent& rows,
             const Extent& cols) {
  const SymbolTable& symbols = body.symbols();
  const DType dtype = body.type(input).dtype;
  const Id row =
      b.map(Fn::kAdd, {b.map(Fn::kToI32, {rows.start}), b.range(rows.block, cols.block, 0)});
  const Id col =
      b.map(Fn::kAdd, {b.map(Fn::kToI32, {cols.start}), b.range(rows.block, cols.block, 1)});
  Id mask = tile::kNone;
  const auto bound = [&](const Extent& extent, Id index) {
    if (extent.dim.is_constant() && extent.dim.constant() % extent.block == 0) return;
    const Id limit = scalar_of(b, Expr(extent.dim), symbols);
    const Id inside = b.map(Fn::kLt, {index, limit});
    mask = mask == tile::kNone ? inside : b.map(Fn::kAnd, {mask, inside});
  };
  bound(rows, row);
  bound(cols, col);
  const bool narrow = numel(body.type(input).shape).max(symbols) < (std::int64_t{1} << 31);
  const Id wide_row = narrow ? row : b.map(Fn::kToI64, {row});
  Id stride = scalar_of(b, Expr(cols.dim), symbols);
  if (narrow) stride = b.map(Fn::kToI32, {stride});
  const Id offset = b.map(Fn::kAdd, {b.map(Fn::kMul, {wide_row, stride}), col});
  const Id pointer = b.param({.kind = KernelParam::Kind::kInput,
                              .index = body.value(input).result,
                              .expr = 0,
                              .group = {}},
                             16);
  return b.load(pointer, offset, mask, dtype);
}

}  // namespace

void build_gemm(const KernelSpec& spec, const BodyInfo& info, tile::Program& program) {
  tile::Builder b(program);
  const Graph& body = *spec.body;
  const SymbolTable& symbols = body.symbols();
  const Node& mm = *info.mm;
  const Side a = side_of(body, mm.inputs[0]);
  const Side w = side_of(body, mm.inputs[1]);
  const int block_m = static_cast<int>(spec.config.at("BLOCK_M"));
  const int block_n = static_cast<int>(spec.config.at("BLOCK_N"));
  const int block_k = static_cast<int>(spec.config.at("BLOCK_K"));
  const Dim& m = info.space[0];
  const Dim& n = info.space[1];
  const Dim& k = body.type(mm.inputs[0]).shape[1];
  const DType dtype = body.type(mm.inputs[0]).dtype;

  program.warps_m = block_m >= 64 && program.num_warps >= 4 ? 2 : 1;
  const Expr tiles_m = ceil_div(Expr(m), Expr(block_m));
  program.grid = tiles_m * ceil_div(Expr(n), Expr(block_n));
  // 32-bit: a 64-bit division is a call.
  const Id pid = b.map(Fn::kToI32, {b.program_id()});
  const Id down = b.map(Fn::kToI32, {b.scalar(tiles_m)});
  const Extent em{m, block_m, b.map(Fn::kMul, {b.map(Fn::kRem, {pid, down}), b.integer(block_m)})};
  const Extent en{n, block_n, b.map(Fn::kMul, {b.map(Fn::kDiv, {pid, down}), b.integer(block_n)})};

  const Id zero = b.splat(Kind::kF32, block_m, block_n, 0);
  const Id loop =
      b.begin_for(b.integer(0), scalar_of(b, Expr(k), symbols), b.integer(block_k), {zero});
  const Extent ek{k, block_k, b.induction(loop)};
  const Id tile_a =
      a.transposed ? load_tile(b, body, a.input, ek, em) : load_tile(b, body, a.input, em, ek);
  const Id tile_w =
      w.transposed ? load_tile(b, body, w.input, en, ek) : load_tile(b, body, w.input, ek, en);
  const Id product = b.dot(tile_a, tile_w, b.carried(loop, 0), a.transposed, w.transposed, dtype);
  const Id sum = b.end_for(loop, {product})[0];

  // The epilogue works on the same tile, in the accumulator's layout.
  const bool narrow = numel(info.space).max(symbols) < (std::int64_t{1} << 31);
  const auto index = [&](const Extent& extent, int axis) {
    const Id start = narrow ? b.map(Fn::kToI32, {extent.start}) : extent.start;
    return b.map(Fn::kAdd, {start, b.range(block_m, block_n, axis)});
  };
  const Id row = index(em, 0);
  const Id col = index(en, 1);
  Id mask = b.map(Fn::kLt, {row, scalar_of(b, Expr(m), symbols)});
  if (!n.is_constant() || n.constant() % block_n != 0) {
    mask = b.map(Fn::kAnd, {mask, b.map(Fn::kLt, {col, scalar_of(b, Expr(n), symbols)})});
  }
  BodyEmitter emitter(b, body, info, {{row, {m}}, {col, {n}}}, block_m, block_n, mask);
  emitter.define(mm.outputs[0], b.round(body.type(mm.outputs[0]).dtype, sum));
  emitter.emit();
}

}  // namespace braid
