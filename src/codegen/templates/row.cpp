// Row reduction: one block per row, everything around the reductions in the same registers. A
// reduction that no row of registers can hold (over leading dims, or too long) loops instead, one
// output element per thread.

#include <algorithm>
#include <cmath>

#include "codegen/templates/body.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;

namespace {

void build_loop_reduction(const KernelSpec& spec, const BodyInfo& info, tile::Program& program) {
  tile::Builder b(program);
  const Graph& body = *spec.body;
  const SymbolTable& symbols = body.symbols();
  const Node& node = *info.loop_reduction;
  const Shape& shape = info.space;
  std::vector<std::int64_t> reduced = *node.attr<std::vector<std::int64_t>>("dim");
  for (std::int64_t& d : reduced) d += d < 0 ? static_cast<std::int64_t>(shape.size()) : 0;
  const std::vector<Expr> strides = dense_strides(shape);
  Shape out_dims, loop_dims;
  std::vector<Expr> out_strides, loop_strides;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_reduced =
        reduced.empty() ||
        std::find(reduced.begin(), reduced.end(), static_cast<std::int64_t>(i)) != reduced.end();
    (is_reduced ? loop_dims : out_dims).push_back(shape[i]);
    (is_reduced ? loop_strides : out_strides).push_back(strides[i]);
  }
  const DType in_dtype = body.type(node.inputs[0]).dtype;
  const DType out_dtype = body.type(node.outputs[0]).dtype;
  const int cols = program.num_warps * 32 * 8;
  program.grid = ceil_div(numel(out_dims), Expr(cols));
  const Id range = b.range(1, cols, 1);
  const Id index = b.map(Fn::kAdd, {b.map(Fn::kMul, {b.program_id(), b.integer(cols)}), range});
  const Id mask = b.map(Fn::kLt, {index, b.scalar(numel(out_dims))});
  Id offset = linear_offset(b, index, out_dims, out_strides, symbols);
  if (b.type(offset).is_scalar())
    offset = b.map(Fn::kAdd, {b.splat(Kind::kI32, 1, cols, 0), offset});
  const Id input =
      b.param({.kind = KernelParam::Kind::kInput, .index = 0, .expr = 0, .group = {}}, 16);
  const bool is_max = node.op_name() == "amax";
  const Kind kind = is_float(in_dtype) ? Kind::kF32 : Kind::kI64;
  const double lowest = kind == Kind::kF32 ? -INFINITY : -9223372036854775808.0;
  const Id loop = b.begin_for(b.integer(0), b.scalar(numel(loop_dims)), b.integer(1),
                              {b.splat(kind, 1, cols, is_max ? lowest : 0)});
  const Id step = linear_offset(b, b.induction(loop), loop_dims, loop_strides, symbols);
  const Id value = b.load(b.ptr_add(input, step, in_dtype), offset, mask, in_dtype);
  const auto results =
      b.end_for(loop, {b.map(is_max ? Fn::kMax : Fn::kAdd, {b.carried(loop, 0), value})});
  const Id output =
      b.param({.kind = KernelParam::Kind::kOutput, .index = 0, .expr = 0, .group = {}}, 16);
  b.store(output, index, b.round(out_dtype, results[0]), mask, out_dtype);
}

}  // namespace

void build_row(const KernelSpec& spec, const BodyInfo& info, tile::Program& program) {
  if (info.loop_reduction != nullptr) {
    build_loop_reduction(spec, info, program);
    return;
  }
  tile::Builder b(program);
  const PieceWork work = piece_work(spec, info);
  program.grid = work.count;
  emit_piece(b, spec, info, work, b.program_id());
}

}  // namespace braid
