#include "codegen/body/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "codegen/body/in_memory.h"
#include "ir/attributes.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/op_registry.h"
#include "ir/pointwise.h"
#include "ir/views.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

Id own_rank(tile::Builder& b, const std::string& group) {
  return b.param({.kind = KernelParam::Kind::kRank, .index = 0, .expr = 0, .group = group});
}

Id output_pointer(tile::Builder& b, std::size_t output) {
  return b.param(
      {.kind = KernelParam::Kind::kOutput, .index = static_cast<int>(output), .group = {}}, 16);
}

namespace {

/// A predicate in the tile arithmetic.
struct Condition {
  tile::Builder* builder;
  Id id;
};
tile::TileExpr choose(Condition condition, tile::TileExpr a, tile::TileExpr b) {
  return {condition.builder, condition.builder->map(Fn::kSelect, {condition.id, a.id, b.id})};
}

}  // namespace

Id BodyEmitter::value(ValueId value, const Coords& at, const Mask& mask) {
  std::string key = fmt::format("{} of {}", value, rows_);
  for (const Axis& axis : at) fmt::format_to(std::back_inserter(key), " {}", axis.index);
  fmt::format_to(std::back_inserter(key), ":{}", fmt::join(mask, " "));
  for (const auto& scope : known_) {
    if (auto it = scope.find(key); it != scope.end()) return it->second;
  }
  const Value& v = body_.value(value);
  const auto source = defined_.find(value);
  const Id id =
      source != defined_.end() ? source->second(at, mask)
      : v.producer < 0
          ? load(b_.param({.kind = KernelParam::Kind::kInput, .index = v.result, .group = {}}, 16),
                 at, v.type.dtype, mask)
          : compute(body_.node(v.producer), static_cast<std::size_t>(v.result), at, mask);
  known_.back().emplace(std::move(key), id);
  return id;
}

Id BodyEmitter::value(ValueId value, const Coords& at, const Mask& mask, int rows) {
  std::swap(rows, rows_);
  const Id id = this->value(value, at, mask);
  std::swap(rows, rows_);
  return id;
}

Id BodyEmitter::whole(Id tile, int rows, int cols, const Mask& mask) {
  if (b_.type(tile).cols == cols && b_.type(tile).rows == rows) return tile;
  tile = b_.spread(tile, rows, cols);
  for (const Id inside : mask) {
    tile = b_.map(Fn::kSelect, {inside, tile, b_.constant(Kind::kF32, 0)});
  }
  return tile;
}

Id BodyEmitter::scalar(ValueId value, const Coords& at, const Mask& mask) {
  as_scalars_ = true;
  const Id id = this->value(value, at, mask);
  as_scalars_ = false;
  return id;
}

void BodyEmitter::copy_tile(const Slot& to, ValueId value, Id row, Id col, const Coords& outer) {
  constexpr int kMostRows = 256;
  const MatrixInMemory matrix = *matrix_in_memory(body_, value);
  const auto from = [&](Id index, const InMemory::Along& along) {
    if (along.first == Dim(0)) return index;
    return b_.plus(index, scalar_of(b_, Expr(along.first), body_.symbols()));
  };
  std::vector<Id> others;
  for (std::size_t d = matrix.outer(); d-- > 0;) {
    const Id index = b_.map(Fn::kToI64, {coords_.index_of(outer, d)});
    others.push_back(from(index, matrix.memory.dims[d]));
  }
  if (matrix.transposed) std::swap(row, col);
  const int box = std::min(b_.type(to.tile).rows, kMostRows);
  const Id map = b_.param({.kind = KernelParam::Kind::kInputMap,
                           .index = matrix.memory.input,
                           .group = {},
                           .map = matrix.map(box, b_.program().at(to.tile).dtype)});
  b_.copy_tile(to.ring, to.step, to.tile, map, from(row, matrix.rows()),
               from(col, matrix.columns()), others);
}

Id BodyEmitter::conjunction(const Mask& mask, int cols) {
  Id all = kNone;
  for (Id condition : mask) {
    // A tile of one column does not depend on conditions on columns.
    if (cols == 1 && b_.type(condition).cols > 1) continue;
    all = all == kNone ? condition : b_.map(Fn::kAnd, {all, condition});
  }
  return all;
}

