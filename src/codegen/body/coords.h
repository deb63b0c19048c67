#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "codegen/tile/builder.h"

namespace braid {

// Where in a tensor a tile of elements lies. A kernel computes a value by asking for it at
// coordinates, and a movement op (view, permute, slice, ...) is a change of coordinates on the way
// to its operand: it costs index arithmetic and no memory.

/// `index`, a scalar or a tile of integers, counts in row-major order through `dims`.
struct Axis {
  tile::Id index;
  Shape dims;
};
/// Axes that cover the dims of a value in order.
using Coords = std::vector<Axis>;

/// Row-major strides of a dense tensor, in elements.
[[nodiscard]] std::vector<Expr> dense_strides(const Shape& shape);

/// An expression over symbols as a scalar, with what is known of its divisors.
[[nodiscard]] tile::Id scalar_of(tile::Builder& builder, const Expr& expr,
                                 const SymbolTable& symbols);

/// Index arithmetic over one builder. Example: with x at {i over [T, 64]}, its transpose's operand
/// lies at {i % 64, i / 64}; adding the axis of a slice [8:16] gives i % 64 + 8.
class CoordsBuilder {
 public:
  CoordsBuilder(tile::Builder& builder, const SymbolTable& symbols)
      : b_(builder), symbols_(symbols) {}

  /// The coordinates of an operand whose dim i is dim picks[i] of this value, or has extent 1 where
  /// there is none.
  [[nodiscard]] Coords pick(const Coords& at, const std::vector<std::optional<std::size_t>>& picks);
  /// Of an operand of `shape` that broadcasts to this value.
  [[nodiscard]] Coords broadcast(const Coords& at, const Shape& shape);
  /// The same elements in row-major order, seen as `shape`.
  [[nodiscard]] Coords reshape(const Coords& at, const Shape& shape);
  /// The same coordinates with dim `dim` an axis of its own; returns its place among the axes.
  std::size_t isolate(Coords& at, std::size_t dim);
  /// The same coordinates where an axis begins with dim `dim`; returns its place among the axes.
  std::size_t split_before(Coords& at, std::size_t dim);
  /// The index along one dim.
  [[nodiscard]] tile::Id index_of(const Coords& at, std::size_t dim);
  /// The offset in elements of a dense tensor, as a scalar part and a part that varies in the tile
  /// (kNone when there is none).
  struct Offset {
    tile::Id scalar = tile::kNone;
    tile::Id tile = tile::kNone;
  };
  [[nodiscard]] Offset offset(const Coords& at);

  /// start + index * step.
  [[nodiscard]] tile::Id scaled(tile::Id index, const Dim& start, std::int64_t step);
  /// An expression as a scalar of the kind of `like`.
  [[nodiscard]] tile::Id scalar_like(tile::Id like, const Expr& expr);

 private:
  [[nodiscard]] Axis part(const Axis& axis, std::size_t first, std::size_t last);

  tile::Builder& b_;
  const SymbolTable& symbols_;
};

}  // namespace braid
