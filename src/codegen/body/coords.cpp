#include "codegen/body/coords.h"

#include <algorithm>

#include "braid/error.h"
#include "ir/numel.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

namespace {

Shape dims_of(const Coords& at) {
  Shape dims;
  for (const Axis& axis : at) dims.insert(dims.end(), axis.dims.begin(), axis.dims.end());
  return dims;
}

/// The axis that covers dim `dim`, and the dim's position in it.
std::pair<std::size_t, std::size_t> locate(const Coords& at, std::size_t dim) {
  for (std::size_t a = 0; a < at.size(); ++a) {
    if (dim < at[a].dims.size()) return {a, dim};
    dim -= at[a].dims.size();
  }
  throw_internal("coords", "no such dim");
}

}  // namespace

std::vector<Expr> dense_strides(const Shape& shape) {
  std::vector<Expr> strides(shape.size(), Expr(1));
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * Expr(shape[i]);
  return strides;
}

std::int64_t divisor_of(const Expr& expr, const SymbolTable& symbols) {
  const auto dim = expr.dim();
  return dim ? std::max<std::int64_t>(1, dim->divisor(symbols)) : 1;
}

Id scalar_of(tile::Builder& builder, const Expr& expr, const SymbolTable& symbols) {
  return builder.scalar(expr, divisor_of(expr, symbols));
}

Id CoordsBuilder::scalar_like(Id like, const Expr& expr) {
  const Id id = scalar_of(b_, expr, symbols_);
  return b_.type(like).kind == Kind::kI32 ? b_.map(Fn::kToI32, {id}) : id;
}

Axis CoordsBuilder::part(const Axis& axis, std::size_t first, std::size_t last) {
  const auto begin = axis.dims.begin();
  const auto cut = [&](std::size_t from, std::size_t to) {
    return Shape(begin + static_cast<std::ptrdiff_t>(from),
                 begin + static_cast<std::ptrdiff_t>(to));
  };
  Axis result{axis.index, cut(first, last)};
  const Expr inner = numel(cut(last, axis.dims.size()));
  const Expr outer = numel(cut(0, first));
  if (numel(result.dims) == Expr(1)) return {b_.integer(0), std::move(result.dims)};
  if (!(inner == Expr(1))) {
    result.index = b_.map(Fn::kDiv, {result.index, scalar_like(axis.index, inner)});
  }
  if (!(outer == Expr(1))) {
    result.index = b_.map(Fn::kRem, {result.index, scalar_like(axis.index, numel(result.dims))});
  }
  return result;
}

Coords CoordsBuilder::pick(const Coords& at, const std::vector<std::optional<std::size_t>>& picks) {
  Coords result;
  for (std::size_t i = 0; i < picks.size();) {
    if (!picks[i]) {
      result.push_back({b_.integer(0), {1}});
      ++i;
      continue;
    }
    // Adjacent dims of one axis stay together: one division instead of two.
    const auto [axis, first] = locate(at, *picks[i]);
    std::size_t count = 1;
    while (i + count < picks.size() && picks[i + count] == *picks[i] + count &&
           first + count < at[axis].dims.size()) {
      ++count;
    }
    result.push_back(part(at[axis], first, first + count));
    i += count;
  }
  return result;
}

Coords CoordsBuilder::broadcast(const Coords& at, const Shape& shape) {
  const Shape dims = dims_of(at);
  std::vector<std::optional<std::size_t>> picks;
  const std::size_t lead = dims.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool moves = shape[d] != Dim(1);
    picks.push_back(moves ? std::optional(lead + d) : std::nullopt);
  }
  return pick(at, picks);
}

Coords CoordsBuilder::reshape(const Coords& at, const Shape& shape) {
  if (dims_of(at) == shape) return at;
  Coords result;
  std::size_t next = 0;
  for (std::size_t a = 0; a < at.size();) {
    // Merges as few axes as reach a boundary of both shapes.
    Axis merged = at[a++];
    Shape taken;
    while (!same_numel(taken, merged.dims)) {
      const bool more_axes = a < at.size();
      const bool more_dims = next < shape.size();
      const auto upper = [&](const Shape& s) { return max_numel(s, symbols_); };
      if (more_dims && (upper(taken) < upper(merged.dims) || !more_axes)) {
        taken.push_back(shape[next++]);
      } else if (more_axes) {
        const Axis& low = at[a++];
        merged.index = b_.map(
            Fn::kAdd, {b_.map(Fn::kMul, {merged.index, scalar_like(merged.index, numel(low.dims))}),
                       low.index});
        merged.dims.insert(merged.dims.end(), low.dims.begin(), low.dims.end());
      } else {
        throw_internal("coords", "shapes of different size");
      }
    }
    merged.dims = std::move(taken);
    result.push_back(std::move(merged));
  }
  // The remaining extents of 1.
  for (; next < shape.size(); ++next) result.push_back({b_.integer(0), {shape[next]}});
  return result;
}

std::size_t CoordsBuilder::isolate(Coords& at, std::size_t dim) {
  const auto [a, place] = locate(at, dim);
  const Axis whole = at[a];
  if (whole.dims.size() == 1) return a;
  Coords parts;
  if (place > 0) parts.push_back(part(whole, 0, place));
  const std::size_t found = a + parts.size();
  parts.push_back(part(whole, place, place + 1));
  if (place + 1 < whole.dims.size()) parts.push_back(part(whole, place + 1, whole.dims.size()));
  const auto position = at.erase(at.begin() + static_cast<std::ptrdiff_t>(a));
  at.insert(position, parts.begin(), parts.end());
  return found;
}

std::size_t CoordsBuilder::split_before(Coords& at, std::size_t dim) {
  const auto [a, place] = locate(at, dim);
  if (place == 0) return a;
  const Axis whole = at[a];
  at[a] = part(whole, 0, place);
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(a) + 1, part(whole, place, whole.dims.size()));
  return a + 1;
}

Id CoordsBuilder::index_of(const Coords& at, std::size_t dim) {
  const auto [axis, place] = locate(at, dim);
  return part(at[axis], place, place + 1).index;
}

Id CoordsBuilder::scaled(Id index, const Dim& start, std::int64_t step) {
  const Id moved = b_.map(Fn::kMul, {index, b_.integer(step)});
  return b_.map(Fn::kAdd, {moved, scalar_like(index, Expr(start))});
}

CoordsBuilder::Offset CoordsBuilder::offset(const Coords& at) {
  const std::vector<Expr> strides = dense_strides(dims_of(at));
  Offset result;
  std::size_t dim = 0;
  for (const Axis& axis : at) {
    dim += axis.dims.size();
    if (axis.dims.empty() || numel(axis.dims) == Expr(1)) continue;
    // The dims of one axis are adjacent in a dense tensor: one step of its index is one step of the
    // last of them.
    const Id term = b_.map(Fn::kMul, {axis.index, scalar_like(axis.index, strides[dim - 1])});
    Id& sum = b_.type(term).is_scalar() ? result.scalar : result.tile;
    sum = sum == kNone ? term : b_.map(Fn::kAdd, {sum, term});
  }
  return result;
}

}  // namespace braid