BodyEmitter::Elements BodyEmitter::elements(Id pointer, const Coords& at, DType dtype) {
  CoordsBuilder::Offset offset = coords_.offset(at);
  if (offset.scalar != kNone) pointer = b_.ptr_add(pointer, offset.scalar, dtype);
  if (offset.tile == kNone) offset.tile = b_.splat(Kind::kI32, rows_, 1, 0);
  return {pointer, offset.tile};
}

Id BodyEmitter::load(Id pointer, const Coords& at, DType dtype, const Mask& mask) {
  if (as_scalars_) {
    const Id offset = coords_.offset(at).scalar;
    return b_.load_scalar(pointer, offset == kNone ? b_.integer(0) : offset, conjunction(mask, 1),
                          dtype);
  }
  const Elements from = elements(pointer, at, dtype);
  return b_.load(from.pointer, from.offset, masked(mask, from), dtype);
}

/// Of a node that is computed on a tensor of shape `whole`, to which its operands broadcast.
Id BodyEmitter::operand(const Node& node, std::size_t index, const Shape& whole, const Coords& at,
                        const Mask& mask) {
  const ValueId v = node.inputs[index];
  const Shape& shape = body_.type(v).shape;
  return value(v, shape == whole ? at : coords_.broadcast(at, shape), mask);
}

Id BodyEmitter::to_kind(Id id, DType dtype) {
  const bool to_float = is_float(dtype);
  if (!to_float && b_.type(id).kind == Kind::kI32) return b_.map(Fn::kToI64, {id});
  if (to_float == (b_.type(id).kind == Kind::kF32)) return id;
  if (dtype == DType::kBool) return b_.round(dtype, id);  // 0.5 is true
  return to_float ? b_.map(Fn::kToF32, {id}) : b_.map(Fn::kSaturate, {id}, dtype);
}

/// Integers have 64 bits in registers. Where 32 give the same result, as they wrap around alike,
/// they are computed so: compilers do not see it everywhere.
Id BodyEmitter::in_32_bits(const Node& node, Id id) {
  static constexpr std::string_view kOps[] = {
      "add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_right_shift"};
  const auto is_narrow = [&](ValueId value) {
    const DType dtype = body_.type(value).dtype;
    return dtype == DType::kI32 || dtype == DType::kI8 || dtype == DType::kU8;
  };
  const std::string_view op = node.op_name();
  const bool computes =
      std::ranges::count(kOps, op) > 0 && std::ranges::all_of(node.inputs, is_narrow);
  // Casts of 8 bits from memory are made without conversions.
  const bool casts = op == "to" && is_float(body_.type(node.outputs[0]).dtype) &&
                     is_narrow(node.inputs[0]) &&
                     (body_.type(node.inputs[0]).dtype == DType::kI32 ||
                      b_.program().at(id).op != tile::Op::kLoad);
  return computes || casts ? b_.map(Fn::kToI32, {id}) : id;
}

Id BodyEmitter::constant(DType dtype, const AttrValue& number) {
  if (!is_float(dtype)) {
    const std::int64_t value = integer_of(dtype, number);
    return as_scalars_ ? b_.integer(value) : b_.splat_integer(rows_, 1, value);
  }
  return b_.splat(Kind::kF32, rows_, 1, round_to(dtype, number_like(0.0, number)));
}

/// An element of an arange.
Id BodyEmitter::counted(const Node& node, DType dtype, const Coords& at) {
  const Id index = b_.map(Fn::kToI64, {coords_.index_of(at, 0)});
  Id number =
      coords_.scaled(index, bound_of(node.attrs.at("start")), *node.attr<std::int64_t>("step"));
  if (b_.type(number).is_scalar() && !as_scalars_) number = b_.spread(number, rows_, 1);
  return b_.round(dtype, to_kind(number, dtype));
}

Id BodyEmitter::compute(const Node& node, std::size_t result, const Coords& at, const Mask& mask) {
  const DType dtype = body_.type(node.outputs[result]).dtype;
  std::vector<tile::TileExpr> x;
  switch (node.op->op_class) {
    case OpClass::kView:
      return moved(node, result, at, mask);
    case OpClass::kGather:
      return takes_indices(node) ? gathered(node, at, mask)
                                 : b_.round(dtype, rotary(node, at, mask));
    case OpClass::kNorm:
    case OpClass::kReduction:
      return row_value(node, result, at, mask);
    case OpClass::kPointwise:
    case OpClass::kCopy:
      if (node.op_name() == "arange") return counted(node, dtype, at);
      if (node.inputs.empty()) return constant(dtype, node.attrs.at("value"));
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Id id = operand(node, i, body_.type(node.outputs[0]).shape, at, mask);
        x.push_back({&b_, in_32_bits(node, id)});
      }
      if (node.op_name() == "bitcast") return b_.map(Fn::kAsF32, {x[0].id});
      return b_.round(dtype,
                      to_kind(arithmetic_of<tile::TileExpr>(*node.op)(x, node.attrs).id, dtype));
    default:
      throw_internal(node.name, "no tile form of '{}'", node.op_name());
  }
}

