// How a kernel reads the operand of a collective out of the arenas of all ranks, one form for all
// collectives (ir/collective.h).

#include "codegen/templates/body.h"
#include "ir/collective.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

/// The one of the values, a scalar, that stands at this rank's place.
Id BodyEmitter::by_rank(const std::string& group, const std::vector<std::int64_t>& values) {
  const Id rank =
      b_.param({.kind = KernelParam::Kind::kRank, .index = 0, .expr = 0, .group = group});
  Id result = b_.integer(values.back());
  for (std::size_t r = values.size() - 1; r-- > 0;) {
    if (values[r] == values.back()) continue;
    const Id own = b_.map(Fn::kEq, {rank, b_.integer(static_cast<std::int64_t>(r))});
    result = b_.map(Fn::kSelect, {own, b_.integer(values[r]), result});
  }
  return result;
}

/// Reads the operand of the ranks as ir/collective.h says. Where a chunk of the result is one
/// rank's, each rank is read under the condition that the element is its own.
Id BodyEmitter::from_peers(const Node& node, const Coords& at, const Mask& mask) {
  const ValueId operand = node.inputs[0];
  const TensorType& type = body_.type(operand);
  const std::string& group = *node.attr<std::string>("group");
  const Collective form = collective_of(body_, node.op_name(), node.attrs, type);
  KernelParam what{.kind = KernelParam::Kind::kOffset, .index = 0, .group = group};
  if (body_.value(operand).producer < 0) {
    what.index = body_.value(operand).result;
  } else {
    what.kind = KernelParam::Kind::kResultOffset;
    what.index = static_cast<int>(info_.prologue_output(body_));
  }
  const Id offset = b_.param(what, 256);
  const bool even = form.splits.empty();
  const Coords own = form.scatter_dim && even ? own_chunk(form, group, type.shape, at) : at;
  if (form.src) return load(b_.peer(offset, static_cast<int>(*form.src)), own, type.dtype, mask);

  const int world = static_cast<int>(form.ranks);
  Id result = kNone;
  if (!form.gather_dim) {
    const auto fold = [&](Id a, Id b) {
      switch (*form.reduce) {
        case ReduceOp::kMax:
          return b_.map(Fn::kMax, {a, b});
        case ReduceOp::kMin:
          return b_.map(Fn::kMin, {a, b});
        case ReduceOp::kProduct:
          return b_.map(is_float(type.dtype) ? Fn::kMul : Fn::kWrapMul, {a, b});
        default:
          return b_.map(is_float(type.dtype) ? Fn::kAdd : Fn::kWrapAdd, {a, b});
      }
    };
    for (int rank = 0; rank < world; ++rank) {
      const Id part = load(b_.peer(offset, rank), own, type.dtype, mask);
      result = rank == 0 ? part : fold(result, part);
    }
    if (*form.reduce == ReduceOp::kAvg) {
      result = b_.map(Fn::kDiv, {result, b_.constant(Kind::kF32, world)});
    }
    return b_.round(type.dtype, result);
  }

  const std::size_t dim = *form.gather_dim;
  const Id index = coords_.index_of(at, dim);
  const Dim chunk = even && form.scatter_dim == form.gather_dim
                        ? *type.shape[dim].divide_exactly(form.ranks)
                        : type.shape[dim];
  const auto like_index = [&](Id scalar) {
    return b_.type(index).kind == Kind::kI32 ? b_.map(Fn::kToI32, {scalar}) : scalar;
  };
  // First row of a rank's chunk, here or at that rank.
  const auto start = [&](int rank, auto start_of) {
    std::vector<std::int64_t> starts;
    for (int to = 0; to < world; ++to) starts.push_back((form.*start_of)(rank, to));
    return like_index(by_rank(group, starts));
  };
  std::vector<Id> parts, inside;
  for (int rank = 0; rank < world; ++rank) {
    Coords from = own;
    Axis& axis = from[coords_.isolate(from, dim)];
    Id end;
    if (even) {
      axis.index = coords_.scaled(axis.index, chunk * -rank, 1);
      end = coords_.scalar_like(index, Expr(chunk * (rank + 1)));
    } else {
      const Id moved = b_.map(Fn::kSub, {axis.index, start(rank, &Collective::result_start)});
      axis.index = b_.map(Fn::kAdd, {moved, start(rank, &Collective::operand_start)});
      end = start(rank + 1, &Collective::result_start);
    }
    axis.dims = {type.shape[dim]};
    Mask condition = mask;
    if (rank > 0) condition.push_back(b_.map(Fn::kNot, {inside.back()}));
    inside.push_back(b_.map(Fn::kLt, {index, end}));
    if (rank + 1 < world) condition.push_back(inside.back());
    parts.push_back(load(b_.peer(offset, rank), from, type.dtype, condition));
  }
  result = parts.back();
  for (std::size_t rank = parts.size() - 1; rank-- > 0;) {
    result = b_.map(Fn::kSelect, {inside[rank], parts[rank], result});
  }
  return result;
}

/// The coordinates moved into this rank's chunk of the operand along the scatter dim.
Coords BodyEmitter::own_chunk(const Collective& form, const std::string& group,
                              const Shape& operand, const Coords& at) {
  const std::size_t dim = *form.scatter_dim;
  Coords from = at;
  Axis& axis = from[coords_.isolate(from, dim)];
  const Id rank =
      b_.param({.kind = KernelParam::Kind::kRank, .index = 0, .expr = 0, .group = group});
  const Dim chunk = *operand[dim].divide_exactly(form.ranks);
  Id start = b_.map(Fn::kMul, {rank, scalar_of(b_, Expr(chunk), body_.symbols())});
  if (b_.type(axis.index).kind == Kind::kI32) start = b_.map(Fn::kToI32, {start});
  axis.index = b_.map(Fn::kAdd, {axis.index, start});
  axis.dims = {operand[dim]};
  return from;
}

}  // namespace braid
