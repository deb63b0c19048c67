#include "braid/dim.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/checked.h"
#include "ir/expr.h"
#include "ir/fail.h"
#include "ir/text.h"

namespace braid {
namespace {

constexpr std::size_t kMaxDimText = 1000;

const Symbol& lookup(const SymbolTable& symbols, const std::string& name) {
  auto it = symbols.find(name);
  if (it == symbols.end()) throw_invalid("", "unknown symbol {}", quote(name));
  return it->second;
}

std::int64_t largest(const Symbol& s) { return s.max / s.multiple_of * s.multiple_of; }
std::int64_t smallest(const Symbol& s) {
  return checked_mul(s.min / s.multiple_of + (s.min % s.multiple_of == 0 ? 0 : 1), s.multiple_of);
}

/// The common divisor of the symbol's values; the value itself where there is only one.
std::int64_t multiple(const Symbol& s) {
  return smallest(s) == largest(s) ? largest(s) : s.multiple_of;
}

/// The term at a value of its symbol, which the divisor must divide.
std::int64_t term_at(const Dim::Term& term, std::int64_t value) {
  const std::int64_t product = checked_mul(term.factor, value);
  if (product % term.divisor != 0) {
    throw_invalid("", "symbol {} is {}; expected a multiple of {}", quote(term.symbol), value,
                  term.divisor);
  }
  return product / term.divisor;
}

/// The maximum or minimum of constant + terms.
std::int64_t bound(std::int64_t sum, const std::vector<Dim::Term>& terms,
                   const SymbolTable& symbols, bool upper) {
  for (const Dim::Term& term : terms) {
    const Symbol& s = lookup(symbols, term.symbol);
    sum = checked_add(sum, term_at(term, (term.factor > 0) == upper ? largest(s) : smallest(s)));
  }
  return sum;
}

}  // namespace

Dim Dim::symbol(std::string_view name) {
  Dim dim;
  dim.append(std::string(name), 1, 1);
  return dim;
}

std::optional<Dim> Dim::parse(std::string_view text) {
  if (text.size() > kMaxDimText) return std::nullopt;
  const std::optional<Expr> expr = Expr::parse(text);
  return expr ? expr->dim() : std::nullopt;
}

std::int64_t Dim::evaluate(const Bindings& bindings) const {
  std::int64_t sum = constant_;
  for (const Term& term : terms_) {
    auto it = bindings.find(term.symbol);
    if (it == bindings.end()) throw_invalid("", "symbol {} has no value", quote(term.symbol));
    sum = checked_add(sum, term_at(term, it->second));
  }
  return sum;
}

std::int64_t Dim::max(const SymbolTable& symbols) const {
  return bound(constant_, terms_, symbols, true);
}

std::int64_t Dim::min(const SymbolTable& symbols) const {
  return bound(constant_, terms_, symbols, false);
}

std::int64_t Dim::divisor(const SymbolTable& symbols) const {
  std::int64_t result = constant_;
  for (const Term& term : terms_) {
    result = std::gcd(result, term_at(term, multiple(lookup(symbols, term.symbol))));
  }
  return result < 0 ? -result : result;
}

bool Dim::is_whole(const SymbolTable& symbols) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    return multiple(lookup(symbols, term.symbol)) % term.divisor == 0;
  });
}

std::optional<Dim> Dim::divide_exactly(std::int64_t by, const SymbolTable& symbols) const {
  std::optional<Dim> result = over(by);
  if (result && !result->is_whole(symbols)) result.reset();
  return result;
}

std::optional<Dim> Dim::over(std::int64_t by) const {
  if (by == 0 || constant_ % by != 0) return std::nullopt;
  Dim result(constant_ / by);
  for (const Term& term : terms_) {
    result.append(term.symbol, term.factor, checked_mul(term.divisor, by));
  }
  return result;
}

void Dim::append(std::string symbol, std::int64_t factor, std::int64_t divisor) {
  if (factor == 0) return;
  const std::int64_t common = std::gcd(factor, divisor);
  const std::int64_t sign = divisor < 0 ? -1 : 1;
  terms_.push_back({std::move(symbol), factor / common * sign, divisor / common * sign});
}

Dim& Dim::operator+=(const Dim& other) {
  Dim merged(checked_add(constant_, other.constant_));
  merged.terms_.reserve(terms_.size() + other.terms_.size());
  auto a = terms_.begin();
  auto b = other.terms_.begin();
  while (a != terms_.end() || b != other.terms_.end()) {
    if (b == other.terms_.end() || (a != terms_.end() && a->symbol < b->symbol)) {
      merged.terms_.push_back(*a++);
    } else if (a == terms_.end() || b->symbol < a->symbol) {
      merged.terms_.push_back(*b++);
    } else {
      merged.append(
          a->symbol,
          checked_add(checked_mul(a->factor, b->divisor), checked_mul(b->factor, a->divisor)),
          checked_mul(a->divisor, b->divisor));
      ++a;
      ++b;
    }
  }
  return *this = std::move(merged);
}

Dim operator*(const Dim& a, std::int64_t factor) {
  Dim result(checked_mul(a.constant_, factor));
  for (const Dim::Term& term : a.terms_) {
    result.append(term.symbol, checked_mul(term.factor, factor), term.divisor);
  }
  return result;
}

std::string Dim::str() const {
  std::string text;
  for (const Term& term : terms_) {
    if (term.factor < 0) {
      text += '-';
    } else if (!text.empty()) {
      text += '+';
    }
    // The sign is printed already; the magnitude of the least number needs the unsigned type.
    const std::uint64_t magnitude = term.factor < 0 ? 0 - static_cast<std::uint64_t>(term.factor)
                                                    : static_cast<std::uint64_t>(term.factor);
    text += magnitude == 1 ? term.symbol : fmt::format("{}*{}", magnitude, term.symbol);
    if (term.divisor != 1) text += fmt::format("/{}", term.divisor);
  }
  if (terms_.empty()) return fmt::format("{}", constant_);
  if (constant_ != 0) text += fmt::format("{:+}", constant_);
  return text;
}

}  // namespace braid
