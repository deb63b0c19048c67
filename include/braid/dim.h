#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"

namespace braid {

/// Part of a symbol's range: of the values that no bucket before it has, those up to `max` that are
/// multiples of `multiple_of`.
struct Bucket {
  std::int64_t max = 1;                            ///< largest value
  std::int64_t multiple_of = 1;                    ///< divides every value
  bool operator==(const Bucket&) const = default;  ///< of both
};

/// The range of a symbol: min <= value <= max, value % multiple_of == 0.
struct Symbol {
  std::int64_t min = 1;          ///< smallest value
  std::int64_t max = 1;          ///< largest value
  std::int64_t multiple_of = 1;  ///< divides every value
  /// For each of them an executable has kernels of its own, and for the values that are left.
  /// Ascending; of equal `max`, the larger `multiple_of` first. One symbol of a graph may have
  /// some.
  std::vector<Bucket> buckets = {};
  bool operator==(const Symbol&) const = default;  ///< of ranges and buckets
};
/// Ranges by the symbols' names.
using SymbolTable = std::map<std::string, Symbol, std::less<>>;

/// Values of symbols at run time.
using Bindings = std::map<std::string, std::int64_t, std::less<>>;

class Dim;
/// A multiple of an extent.
BRAID_API Dim operator*(const Dim& a, std::int64_t factor);

/// One extent of a shape: an affine expression of symbols, such as `2*T + 1`, or `T/2` of a symbol
/// that is always even. Canonical, so that two equal expressions compare equal.
class BRAID_API Dim {
 public:
  /// A plain number.
  Dim(std::int64_t constant = 0) : constant_(constant) {}  // NOLINT(google-explicit-constructor)
  static Dim symbol(std::string_view name);                ///< that symbol's value

  /// Reads "T", "2*T+1", "T-S", "3*T/2", "(T+S)//2". Nothing when the text is not such an
  /// expression.
  static std::optional<Dim> parse(std::string_view text);

  [[nodiscard]] bool is_constant() const { return terms_.empty(); }  ///< no symbol in it
  [[nodiscard]] std::int64_t constant() const { return constant_; }  ///< what no symbol is in

  /// factor * symbol / divisor.
  struct Term {
    std::string symbol;                            ///< its name
    std::int64_t factor;                           ///< not 0
    std::int64_t divisor = 1;                      ///< positive, coprime to the factor
    bool operator==(const Term&) const = default;  ///< of canonical terms
  };
  /// Sorted by symbol, no zero factor.
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }

  /// Throws kInvalidArgument naming the symbol that has no value.
  [[nodiscard]] std::int64_t evaluate(const Bindings& bindings) const;
  /// The largest value over the symbols' ranges.
  [[nodiscard]] std::int64_t max(const SymbolTable& symbols) const;
  /// The smallest one.
  [[nodiscard]] std::int64_t min(const SymbolTable& symbols) const;
  /// The largest number that divides every value this expression can take (0 for the constant 0).
  [[nodiscard]] std::int64_t divisor(const SymbolTable& symbols) const;
  /// Whether it is an integer for all values of the symbols: each divisor divides what its symbol
  /// is a multiple of.
  [[nodiscard]] bool is_whole(const SymbolTable& symbols) const;
  /// This divided by `by`, where that is whole: by its factors, or by a symbol's `multiple_of`.
  [[nodiscard]] std::optional<Dim> divide_exactly(std::int64_t by,
                                                  const SymbolTable& symbols) const;
  /// This divided by `by`, whole or not; nothing where `by` is 0 or does not divide the constant.
  [[nodiscard]] std::optional<Dim> over(std::int64_t by) const;

  Dim& operator+=(const Dim& other);                                       ///< adds to this one
  friend Dim operator+(Dim a, const Dim& b) { return a += b; }             ///< sum
  friend Dim operator*(const Dim& a, std::int64_t factor);                 ///< multiple
  friend Dim operator-(const Dim& a, const Dim& b) { return a + b * -1; }  ///< difference
  bool operator==(const Dim&) const = default;  ///< whether equal for all values of the symbols

  /// "2*T+1", "3*T/2"; a plain number for a constant.
  [[nodiscard]] std::string str() const;

 private:
  /// A term of the reduced factor; none where that is 0.
  void append(std::string symbol, std::int64_t factor, std::int64_t divisor);

  std::int64_t constant_;
  std::vector<Term> terms_;
};

/// The extents of a tensor, the outermost first.
using Shape = std::vector<Dim>;

}  // namespace braid
