// How a kernel reads a collective's operand from the arenas of all ranks, in one form for all
// collectives (ir/collective.h). Few ranks are unrolled (for a gather those that a tile reaches);
// many are a loop. Uneven chunks, which a graph lists for every pair of ranks, are always unrolled.

#include <algorithm>
#include <numeric>
#include <optional>

#include "codegen/cuda/preamble.h"
#include "codegen/kernel/phases.h"
#include "codegen/passes/axis_info.h"
#include "ir/collective.h"
#include "ir/numel.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

namespace {

/// Scalar bounds of the elements of an index tile.
struct Bounds {
  Id low, high;
};

/// Nothing where the form of the index does not tell.
std::optional<Bounds> bounds_of(tile::Builder& b, Id index) {
  const tile::Inst inst = b.program().at(index);  // copied, because new instructions move it
  if (inst.type.is_scalar()) return Bounds{index, index};
  if (inst.op == tile::Op::kRange) {
    return Bounds{b.integer(0), b.integer((inst.index == 0 ? inst.type.rows : inst.type.cols) - 1)};
  }
  if (inst.op != tile::Op::kMap) return {};
  const auto first = bounds_of(b, inst.args[0]);
  if (!first || inst.fn == Fn::kToI32 || inst.fn == Fn::kToI64) return first;
  if (inst.fn == Fn::kAdd) {
    const auto second = bounds_of(b, inst.args[1]);
    if (!second) return {};
    return Bounds{b.map(Fn::kAdd, {first->low, second->low}),
                  b.map(Fn::kAdd, {first->high, second->high})};
  }
  const tile::Inst factor = b.program().at(inst.args[1]);
  const bool positive = factor.op == tile::Op::kConstant && factor.integer > 0;
  if (!positive || (inst.fn != Fn::kMul && inst.fn != Fn::kDiv)) return {};
  return Bounds{b.map(inst.fn, {first->low, inst.args[1]}),
                b.map(inst.fn, {first->high, inst.args[1]})};
}

/// The length of the range that an index tile spans, and a divisor of its first index (0: any).
struct Run {
  std::int64_t extent, divisor;
};

/// Nothing where the form of the index does not tell.
std::optional<Run> run_of(const tile::Program& program, Id index) {
  const tile::Inst& inst = program.at(index);
  if (inst.type.is_scalar()) {
    return Run{1, tile::AxisAnalysis(program).of(index).divisibility};
  }
  if (inst.op == tile::Op::kRange) return Run{inst.index == 0 ? inst.type.rows : inst.type.cols, 0};
  if (inst.op != tile::Op::kMap) return {};
  const auto first = run_of(program, inst.args[0]);
  if (!first || inst.fn == Fn::kToI32 || inst.fn == Fn::kToI64) return first;
  if (inst.fn == Fn::kAdd) {
    const auto second = run_of(program, inst.args[1]);
    if (!second) return {};
    return Run{first->extent + second->extent - 1, std::gcd(first->divisor, second->divisor)};
  }
  const tile::Inst& factor = program.at(inst.args[1]);
  if (factor.op != tile::Op::kConstant || factor.integer <= 0) return {};
  if (inst.fn == Fn::kMul) {
    return Run{(first->extent - 1) * factor.integer + 1, first->divisor * factor.integer};
  }
  if (inst.fn != Fn::kDiv || first->divisor % factor.integer != 0) return {};
  return Run{(first->extent - 1) / factor.integer + 1, first->divisor / factor.integer};
}

}  // namespace

/// Selects the scalar at this rank's index.
Id BodyEmitter::by_rank(const std::string& group, const std::vector<std::int64_t>& values) {
  const Id rank = own_rank(b_, group);
  Id result = b_.integer(values.back());
  for (std::size_t r = values.size() - 1; r-- > 0;) {
    if (values[r] == values.back()) continue;
    const Id own = b_.map(Fn::kEq, {rank, b_.integer(static_cast<std::int64_t>(r))});
    result = b_.map(Fn::kSelect, {own, b_.integer(values[r]), result});
  }
  return result;
}

/// The offset of a collective's operand in every rank's arena.
Id BodyEmitter::operand_offset(const Node& collective) {
  const ValueId operand = collective.inputs[0];
  KernelParam what{.kind = KernelParam::Kind::kOffset,
                   .index = 0,
                   .group = *collective.attr<std::string>("group")};
  if (body_.value(operand).producer < 0) {
    what.index = body_.value(operand).result;
  } else {
    what.kind = KernelParam::Kind::kResultOffset;
    what.index = static_cast<int>(info_.prologue_output(body_));
  }
  return b_.param(what, 256);
}

