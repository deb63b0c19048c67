#include <algorithm>
#include <bit>

#include "runtime/cpu/ptx/ptx_parser.h"

namespace braid::cpu::ptx {

struct Parser::Operator {
  std::string_view text;
  int strength;
  Constant (*integers)(const Constant& a, const Constant& b);
  Constant (*reals)(double x, double y) = nullptr;
};

/// The next binary operator, or null.
const Parser::Operator* Parser::find_operator() const {
  using C = const Constant&;
  static constexpr auto kTruth = [](bool value) { return Constant{value ? 1U : 0U}; };
  static constexpr auto kReal = [](double value) {
    return Constant{.bits = std::bit_cast<std::uint64_t>(value), .is_real = true};
  };
  // Unsigned where one side is, but for shifts, which are as their left side; % always is.
  static constexpr auto kEither = [](C a, C b) { return a.is_unsigned || b.is_unsigned; };
  static constexpr auto kSigned = [](C a) { return static_cast<std::int64_t>(a.bits); };
  static constexpr auto kLess = [](C a, C b) {
    return kEither(a, b) ? a.bits < b.bits : kSigned(a) < kSigned(b);
  };
  // Those of two characters first.
  static constexpr Operator kOperators[] = {
      {"||", 1, [](C a, C b) { return kTruth(a.bits != 0 || b.bits != 0); }},
      {"&&", 2, [](C a, C b) { return kTruth(a.bits != 0 && b.bits != 0); }},
      {"==", 6, [](C a, C b) { return kTruth(a.bits == b.bits); },
       [](double x, double y) { return kTruth(x == y); }},
      {"!=", 6, [](C a, C b) { return kTruth(a.bits != b.bits); },
       [](double x, double y) { return kTruth(x != y); }},
      {"<=", 7, [](C a, C b) { return kTruth(!kLess(b, a)); },
       [](double x, double y) { return kTruth(x <= y); }},
      {">=", 7, [](C a, C b) { return kTruth(!kLess(a, b)); },
       [](double x, double y) { return kTruth(x >= y); }},
      {"<<", 8,
       [](C a, C b) {
         return Constant{b.bits > 63 ? 0 : a.bits << b.bits, a.is_unsigned};
       }},
      {">>", 8,
       [](C a, C b) {
         if (a.is_unsigned) return Constant{b.bits > 63 ? 0 : a.bits >> b.bits, true};
         const std::int64_t value = kSigned(a) >> std::min<std::uint64_t>(b.bits, 63);
         return Constant{static_cast<std::uint64_t>(value)};
       }},
      {"|", 3,
       [](C a, C b) {
         return Constant{a.bits | b.bits, kEither(a, b)};
       }},
      {"^", 4,
       [](C a, C b) {
         return Constant{a.bits ^ b.bits, kEither(a, b)};
       }},
      {"&", 5,
       [](C a, C b) {
         return Constant{a.bits & b.bits, kEither(a, b)};
       }},
      {"<", 7, [](C a, C b) { return kTruth(kLess(a, b)); },
       [](double x, double y) { return kTruth(x < y); }},
      {">", 7, [](C a, C b) { return kTruth(kLess(b, a)); },
       [](double x, double y) { return kTruth(x > y); }},
      {"+", 9,
       [](C a, C b) {
         return Constant{a.bits + b.bits, kEither(a, b)};
       },
       [](double x, double y) { return kReal(x + y); }},
      {"-", 9,
       [](C a, C b) {
         return Constant{a.bits - b.bits, kEither(a, b)};
       },
       [](double x, double y) { return kReal(x - y); }},
      {"*", 10,
       [](C a, C b) {
         return Constant{a.bits * b.bits, kEither(a, b)};
       },
       [](double x, double y) { return kReal(x * y); }},
      {"/", 10,
       [](C a, C b) {
         if (kEither(a, b)) return Constant{a.bits / b.bits, true};
         return Constant{kSigned(b) == -1 ? 0 - a.bits
                                          : static_cast<std::uint64_t>(kSigned(a) / kSigned(b))};
       },
       [](double x, double y) { return kReal(x / y); }},
      {"%", 10, [](C a, C b) {
         return Constant{a.bits % b.bits, kEither(a, b)};
       }}};
  const Token& first = peek();
  // To the lexer a lone percent sign is a name.
  if (first.kind != TokenKind::kPunct && first.text != "%") return nullptr;
  const Token& second = peek(1);
  const bool pair = second.kind == TokenKind::kPunct && second.glued;
  const auto* it = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const auto& o) {
    if (o.text.size() == 1) return o.text == first.text;
    return pair && o.text.substr(0, 1) == first.text && o.text.substr(1) == second.text;
  });
  return it == std::end(kOperators) ? nullptr : it;
}

Parser::Constant Parser::apply(const Operator& how, const Constant& a, const Constant& b) const {
  const std::string quoted = "'" + std::string(how.text) + "'";
  if (a.is_real != b.is_real) error(quoted + " of a float and an integer");
  if (a.is_real && how.reals == nullptr) error(quoted + " needs integers");
  if (a.is_real) return how.reals(std::bit_cast<double>(a.bits), std::bit_cast<double>(b.bits));
  if ((how.text == "/" || how.text == "%") && b.bits == 0) error("division by zero");
  return how.integers(a, b);
}

/// Parses a constant integer expression.
Parser::Constant Parser::expression() {
  const Token& first = peek();
  const Constant value = constant();
  if (value.is_real)
    fail(first.line, "expected an integer, found '" + std::string(first.text) + "'");
  return value;
}

/// Parses a constant expression of operators that bind more tightly than `strength`; by default
/// any, including c ? a : b.
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
