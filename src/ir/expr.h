#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "braid/dim.h"

namespace braid {

/// A non-negative integer expression over symbols: what a grid, an offset or a scalar kernel
/// argument is before the symbols have values. An immutable value, cheap to copy; constants fold
/// and affine parts stay one Dim. Arithmetic that leaves 64 bits throws kInvalidArgument.
class Expr {
 public:
  Expr(std::int64_t constant);  // NOLINT(google-explicit-constructor)
  Expr(const Dim& dim);         // NOLINT(google-explicit-constructor)

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  /// The least integer that is not below a / b; b must be positive.
  friend Expr ceil_div(const Expr& a, const Expr& b);
  friend Expr min(const Expr& a, const Expr& b);
  friend Expr max(const Expr& a, const Expr& b);

  /// Throws kInvalidArgument naming the symbol that has no value, and on a division by zero.
  [[nodiscard]] std::int64_t evaluate(const Bindings& bindings) const;
  /// An upper bound over the symbols' ranges: every operation is monotone for non-negative values,
  /// so each operand counts at its largest (a divisor at its smallest).
  [[nodiscard]] std::int64_t max(const SymbolTable& symbols) const;

  [[nodiscard]] bool is_constant() const;
  /// The affine expression this is, or nothing.
  [[nodiscard]] std::optional<Dim> dim() const;

  /// "ceil_div(2048*T+1, 1024) * 3"; `parse` reads it back to an equal expression.
  [[nodiscard]] std::string str() const;
  /// Integers, symbols, + - *, / by a number, parentheses, ceil_div, min, max. Nothing when the
  /// text is not one.
  static std::optional<Expr> parse(std::string_view text);

  /// Structural: the same operations on equal operands.
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
/// The same at most, over the symbols' ranges.
[[nodiscard]] std::int64_t max_numel(const Shape& shape, const SymbolTable& symbols);

}  // namespace braid
