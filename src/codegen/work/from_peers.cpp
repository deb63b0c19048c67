// How a kernel reads a collective's operand from the arenas of all ranks, in one form for all
// collectives (ir/collective.h). Few ranks are unrolled (for a gather those that a tile reaches);
// many are a loop. Uneven chunks, which a graph lists for every pair of ranks, are always unrolled.

#include "codegen/work/from_peers.h"

#include <algorithm>
#include <numeric>
#include <optional>

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

/// Reads the operand of the ranks as ir/collective.h says. Where a chunk of the result is one
/// rank's, each rank that a tile reaches is read under the condition that the element is its own.
struct Gather {
  const RowPlace& place;  ///< in the result
  tile::Builder& b;
  CoordsBuilder& coords;
  const SymbolTable& symbols;
  const Collective& form;
  const TensorType& type;  ///< of the operand
  Id offset;               ///< of the operand in the arenas
  const Coords& own;       ///< in the operand, where each rank's chunk is cut as this one's
  std::size_t dim;         ///< along which the result is put together
  Dim chunk;               ///< of each rank, where all have the same
  Id index;                ///< in the result

  Id emit() {
    if (!form.splits.empty()) return gather_uneven();
    if (form.scatter_dim == dim) chunk = *chunk.divide_exactly(form.ranks, symbols);
    if (const auto result = gather_even()) return *result;
    return gather_in_loop();
  }

  [[nodiscard]] int world() const { return static_cast<int>(form.ranks); }
  /// The one of the values, a scalar, that stands at this rank's place.
  Id by_rank(const std::vector<std::int64_t>& values) {
    const Id rank = own_rank(b, place.facts.group());
    Id result = b.integer(values.back());
    for (std::size_t r = values.size() - 1; r-- > 0;) {
      if (values[r] == values.back()) continue;
      const Id is_own = b.map(Fn::kEq, {rank, b.integer(static_cast<std::int64_t>(r))});
      result = b.map(Fn::kSelect, {is_own, b.integer(values[r]), result});
    }
    return result;
  }

  /// A scalar of the kind of the index.
  Id like_index(Id scalar) {
    return b.type(index).kind == Kind::kI32 ? b.map(Fn::kToI32, {scalar}) : scalar;
  }

  /// Of the ranks that a tile may reach: where chunks are multiples of what it spans, and so is its
  /// place, one; all where its place is not known. Nothing where that is many.
  std::optional<Id> gather_even() {
    Coords whole = place.at;
    const Axis& along = whole[coords.split_before(whole, dim)];
    const Expr elements = Expr(chunk) * numel(Shape(along.dims.begin() + 1, along.dims.end()));
    const auto run = run_of(b.program(), along.index);
    const auto known = elements.dim();
    std::int64_t reached = world();
    if (run && known && std::gcd(run->divisor, known->divisor(symbols)) >= run->extent) {
      reached = 1;
    } else if (run && known) {
      const std::int64_t least = std::max<std::int64_t>(1, known->min(symbols));
      reached = std::min(reached, (run->extent - 2 + least) / least + 1);
    }
    if (reached > tile::kUnrolledRanks) return {};
    const auto scalar = [&](const Expr& value) { return coords.scalar_like(along.index, value); };
    const Id last = scalar(Expr(world() - 1));
    Id first = kNone;
    if (reached < world()) {
      // What lies past the end is masked, and has the last rank's address.
      const Id low = bounds_of(b, along.index)->low;
      first = b.map(Fn::kMin, {b.map(Fn::kDiv, {low, scalar(elements)}), last});
    }
    Coords inner = own;
    Axis& axis = inner[coords.split_before(inner, dim)];
    axis.dims.front() = type.shape[dim];
    // Offsets count from the first rank's chunk on; an axis of one element has none.
    const Expr step =
        numel(axis.dims) == Expr(1) ? Expr(0) : Expr(chunk) * dense_strides(type.shape)[dim];
    const Id back = scalar_of(b, step * Expr(-1), symbols);
    std::vector<Id> parts, inside;
    for (int i = 0; i < reached; ++i) {
      Id rank = scalar(Expr(i));
      if (first != kNone) {
        rank = i == 0 ? first : b.map(Fn::kMin, {b.map(Fn::kAdd, {first, rank}), last});
      }
      Mask condition = place.mask;
      if (i > 0) condition.push_back(b.map(Fn::kNot, {inside.back()}));
      if (i + 1 < reached) {
        const Id end =
            b.map(Fn::kMul, {b.map(Fn::kAdd, {rank, scalar(Expr(1))}), scalar(elements)});
        inside.push_back(b.map(Fn::kLt, {along.index, end}));
        condition.push_back(inside.back());
      }
      const Id pointer = b.ptr_add(b.peer(offset, rank),
                                   b.map(Fn::kMul, {b.map(Fn::kToI64, {rank}), back}), type.dtype);
      parts.push_back(load(pointer, inner, condition));
    }
    return place.emitter.chosen(inside, std::move(parts));
  }

