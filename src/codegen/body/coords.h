#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "codegen/tile/builder.h"

namespace braid {

// The position of a tile's elements in a tensor. A kernel computes a value by asking for it at
// coordinates. A movement op (view, permute, slice, ...) changes the coordinates on the way to its
// operand: it costs index arithmetic and no memory traffic.

/// `index`, a scalar or a tile of integers, is a row-major index through `dims`.
struct Axis {
  tile::Id index;
  Shape dims;
};
/// Axes that cover the dims of a value, in order.
using Coords = std::vector<Axis>;

/// Row-major strides of a dense tensor, in elements.
[[nodiscard]] std::vector<Expr> dense_strides(const Shape& shape);

/// What is known to divide an expression.
[[nodiscard]] std::int64_t divisor_of(const Expr& expr, const SymbolTable& symbols);
/// An expression over symbols as a scalar, with what is known of its divisors.
[[nodiscard]] tile::Id scalar_of(tile::Builder& builder, const Expr& expr,
                                 const SymbolTable& symbols);

/// Index arithmetic with one builder. For example, with x at {i over [T, 64]}, the operand of a
/// transpose is at {i % 64, i / 64}; a slice [8:16] then gives i % 64 + 8.
class CoordsBuilder {
 public:
  CoordsBuilder(tile::Builder& builder, const SymbolTable& symbols)
      : b_(builder), symbols_(symbols) {}

  /// The coordinates of an operand whose dim i is dim picks[i] of this value, or has extent 1 if
  /// unset.
  [[nodiscard]] Coords pick(const Coords& at, const std::vector<std::optional<std::size_t>>& picks);
  /// The coordinates of an operand of `shape` that broadcasts to this value.
  [[nodiscard]] Coords broadcast(const Coords& at, const Shape& shape);
  /// The same elements in row-major order, viewed as `shape`.
  [[nodiscard]] Coords reshape(const Coords& at, const Shape& shape);
  /// Makes dim `dim` an axis of its own; returns its index among the axes.
  std::size_t isolate(Coords& at, std::size_t dim);
  /// Makes an axis begin with dim `dim`; returns its index among the axes.
  std::size_t split_before(Coords& at, std::size_t dim);
  [[nodiscard]] tile::Id index_of(const Coords& at, std::size_t dim);
  /// An offset in elements of a dense tensor: a scalar part, and a part that varies within the tile
  /// (kNone if absent).
  struct Offset {
    tile::Id scalar = tile::kNone;
    tile::Id tile = tile::kNone;
  };
  [[nodiscard]] Offset offset(const Coords& at);

  /// start + index * step.
  [[nodiscard]] tile::Id scaled(tile::Id index, const Dim& start, std::int64_t step);
  /// An expression as a scalar of the same kind as `like`.
  [[nodiscard]] tile::Id scalar_like(tile::Id like, const Expr& expr);

 private:
  [[nodiscard]] Axis part(const Axis& axis, std::size_t first, std::size_t last);

  tile::Builder& b_;
  const SymbolTable& symbols_;
};

}  // namespace braid
