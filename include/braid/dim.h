#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"

namespace braid {

/// One part of a symbol's range: the values up to `max` that are multiples of `multiple_of` and
/// that no earlier bucket has.
struct Bucket {
  std::int64_t max = 1;          ///< largest value
  std::int64_t multiple_of = 1;  ///< divides every value
  bool operator==(const Bucket&) const = default;
};

/// The range of a symbol: min <= value <= max, value % multiple_of == 0.
struct Symbol {
  std::int64_t min = 1;          ///< smallest value
  std::int64_t max = 1;          ///< largest value
  std::int64_t multiple_of = 1;  ///< divides every value
  /// Each bucket, and the values in no bucket, get kernels of their own in an executable. They are
  /// sorted by ascending `max`; for equal `max` the larger `multiple_of` comes first. Only one
  /// symbol of a graph may have buckets.
  std::vector<Bucket> buckets = {};
  bool operator==(const Symbol&) const = default;
};
using SymbolTable = std::map<std::string, Symbol, std::less<>>;

/// Values of symbols at run time.
using Bindings = std::map<std::string, std::int64_t, std::less<>>;

class Dim;
/// The extent times a constant.
BRAID_API Dim operator*(const Dim& a, std::int64_t factor);

/// One extent of a shape: an affine expression of symbols, such as `2*T + 1`, or `T/2` where the
/// symbol is always even. It is kept in canonical form, so that equal expressions compare equal.
class BRAID_API Dim {
 public:
  Dim(std::int64_t constant = 0) : constant_(constant) {}  // NOLINT(google-explicit-constructor)
  static Dim symbol(std::string_view name);                ///< the value of that symbol

  /// Parses "T", "2*T+1", "T-S", "3*T/2" or "(T+S)//2". Returns nothing for any other text.
  static std::optional<Dim> parse(std::string_view text);

  [[nodiscard]] bool is_constant() const { return terms_.empty(); }  ///< has no symbol
  [[nodiscard]] std::int64_t constant() const { return constant_; }  ///< the constant term

  /// One term: factor * symbol / divisor.
  struct Term {
    std::string symbol;
    std::int64_t factor;       ///< not 0
    std::int64_t divisor = 1;  ///< positive, coprime to the factor
    bool operator==(const Term&) const = default;
  };
  /// The terms, sorted by symbol.
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }

  /// The value of the expression. Throws kInvalidArgument naming a symbol that has no value.
  [[nodiscard]] std::int64_t evaluate(const Bindings& bindings) const;
  /// The largest value over the symbols' ranges.
  [[nodiscard]] std::int64_t max(const SymbolTable& symbols) const;
  /// The smallest value over the symbols' ranges.
  [[nodiscard]] std::int64_t min(const SymbolTable& symbols) const;
  /// The largest number that divides every value this expression can take (0 for the constant 0).
  [[nodiscard]] std::int64_t divisor(const SymbolTable& symbols) const;
  /// Whether the value is an integer for all values of the symbols: each term's divisor divides its
  /// symbol's `multiple_of`.
  [[nodiscard]] bool is_whole(const SymbolTable& symbols) const;
  /// This divided by `by`, or nothing where the result is not always an integer. The factors and
  /// the symbols' `multiple_of` decide.
  [[nodiscard]] std::optional<Dim> divide_exactly(std::int64_t by,
                                                  const SymbolTable& symbols) const;
  /// This divided by `by`, which need not be an integer for all values. Nothing where `by` is 0 or
  /// does not divide the constant term.
  [[nodiscard]] std::optional<Dim> over(std::int64_t by) const;

  Dim& operator+=(const Dim& other);
  friend Dim operator+(Dim a, const Dim& b) { return a += b; }
  friend Dim operator*(const Dim& a, std::int64_t factor);
  friend Dim operator-(const Dim& a, const Dim& b) { return a + b * -1; }
  bool operator==(const Dim&) const = default;  ///< equal for all values of the symbols

  /// The text form, such as "2*T+1", "3*T/2" or "8"; parse() reads it.
  [[nodiscard]] std::string str() const;

 private:
  /// Adds the term with its fraction reduced, unless the factor is 0.
  void append(std::string symbol, std::int64_t factor, std::int64_t divisor);

  std::int64_t constant_;
  std::vector<Term> terms_;
};

/// The extents of a tensor, outermost first.
using Shape = std::vector<Dim>;

}  // namespace braid
