// Work on rows, or on flat chunks, of a body without a matmul. A body that reduces works row by
// row: one row is one tile, padded to a power of two. Any other works on the flattened space in
// chunks of eight elements per thread.

#include <algorithm>

#include "codegen/templates/body.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

PieceWork piece_work(const KernelSpec& spec, const BodyInfo& info) {
  const SymbolTable& symbols = spec.body->symbols();
  PieceWork work;
  if (info.col_dims == 0) {
    work.flat = true;
    work.cols = static_cast<int>(spec.config.at("num_warps")) * 32 * 8;
    work.count = ceil_div(numel(info.space), Expr(work.cols));
    return work;
  }
  const Shape rows(info.space.begin(), info.space.end() - info.col_dims);
  const Shape cols(info.space.end() - info.col_dims, info.space.end());
  work.count = numel(rows);
  work.cols = static_cast<int>(round_up_to_power_of_two(numel(cols).max(symbols)));
  return work;
}

void emit_piece(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info,
                const PieceWork& work, Id piece) {
  const Graph& body = *spec.body;
  const SymbolTable& symbols = body.symbols();
  const Id range = b.range(1, work.cols, 1);
  std::vector<Axis> axes;
  Id mask = kNone;
  const auto bound = [&](Id index, const Shape& shape, bool aligned) {
    std::int64_t divisor = 1;
    for (const Dim& d : shape) divisor *= std::max<std::int64_t>(1, d.divisor(symbols));
    const Expr count = numel(shape);
    if (aligned && count.is_constant() && count.evaluate({}) % work.cols == 0) return;
    mask = b.map(Fn::kLt, {index, b.scalar(count, divisor)});
  };
  if (work.flat) {
    const bool narrow = numel(info.space).max(symbols) < (std::int64_t{1} << 31) - work.cols;
    Id start = b.map(Fn::kMul, {piece, b.integer(work.cols)});
    if (narrow) start = b.map(Fn::kToI32, {start});
    const Id index = b.map(Fn::kAdd, {start, range});
    bound(index, info.space, true);
    axes.push_back({index, info.space});
  } else {
    const Shape rows(info.space.begin(), info.space.end() - info.col_dims);
    const Shape cols(info.space.end() - info.col_dims, info.space.end());
    bound(range, cols, true);
    axes.push_back({piece, rows});
    axes.push_back({range, cols});
  }
  BodyEmitter(b, body, info, std::move(axes), 1, work.cols, mask).emit();
}

}  // namespace braid
