#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "braid/dim.h"

namespace braid {

/// A non-negative integer expression over symbols, used for grids, offsets and scalar kernel
/// arguments. An immutable value, cheap to copy. Constants are folded, and affine parts stay one
/// Dim. Overflow of 64 bits throws kInvalidArgument.
class Expr {
 public:
  Expr(std::int64_t constant);  // NOLINT(google-explicit-constructor)
  Expr(const Dim& dim);         // NOLINT(google-explicit-constructor)

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  /// a / b rounded up; b must be positive.
  friend Expr ceil_div(const Expr& a, const Expr& b);
  friend Expr min(const Expr& a, const Expr& b);
  friend Expr max(const Expr& a, const Expr& b);

  /// Throws kInvalidArgument for a symbol without a value, naming it, and for a division by zero.
  [[nodiscard]] std::int64_t evaluate(const Bindings& bindings) const;
  /// An upper bound over the symbols' ranges. Every operation is monotone for non-negative values,
  /// so each operand counts at its maximum (a divisor at its minimum).
  [[nodiscard]] std::int64_t max(const SymbolTable& symbols) const;

  [[nodiscard]] bool is_constant() const;
  /// The expression as a Dim, if it is affine.
  [[nodiscard]] std::optional<Dim> dim() const;

  /// A text such as "ceil_div(2048*T+1, 1024) * 3"; `parse` reads it back to an equal expression.
  [[nodiscard]] std::string str() const;
  /// Parses integers, symbols, + - *, / by a number, parentheses, ceil_div, min and max. Returns
  /// nothing for any other text.
  static std::optional<Expr> parse(std::string_view text);

  /// Structural equality: the same operations on equal operands.
  friend bool operator==(const Expr& a, const Expr& b);

 private:
  enum class Kind : std::uint8_t { kDim, kAdd, kMul, kCeilDiv, kMin, kMax };
  struct Node;
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Expr make(Kind kind, const Expr& a, const Expr& b);
  [[nodiscard]] std::int64_t bound(const SymbolTable& symbols, bool upper) const;

  std::shared_ptr<const Node> node_;
};

Expr ceil_div(const Expr& a, const Expr& b);

/// The number of elements of a shape.
[[nodiscard]] Expr numel(const Shape& shape);
/// The most elements of a shape over the symbols' ranges.
[[nodiscard]] std::int64_t max_numel(const Shape& shape, const SymbolTable& symbols);

}  // namespace braid