/// The multicast address of that operand.
Id BodyEmitter::multicast_operand(const Node& collective) {
  return b_.multicast(operand_offset(collective), *collective.attr<std::string>("group"));
}

/// A read of a collective's operand.
struct BodyEmitter::FromPeers {
  const Collective& form;
  const std::string& group;
  const TensorType& type;  ///< of the operand
  Id offset;               ///< of the operand in the arenas
  Coords own;              ///< in the operand, where this rank's chunk would be
  Mask mask;
  [[nodiscard]] int world() const { return static_cast<int>(form.ranks); }
};
/// The dim along which the result is assembled.
struct BodyEmitter::Gathering {
  std::size_t dim;
  Id index;   ///< index in the result
  Dim chunk;  ///< extent per rank, if equal
};

/// Reads the ranks' operands as ir/collective.h defines. Where each chunk of the result comes from
/// one rank, each rank that a tile reaches is read under the condition that the element belongs to
/// it.
Id BodyEmitter::from_peers(const Node& node, const Coords& at, const Mask& mask) {
  const TensorType& type = body_.type(node.inputs[0]);
  const std::string& group = *node.attr<std::string>("group");
  const Collective form = collective_of(body_, node, type);
  if (info_.packets) return received(node, form, mask);
  if (info_.reduces_product && form.scatter_dim) return pushed(node, form, at, mask);
  const Id offset = operand_offset(node);
  if (owner_ != kNone) return load(b_.peer(offset, owner_), at, type.dtype, mask);
  if (info_.multimem) return multimem_sum(node, form, at, mask);
  const bool even = form.splits.empty();
  const Coords own = form.scatter_dim && even ? own_chunk(form, group, type.shape, at) : at;
  if (form.src) return load(b_.peer(offset, b_.integer(*form.src)), own, type.dtype, mask);

  const FromPeers from{form, group, type, offset, own, mask};
  if (!form.gather_dim) {
    return sum_of(form, type.dtype,
                  [&](Id rank) { return load(b_.peer(offset, rank), own, type.dtype, mask); });
  }
  const std::size_t dim = *form.gather_dim;
  const Dim chunk = even && form.scatter_dim == form.gather_dim
                        ? *type.shape[dim].divide_exactly(form.ranks, body_.symbols())
                        : type.shape[dim];
  const Gathering gathering{dim, coords_.index_of(at, dim), chunk};
  if (!even) return gather_uneven(from, gathering);
  if (const auto result = gather_even(from, at, dim, chunk)) return *result;
  return gather_in_loop(from, gathering);
}

/// Reads this rank's own operand, into which the ranks have written their parts of its chunk one
/// after the other.
Id BodyEmitter::pushed(const Node& node, const Collective& form, const Coords& at,
                       const Mask& mask) {
  const TensorType& chunk = body_.type(node.outputs[0]);
  const Id operand = b_.param({.kind = KernelParam::Kind::kOutput,
                               .index = static_cast<int>(info_.prologue_output(body_)),
                               .group = {}},
                              16);
  const Id elements = scalar_of(b_, numel(chunk.shape), body_.symbols());
  return sum_of(form, chunk.dtype, [&](Id rank) {
    const Id part = b_.ptr_add(operand, b_.map(Fn::kMul, {rank, elements}), chunk.dtype);
    return load(part, at, chunk.dtype, mask);
  });
}

/// The sum in the hardware's order.
Id BodyEmitter::multimem_sum(const Node& node, const Collective& form, const Coords& at,
                             const Mask& mask) {
  const DType dtype = body_.type(node.inputs[0]).dtype;
  const Elements from = elements(multicast_operand(node), at, dtype);
  const Id sum = b_.multimem_reduce(from.pointer, from.offset, masked(mask, from), dtype);
  if (*form.reduce == ReduceOp::kSum) return sum;
  return b_.map(Fn::kDiv, {sum, b_.constant(Kind::kF32, static_cast<double>(form.ranks))});
}