  Id gather_in_loop() {
    const Id rows = coords.scalar_like(b.integer(0), Expr(chunk));
    const auto start = [&](Id rank) { return like_index(b.map(Fn::kMul, {rank, rows})); };
    const auto part = [&](Id rank, const Id inside) {
      Coords at = own;
      Axis& axis = at[coords.isolate(at, dim)];
      axis.index = b.map(Fn::kSub, {axis.index, start(rank)});
      axis.dims = {type.shape[dim]};
      Mask condition = place.mask;
      condition.push_back(inside);
      return load(b.peer(offset, rank), at, condition);
    };
    const auto inside = [&](Id rank) {
      const Id end = start(b.map(Fn::kAdd, {rank, b.integer(1)}));
      return b.map(Fn::kAnd, {b.map(Fn::kNot, {b.map(Fn::kLt, {index, start(rank)})}),
                              b.map(Fn::kLt, {index, end})});
    };
    // Only the ranks that the tile reaches, where that is known.
    Id first = b.integer(0);
    Id last = b.integer(world() - 1);
    if (const auto bounds = bounds_of(b, index)) {
      const auto rank_of = [&](Id at) {
        return b.map(Fn::kMin, {b.map(Fn::kDiv, {b.map(Fn::kToI64, {at}), rows}), last});
      };
      first = rank_of(bounds->low);
      last = rank_of(bounds->high);
    }
    const auto after = [&](Id rank) { return b.map(Fn::kAdd, {rank, b.integer(1)}); };
    const Id result = part(first, inside(first));
    const Id loop = b.begin_for(after(first), after(last), b.integer(1), {result});
    const Id here = inside(b.induction(loop));
    const Id next = part(b.induction(loop), here);
    return b.end_for(loop, {b.map(Fn::kSelect, {here, next, b.carried(loop, 0)})})[0];
  }

  /// Chunks of any sizes, each of which a graph lists.
  Id gather_uneven() {
    // First row of a rank's chunk, here or at that rank.
    const auto start = [&](int rank, auto start_of) {
      std::vector<std::int64_t> starts;
      starts.reserve(static_cast<std::size_t>(world()));
      for (int to = 0; to < world(); ++to) starts.push_back((form.*start_of)(rank, to));
      return like_index(by_rank(starts));
    };
    std::vector<Id> parts, inside;
    for (int rank = 0; rank < world(); ++rank) {
      Coords at = own;
      Axis& axis = at[coords.isolate(at, dim)];
      const Id moved = b.map(Fn::kSub, {axis.index, start(rank, &Collective::result_start)});
      axis.index = b.map(Fn::kAdd, {moved, start(rank, &Collective::operand_start)});
      axis.dims = {type.shape[dim]};
      Mask condition = place.mask;
      if (rank > 0) condition.push_back(b.map(Fn::kNot, {inside.back()}));
      if (rank + 1 < world()) {
        inside.push_back(b.map(Fn::kLt, {index, start(rank + 1, &Collective::result_start)}));
        condition.push_back(inside.back());
      }
      parts.push_back(load(b.peer(offset, b.integer(rank)), at, condition));
    }
    return place.emitter.chosen(inside, std::move(parts));
  }

  Id load(Id pointer, const Coords& at, const Mask& mask) {
    return place.emitter.load(pointer, at, type.dtype, mask);
  }
};

}  // namespace

Collective form_of(const BodyFacts& facts) {
  return collective_of(facts.body, *facts.collective, facts.operand());
}

Id operand_offset(tile::Builder& b, const BodyFacts& facts) {
  const Value& operand = facts.body.value(facts.collective->inputs[0]);
  const bool given = operand.producer < 0;
  return b.param({.kind = given ? KernelParam::Kind::kOffset : KernelParam::Kind::kResultOffset,
                  .index = given ? operand.result : static_cast<int>(facts.output_apart()),
                  .group = facts.group()},
                 256);
}

