#include <algorithm>
#include <bit>

#include "runtime/cpu/ptx/ptx_parser.h"

namespace braid::cpu::ptx {

struct Parser::Operator {
  enum class Kind : std::uint8_t {
    kOrElse,
    kAndThen,
    kOr,
    kXor,
    kAnd,
    kEqual,
    kUnequal,
    kLess,
    kAtMost,
    kMore,
    kAtLeast,
    kLeft,
    kRight,
    kPlus,
    kMinus,
    kTimes,
    kDivide,
    kRemainder
  };
  std::string_view text;
  int strength;
  Kind kind;
};

/// The binary operator that comes next, or null.
const Parser::Operator* Parser::find_operator() const {
  using K = Operator::Kind;
  // Those of two characters first.
  static constexpr Operator kOperators[] = {
      {"||", 1, K::kOrElse}, {"&&", 2, K::kAndThen},  {"==", 6, K::kEqual}, {"!=", 6, K::kUnequal},
      {"<=", 7, K::kAtMost}, {">=", 7, K::kAtLeast},  {"<<", 8, K::kLeft},  {">>", 8, K::kRight},
      {"|", 3, K::kOr},      {"^", 4, K::kXor},       {"&", 5, K::kAnd},    {"<", 7, K::kLess},
      {">", 7, K::kMore},    {"+", 9, K::kPlus},      {"-", 9, K::kMinus},  {"*", 10, K::kTimes},
      {"/", 10, K::kDivide}, {"%", 10, K::kRemainder}};
  const Token& first = peek();
  // A lone percent sign is a name to the lexer.
  if (first.kind != TokenKind::kPunct && first.text != "%") return nullptr;
  const Token& second = peek(1);
  const bool pair = second.kind == TokenKind::kPunct && second.glued;
  const auto* it = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const auto& o) {
    if (o.text.size() == 1) return o.text == first.text;
    return pair && o.text.substr(0, 1) == first.text && o.text.substr(1) == second.text;
  });
  return it == std::end(kOperators) ? nullptr : it;
}

/// Of two floats.
Parser::Constant Parser::apply_to_reals(const Operator& how, double x, double y) const {
  using K = Operator::Kind;
  const auto real = [](double value) {
    return Constant{.bits = std::bit_cast<std::uint64_t>(value), .is_real = true};
  };
  const auto truth = [](bool value) { return Constant{value ? 1U : 0U}; };
  switch (how.kind) {
    case K::kPlus:
      return real(x + y);
    case K::kMinus:
      return real(x - y);
    case K::kTimes:
      return real(x * y);
    case K::kDivide:
      return real(x / y);
    case K::kEqual:
      return truth(x == y);
    case K::kUnequal:
      return truth(x != y);
    case K::kLess:
      return truth(x < y);
    case K::kAtMost:
      return truth(x <= y);
    case K::kMore:
      return truth(x > y);
    case K::kAtLeast:
      return truth(x >= y);
    default:
      error("'" + std::string(how.text) + "' needs integers");
  }
}