/// The sum in rank order. `part` gives one rank's value; the values of `together` ranks are loaded
/// before any is added.
Id BodyEmitter::sum_of(const Collective& form, DType dtype, const Part& part, int together) {
  const auto world = static_cast<int>(form.ranks);
  const auto fold = [&](Id a, Id b) {
    switch (*form.reduce) {
      case ReduceOp::kMax:
        return b_.map(Fn::kMax, {a, b});
      case ReduceOp::kMin:
        return b_.map(Fn::kMin, {a, b});
      case ReduceOp::kProduct:
        return b_.map(is_float(dtype) ? Fn::kMul : Fn::kWrapMul, {a, b});
      default:
        return b_.map(is_float(dtype) ? Fn::kAdd : Fn::kWrapAdd, {a, b});
    }
  };
  Id result = kNone;
  if (world <= tile::kUnrolledRanks) {
    for (int first = 0; first < world; first += together) {
      std::vector<Id> parts;
      for (int rank = first; rank < std::min(world, first + together); ++rank) {
        parts.push_back(part(b_.integer(rank)));
      }
      for (const Id next : parts) result = result == kNone ? next : fold(result, next);
    }
  } else {
    result = part(b_.integer(0));
    const Id loop = b_.begin_for(b_.integer(1), b_.integer(world), b_.integer(1), {result});
    result = b_.end_for(loop, {fold(b_.carried(loop, 0), part(b_.induction(loop)))})[0];
  }
  if (*form.reduce == ReduceOp::kAvg) {
    result = b_.map(Fn::kDiv, {result, b_.constant(Kind::kF32, world)});
  }
  return b_.round(dtype, result);
}

/// A scalar of the same kind as the index.
Id BodyEmitter::like_index(const Gathering& gathering, Id scalar) {
  return b_.type(gathering.index).kind == Kind::kI32 ? b_.map(Fn::kToI32, {scalar}) : scalar;
}

/// Reads the ranks that a tile may reach: one where chunks are multiples of the tile's span and its
/// position is too; all where its position is unknown. Nothing where there are too many.
std::optional<Id> BodyEmitter::gather_even(const FromPeers& from, const Coords& at, std::size_t dim,
                                           const Dim& chunk) {
  Coords whole = at;
  const Axis& along = whole[coords_.split_before(whole, dim)];
  const Expr elements = Expr(chunk) * numel(Shape(along.dims.begin() + 1, along.dims.end()));
  const auto run = run_of(b_.program(), along.index);
  const auto known = elements.dim();
  std::int64_t reached = from.world();
  if (run && known && std::gcd(run->divisor, known->divisor(body_.symbols())) >= run->extent) {
    reached = 1;
  } else if (run && known) {
    const std::int64_t least = std::max<std::int64_t>(1, known->min(body_.symbols()));
    reached = std::min(reached, (run->extent - 2 + least) / least + 1);
  }
  if (reached > tile::kUnrolledRanks) return {};
  const auto scalar = [&](const Expr& value) { return coords_.scalar_like(along.index, value); };
  const Id last = scalar(Expr(from.world() - 1));
  Id first = kNone;
  if (reached < from.world()) {
    // Elements past the end are masked and use the last rank's address.
    const Id low = bounds_of(b_, along.index)->low;
    first = b_.map(Fn::kMin, {b_.map(Fn::kDiv, {low, scalar(elements)}), last});
  }
  Coords own = from.own;
  Axis& axis = own[coords_.split_before(own, dim)];
  axis.dims.front() = from.type.shape[dim];
  // Offsets count from the first rank's chunk; an axis of one element has none.
  const Expr step =
      numel(axis.dims) == Expr(1) ? Expr(0) : Expr(chunk) * dense_strides(from.type.shape)[dim];
  const Id back = scalar_of(b_, step * Expr(-1), body_.symbols());
  std::vector<Id> parts, inside;
  for (int i = 0; i < reached; ++i) {
    Id rank = scalar(Expr(i));
    if (first != kNone) {
      rank = i == 0 ? first : b_.map(Fn::kMin, {b_.map(Fn::kAdd, {first, rank}), last});
    }
    Mask condition = from.mask;
    if (i > 0) condition.push_back(b_.map(Fn::kNot, {inside.back()}));
    if (i + 1 < reached) {
      const Id end =
          b_.map(Fn::kMul, {b_.map(Fn::kAdd, {rank, scalar(Expr(1))}), scalar(elements)});
      inside.push_back(b_.map(Fn::kLt, {along.index, end}));
      condition.push_back(inside.back());
    }
    const Id pointer =
        b_.ptr_add(b_.peer(from.offset, rank), b_.map(Fn::kMul, {b_.map(Fn::kToI64, {rank}), back}),
                   from.type.dtype);
    parts.push_back(load(pointer, own, from.type.dtype, condition));
  }
  return chosen(inside, std::move(parts));
}