// --- movements
// ------------------------------------------------------------------------------------

Id BodyEmitter::moved(const Node& node, std::size_t result, const Coords& at, const Mask& mask) {
  const ValueId x = node.inputs[0];
  const Shape& shape = body_.type(x).shape;
  switch (node.op->view) {
    case View::kFlat:
      return value(x, coords_.reshape(at, shape), mask);
    case View::kExpand:
      return value(x, coords_.broadcast(at, shape), mask);
    case View::kCat:
      return cat(node, at, mask);
    case View::kShard: {
      const Collective form = collective_of(body_, node, body_.type(x));
      return value(x, own_chunk(form, *node.attr<std::string>("group"), shape, at), mask);
    }
    case View::kPermute: {
      const auto order = permutation(node.op_name(), node.attrs, shape.size());
      std::vector<std::optional<std::size_t>> picks(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) picks[order[i]] = i;
      return value(x, coords_.pick(at, picks), mask);
    }
    case View::kPart: {
      const SliceRange range = part_ranges(node.attrs, shape, body_.symbols())[result];
      Coords from = at;
      Axis& axis = from[coords_.isolate(from, range.axis)];
      axis.index = coords_.scaled(axis.index, range.start, range.step);
      axis.dims = {shape[range.axis]};
      return value(x, from, mask);
    }
    default:
      throw_internal(node.name, "no tile form of '{}'", node.op_name());
  }
}

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

/// Each operand is read under the condition that the element is its own.
Id BodyEmitter::cat(const Node& node, const Coords& at, const Mask& mask) {
  const std::size_t dim = axis_of(node.attrs, "dim", body_.type(node.outputs[0]).shape.size());
  const Id index = coords_.index_of(at, dim);
  Dim end = 0;
  std::vector<Id> parts, inside;
  for (ValueId x : node.inputs) {
    const Shape& shape = body_.type(x).shape;
    Coords from = at;
    Axis& axis = from[coords_.isolate(from, dim)];
    axis.index = coords_.scaled(axis.index, end * -1, 1);
    axis.dims = {shape[dim]};
    Mask own = mask;
    if (!inside.empty()) own.push_back(b_.map(Fn::kNot, {inside.back()}));
    end = end + shape[dim];
    inside.push_back(b_.map(Fn::kLt, {index, coords_.scalar_like(index, Expr(end))}));
    // Compared by position, because one value may be an operand several times.
    if (inside.size() < node.inputs.size()) own.push_back(inside.back());
    parts.push_back(value(x, from, own));
  }
  return chosen(inside, std::move(parts));
}

Id BodyEmitter::chosen(const std::vector<Id>& conditions, std::vector<Id> parts) {
  Id result = parts.back();
  for (std::size_t i = parts.size() - 1; i-- > 0;) {
    result = b_.map(Fn::kSelect, {conditions[i], parts[i], result});
  }
  return result;
}

Id BodyEmitter::checked_index(const Node& node, const Dim& extent, const Coords& at, Mask& mask) {
  Id index = value(node.inputs[1], at, mask);
  const Id end = scalar_of(b_, Expr(extent), body_.symbols());
  const auto* group = node.attr<std::string>("group");
  const Id all =
      group == nullptr ? end : b_.map(Fn::kMul, {end, b_.integer(group_of(body_, node).size)});
  b_.check_index(index, all, conjunction(mask, b_.type(index).cols), facts_.number_of(node));
  if (group != nullptr) {
    index = b_.map(Fn::kSub, {index, b_.map(Fn::kMul, {own_rank(b_, *group), end})});
  }
  mask.push_back(b_.map(Fn::kLt, {b_.integer(-1), index}));
  mask.push_back(b_.map(Fn::kLt, {index, end}));
  return facts_.narrow ? b_.map(Fn::kToI32, {index}) : index;
}

