#include <algorithm>
#include <bit>
#include <functional>

#include "runtime/cpu/ptx/ptx_parser.h"

namespace braid::cpu::ptx {

/// The result is unsigned where one side is, but for shifts, which are as their left side; that of
/// % always is.
struct Parser::Operator {
  using C = const Constant&;
  std::string_view text;
  int strength;
  Constant (*integers)(C a, C b);
  Constant (*reals)(double x, double y) = nullptr;

  static Constant truth(bool value) { return {value ? 1U : 0U}; }
  static bool either(C a, C b) { return a.is_unsigned || b.is_unsigned; }
  static std::int64_t as_signed(C a) { return static_cast<std::int64_t>(a.bits); }
  static bool less(C a, C b) {
    return either(a, b) ? a.bits < b.bits : as_signed(a) < as_signed(b);
  }
  template <class Function>
  static Constant on_bits(C a, C b) {
    return {Function()(a.bits, b.bits), either(a, b)};
  }
  template <class Function>
  static Constant on_reals(double x, double y) {
    return {.bits = std::bit_cast<std::uint64_t>(Function()(x, y)), .is_real = true};
  }
  template <class Relation>
  static Constant holds(double x, double y) {
    return truth(Relation()(x, y));
  }
  static Constant shift_left(C a, C b) {
    return {b.bits > 63 ? 0 : a.bits << b.bits, a.is_unsigned};
  }
  static Constant shift_right(C a, C b) {
    if (a.is_unsigned) return {b.bits > 63 ? 0 : a.bits >> b.bits, true};
    const std::int64_t value = as_signed(a) >> std::min<std::uint64_t>(b.bits, 63);
    return {static_cast<std::uint64_t>(value)};
  }
  static Constant divide(C a, C b) {
    if (either(a, b)) return {a.bits / b.bits, true};
    // The one quotient that overflows wraps.
    return {as_signed(b) == -1 ? 0 - a.bits
                               : static_cast<std::uint64_t>(as_signed(a) / as_signed(b))};
  }
};

/// The next binary operator, or null.
const Parser::Operator* Parser::find_operator() const {
  using O = Operator;
  using C = const Constant&;
  // Those of two characters first.
  static constexpr Operator kOperators[] = {
      {"||", 1, [](C a, C b) { return O::truth(a.bits != 0 || b.bits != 0); }},
      {"&&", 2, [](C a, C b) { return O::truth(a.bits != 0 && b.bits != 0); }},
      {"==", 6, [](C a, C b) { return O::truth(a.bits == b.bits); }, O::holds<std::equal_to<>>},
      {"!=", 6, [](C a, C b) { return O::truth(a.bits != b.bits); }, O::holds<std::not_equal_to<>>},
      {"<=", 7, [](C a, C b) { return O::truth(!O::less(b, a)); }, O::holds<std::less_equal<>>},
      {">=", 7, [](C a, C b) { return O::truth(!O::less(a, b)); }, O::holds<std::greater_equal<>>},
      {"<<", 8, O::shift_left},
      {">>", 8, O::shift_right},
      {"|", 3, O::on_bits<std::bit_or<>>},
      {"^", 4, O::on_bits<std::bit_xor<>>},
      {"&", 5, O::on_bits<std::bit_and<>>},
      {"<", 7, [](C a, C b) { return O::truth(O::less(a, b)); }, O::holds<std::less<>>},
      {">", 7, [](C a, C b) { return O::truth(O::less(b, a)); }, O::holds<std::greater<>>},
      {"+", 9, O::on_bits<std::plus<>>, O::on_reals<std::plus<>>},
      {"-", 9, O::on_bits<std::minus<>>, O::on_reals<std::minus<>>},
      {"*", 10, O::on_bits<std::multiplies<>>, O::on_reals<std::multiplies<>>},
      {"/", 10, O::divide, O::on_reals<std::divides<>>},
      {"%", 10, O::on_bits<std::modulus<>>}};
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