Id BodyEmitter::gather_in_loop(const FromPeers& from, const Gathering& gathering) {
  const Id index = gathering.index;
  const Id rows = coords_.scalar_like(b_.integer(0), Expr(gathering.chunk));
  const auto start = [&](Id rank) { return like_index(gathering, b_.map(Fn::kMul, {rank, rows})); };
  const auto part = [&](Id rank, const Id inside) {
    Coords at = from.own;
    Axis& axis = at[coords_.isolate(at, gathering.dim)];
    axis.index = b_.map(Fn::kSub, {axis.index, start(rank)});
    axis.dims = {from.type.shape[gathering.dim]};
    Mask condition = from.mask;
    condition.push_back(inside);
    return load(b_.peer(from.offset, rank), at, from.type.dtype, condition);
  };
  const auto inside = [&](Id rank) {
    const Id end = start(b_.map(Fn::kAdd, {rank, b_.integer(1)}));
    return b_.map(Fn::kAnd, {b_.map(Fn::kNot, {b_.map(Fn::kLt, {index, start(rank)})}),
                             b_.map(Fn::kLt, {index, end})});
  };
  // Only the ranks that the tile reaches, where known.
  Id first = b_.integer(0);
  Id last = b_.integer(from.world() - 1);
  if (const auto bounds = bounds_of(b_, index)) {
    const auto rank_of = [&](Id at) {
      return b_.map(Fn::kMin, {b_.map(Fn::kDiv, {b_.map(Fn::kToI64, {at}), rows}), last});
    };
    first = rank_of(bounds->low);
    last = rank_of(bounds->high);
  }
  const auto after = [&](Id rank) { return b_.map(Fn::kAdd, {rank, b_.integer(1)}); };
  const Id result = part(first, inside(first));
  const Id loop = b_.begin_for(after(first), after(last), b_.integer(1), {result});
  const Id here = inside(b_.induction(loop));
  const Id next = part(b_.induction(loop), here);
  return b_.end_for(loop, {b_.map(Fn::kSelect, {here, next, b_.carried(loop, 0)})})[0];
}

/// Reads chunks of any sizes, each of which a graph lists.
Id BodyEmitter::gather_uneven(const FromPeers& from, const Gathering& gathering) {
  const Id index = gathering.index;
  const int world = from.world();
  // The first row of a rank's chunk, here or at that rank.
  const auto start = [&](int rank, auto start_of) {
    std::vector<std::int64_t> starts;
    starts.reserve(static_cast<std::size_t>(world));
    for (int to = 0; to < world; ++to) starts.push_back((from.form.*start_of)(rank, to));
    return like_index(gathering, by_rank(from.group, starts));
  };
  std::vector<Id> parts, inside;
  for (int rank = 0; rank < world; ++rank) {
    Coords at = from.own;
    Axis& axis = at[coords_.isolate(at, gathering.dim)];
    const Id moved = b_.map(Fn::kSub, {axis.index, start(rank, &Collective::result_start)});
    axis.index = b_.map(Fn::kAdd, {moved, start(rank, &Collective::operand_start)});
    axis.dims = {from.type.shape[gathering.dim]};
    Mask condition = from.mask;
    if (rank > 0) condition.push_back(b_.map(Fn::kNot, {inside.back()}));
    if (rank + 1 < world) {
      inside.push_back(b_.map(Fn::kLt, {index, start(rank + 1, &Collective::result_start)}));
      condition.push_back(inside.back());
    }
    parts.push_back(load(b_.peer(from.offset, b_.integer(rank)), at, from.type.dtype, condition));
  }
  return chosen(inside, std::move(parts));
}

/// The coordinates moved into this rank's chunk of the operand along the scatter dim.
Coords BodyEmitter::own_chunk(const Collective& form, const std::string& group,
                              const Shape& operand, const Coords& at) {
  const std::size_t dim = *form.scatter_dim;
  Coords from = at;
  Axis& axis = from[coords_.isolate(from, dim)];
  const Id rank = own_rank(b_, group);
  const Dim chunk = *operand[dim].divide_exactly(form.ranks, body_.symbols());
  Id start = b_.map(Fn::kMul, {rank, scalar_of(b_, Expr(chunk), body_.symbols())});
  if (b_.type(axis.index).kind == Kind::kI32) start = b_.map(Fn::kToI32, {start});
  axis.index = b_.map(Fn::kAdd, {axis.index, start});
  axis.dims = {operand[dim]};
  return from;
}

}  // namespace braid