/// Unsigned where one side is, but for shifts, which are as their left side; % always is.
Parser::Constant Parser::apply(const Operator& how, Constant a, Constant b) const {
  using K = Operator::Kind;
  if (a.is_real != b.is_real) error("'" + std::string(how.text) + "' of a float and an integer");
  if (a.is_real) {
    return apply_to_reals(how, std::bit_cast<double>(a.bits), std::bit_cast<double>(b.bits));
  }
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  const auto x = static_cast<std::int64_t>(a.bits);
  const auto y = static_cast<std::int64_t>(b.bits);
  const auto truth = [](bool value) { return Constant{value ? 1U : 0U, false}; };
  const auto less = [&](bool swapped) {
    if (swapped) return is_unsigned ? b.bits < a.bits : y < x;
    return is_unsigned ? a.bits < b.bits : x < y;
  };
  switch (how.kind) {
    case K::kOrElse:
      return truth(a.bits != 0 || b.bits != 0);
    case K::kAndThen:
      return truth(a.bits != 0 && b.bits != 0);
    case K::kOr:
      return {a.bits | b.bits, is_unsigned};
    case K::kXor:
      return {a.bits ^ b.bits, is_unsigned};
    case K::kAnd:
      return {a.bits & b.bits, is_unsigned};
    case K::kEqual:
      return truth(a.bits == b.bits);
    case K::kUnequal:
      return truth(a.bits != b.bits);
    case K::kLess:
      return truth(less(false));
    case K::kAtMost:
      return truth(!less(true));
    case K::kMore:
      return truth(less(true));
    case K::kAtLeast:
      return truth(!less(false));
    case K::kLeft:
      return {b.bits > 63 ? 0 : a.bits << b.bits, a.is_unsigned};
    case K::kRight:
      if (a.is_unsigned) return {b.bits > 63 ? 0 : a.bits >> b.bits, true};
      return {static_cast<std::uint64_t>(x >> std::min<std::uint64_t>(b.bits, 63)), false};
    case K::kPlus:
      return {a.bits + b.bits, is_unsigned};
    case K::kMinus:
      return {a.bits - b.bits, is_unsigned};
    case K::kTimes:
      return {a.bits * b.bits, is_unsigned};
    case K::kDivide:
      if (y == 0) error("division by zero");
      if (is_unsigned) return {a.bits / b.bits, true};
      return {y == -1 ? 0 - a.bits : static_cast<std::uint64_t>(x / y), false};
    case K::kRemainder:
      if (y == 0) error("division by zero");
      return {a.bits % b.bits, is_unsigned};
  }
  return {};
}

/// A constant integer.
Parser::Constant Parser::expression() {
  const Token& first = peek();
  const Constant value = constant();
  if (value.is_real)
    fail(first.line, "expected an integer, found '" + std::string(first.text) + "'");
  return value;
}

/// A constant of operators that bind more tightly than `strength`; of any, and c ? a : b, by
/// default.
Parser::Constant Parser::constant(int strength) {
  Constant value = constant_atom();
  for (const Operator* next = find_operator(); next != nullptr && next->strength > strength;
       next = find_operator()) {
    at_ += next->text.size();
    value = apply(*next, value, constant(next->strength));
  }
  if (strength > 0 || !is_punct("?")) return value;
  if (++depth_ > 200) error("an expression is nested too deeply");
  if (value.is_real) error("'?' needs an integer");
  take();
  const Constant yes = constant();
  expect(":");
  const Constant no = constant();
  --depth_;
  return value.bits != 0 ? yes : no;
}

Parser::Constant Parser::constant_atom() {
  if (++depth_ > 200) error("an expression is nested too deeply");
  Constant value;
  if (is_punct("(") && peek(1).kind == TokenKind::kDot) {
    // (.s64) x and (.u64) x
    take();
    const bool is_unsigned = accept_dot("u64");
    if (!is_unsigned && !accept_dot("s64")) error("expected .s64 or .u64, found " + describe());
    expect(")");
    value = {integer_atom().bits, is_unsigned};
  } else if (accept("(")) {
    value = constant();
    expect(")");
  } else if (accept("-")) {
    value = constant_atom();
    value.bits = value.is_real ? value.bits ^ 1ULL << 63 : 0 - value.bits;
  } else if (accept("+")) {
    value = constant_atom();
  } else if (accept("~")) {
    value = integer_atom();
    value.bits = ~value.bits;
  } else if (accept("!")) {
    value = {integer_atom().bits == 0 ? 1U : 0U, false};
  } else if (peek().text == "WARP_SZ") {
    take();
    value = {32, false};
  } else if (peek().kind == TokenKind::kFloat64) {
    value = {.bits = take().bits, .is_real = true};
  } else {
    const bool suffix = peek().text.ends_with('U');
    value.bits = integer();
    value.is_unsigned = suffix || value.bits >> 63 != 0;
  }
  --depth_;
  return value;
}

Parser::Constant Parser::integer_atom() {
  const Constant value = constant_atom();
  if (value.is_real) error("expected an integer, found a float");
  return value;
}

}  // namespace braid::cpu::ptx