/// Elements whose index is out of range are zero.
Id BodyEmitter::gathered(const Node& node, const Coords& at, const Mask& mask) {
  const bool embedding = !node.attrs.contains("dim");
  const bool has_own_index = node.op_name() == "gather";  // for each element
  const Shape& table = body_.type(node.inputs[0]).shape;
  const std::size_t rank = body_.type(node.outputs[0]).shape.size();
  const std::size_t dim = embedding ? 0 : axis_of(node.attrs, "dim", rank);
  std::vector<std::optional<std::size_t>> picks;
  for (std::size_t d = 0; d < (embedding ? rank - 1 : 1); ++d) picks.emplace_back(dim + d);
  Mask own = mask;
  const Coords of_index = has_own_index ? at : coords_.pick(at, picks);
  const Id index = checked_index(node, table[dim], of_index, own);
  Coords from;
  if (embedding) {
    from = coords_.pick(at, {rank - 1});
    from.insert(from.begin(), {index, {table[0]}});
  } else {
    from = at;
    from[coords_.isolate(from, dim)] = {index, {table[dim]}};
    for (std::size_t d = 0; has_own_index && d < rank; ++d) {
      // There may be fewer indices than elements.
      if (d != dim) from[coords_.isolate(from, d)].dims = {table[d]};
    }
  }
  return value(node.inputs[0], from, own);
}

Id BodyEmitter::rotary(const Node& node, const Coords& at, const Mask& mask) {
  const Shape& shape = body_.type(node.inputs[0]).shape;
  const std::size_t last = shape.size() - 1;
  const Dim half = *shape[last].divide_exactly(2, body_.symbols());
  const Id i = coords_.index_of(at, last);
  const auto scalar = [&](const Dim& d) { return coords_.scalar_like(i, Expr(d)); };
  Id partner, pair, is_first;
  if (*node.attr<bool>("interleaved")) {
    pair = b_.map(Fn::kDiv, {i, b_.integer(2)});
    const Id odd = b_.map(Fn::kRem, {i, b_.integer(2)});
    is_first = b_.map(Fn::kLt, {odd, b_.integer(1)});
    partner = b_.map(
        Fn::kSub, {b_.map(Fn::kAdd, {i, b_.integer(1)}), b_.map(Fn::kMul, {odd, b_.integer(2)})});
  } else {
    pair = b_.map(Fn::kRem, {i, scalar(half)});
    is_first = b_.map(Fn::kLt, {i, scalar(half)});
    partner = b_.map(Fn::kRem, {b_.map(Fn::kAdd, {i, scalar(half)}), scalar(shape[last])});
  }
  const auto with_last = [&](Id index, const Dim& extent) {
    Coords from = at;
    from[coords_.isolate(from, last)] = {index, {extent}};
    return from;
  };
  const Id x = value(node.inputs[0], at, mask);
  const Id other = value(node.inputs[0], with_last(partner, shape[last]), mask);
  const Coords table = with_last(pair, half);
  const auto row = [&](std::size_t input) {
    return value(node.inputs[input], coords_.broadcast(table, body_.type(node.inputs[input]).shape),
                 mask);
  };
  const auto number = [&](Id id) { return tile::TileExpr{&b_, id}; };
  const Id sine = row(2);
  return rotated(number(x), number(other), number(row(1)), number(sine), Condition{&b_, is_first})
      .id;
}

void BodyEmitter::match(Elements& to, Id& id) {
  to.offset = spread_like(to.offset, id, /*is_stored=*/false);
  id = spread_like(id, to.offset, /*is_stored=*/true);
}

void BodyEmitter::store(Id pointer, const TensorType& type, Id id, const Coords& own,
                        const Mask& mask) {
  Elements to = elements(pointer, own, type.dtype);
  match(to, id);
  b_.store(to.pointer, to.offset, id, masked(mask, to), type.dtype);
}

Id BodyEmitter::spread_like(Id narrow, Id wide, bool is_stored) {
  const tile::Type to = b_.type(wide);
  // A constant has no registers that a store could use.
  const bool is_constant = b_.program().at(narrow).op == tile::Op::kConstant && is_stored;
  if (b_.type(narrow).cols >= to.cols && !is_constant) return narrow;
  return b_.spread(narrow, to.rows, to.cols);
}

}  // namespace braid