Id from_peers(const RowPlace& place) {
  tile::Builder& b = place.b;
  const BodyFacts& facts = place.facts;
  const TensorType& type = facts.operand();
  const Collective form = form_of(facts);
  const Id offset = operand_offset(b, facts);
  const bool cut = form.scatter_dim && form.splits.empty();
  const Coords own =
      cut ? place.emitter.own_chunk(form, facts.group(), type.shape, place.at) : place.at;
  const auto load = [&](Id rank) {
    return place.emitter.load(b.peer(offset, rank), own, type.dtype, place.mask);
  };
  if (form.src) return load(b.integer(*form.src));
  if (!form.gather_dim) return sum_of(b, form, type.dtype, load);
  const std::size_t dim = *form.gather_dim;
  const Id index = place.emitter.coords().index_of(place.at, dim);
  return Gather{place,
                b,
                place.emitter.coords(),
                facts.body.symbols(),
                form,
                type,
                offset,
                own,
                dim,
                type.shape[dim],
                index}
      .emit();
}

Id from_rank(const RowPlace& place, Id rank) {
  const Id offset = operand_offset(place.b, place.facts);
  const DType dtype = place.facts.operand().dtype;
  return place.emitter.load(place.b.peer(offset, rank), place.at, dtype, place.mask);
}

Id sum_of(tile::Builder& b, const Collective& form, DType dtype,
          const std::function<Id(Id rank)>& part, int together) {
  const auto world = static_cast<int>(form.ranks);
  const auto fold = [&](Id x, Id y) {
    switch (*form.reduce) {
      case ReduceOp::kMax:
        return b.map(Fn::kMax, {x, y});
      case ReduceOp::kMin:
        return b.map(Fn::kMin, {x, y});
      case ReduceOp::kProduct:
        return b.map(is_float(dtype) ? Fn::kMul : Fn::kWrapMul, {x, y});
      default:
        return b.map(is_float(dtype) ? Fn::kAdd : Fn::kWrapAdd, {x, y});
    }
  };
  Id result = kNone;
  if (world <= tile::kUnrolledRanks) {
    for (int first = 0; first < world; first += together) {
      std::vector<Id> parts;
      for (int rank = first; rank < std::min(world, first + together); ++rank) {
        parts.push_back(part(b.integer(rank)));
      }
      for (const Id next : parts) result = result == kNone ? next : fold(result, next);
    }
  } else {
    result = part(b.integer(0));
    const Id loop = b.begin_for(b.integer(1), b.integer(world), b.integer(1), {result});
    result = b.end_for(loop, {fold(b.carried(loop, 0), part(b.induction(loop)))})[0];
  }
  if (*form.reduce == ReduceOp::kAvg) {
    result = b.map(Fn::kDiv, {result, b.constant(Kind::kF32, world)});
  }
  return b.round(dtype, result);
}

/// The rest of the body, with what the collective makes of all ranks' operands.
extern const Work kRowsFromPeers =
    rows_of_collective([](const Piece& piece) { emit_rows(piece, from_peers); }, has_collective);

/// The sum over ranks, to the place of this rank's own operand.
extern const Work kSumAtOwner{
    .matches = [](const Graph& body) { return runs_as(Algorithm::kTwoShot, body); },
    .pieces = each_row,
    .emit =
        [](const Piece& piece) {
          const auto store = [](const RowPlace& place) {
            const BodyFacts& facts = place.facts;
            const TensorType& type = facts.operand();
            const Coords own = place.emitter.coords().reshape(place.at, type.shape);
            const Id sum = place.emitter.value(facts.collective->outputs[0], own, place.mask);
            const Id rank = own_rank(place.b, facts.group());
            place.emitter.store(place.b.peer(operand_offset(place.b, facts), rank), type, sum, own,
                                place.mask);
          };
          for_row_places(piece, store, from_peers);
        },
};

/// The rest of the body, with the sum at its owner.
extern const Work kRowsFromOwner = rows_of_collective([](const Piece& piece) {
  const Id owner = piece.rank();
  emit_rows(piece, [owner](const RowPlace& place) { return from_rank(place, owner); });
});

}  // namespace braid
