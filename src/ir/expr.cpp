#include "ir/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/checked.h"
#include "ir/fail.h"
#include "ir/text.h"

namespace braid {

struct Expr::Node {
  Kind kind = Kind::kDim;
  Dim dim;  ///< for a leaf
  std::shared_ptr<const Node> a;
  std::shared_ptr<const Node> b;

  /// Applies the operation to two values.
  [[nodiscard]] std::int64_t apply(std::int64_t x, std::int64_t y) const;
  bool operator==(const Node& other) const {
    if (kind != other.kind) return false;
    if (kind == Kind::kDim) return dim == other.dim;
    return (a == other.a || *a == *other.a) && (b == other.b || *b == *other.b);
  }
};

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  if (b <= 0) throw_invalid("", "ceil_div by {}; expected a positive number", b);
  return a / b + (a % b > 0 ? 1 : 0);
}

/// Whether a leaf needs no parentheses as the right operand of a sum.
bool is_plain_term(const Dim& dim) {
  if (dim.is_constant()) return dim.constant() >= 0;
  return dim.terms().size() == 1 && dim.constant() == 0 && dim.terms()[0].factor > 0;
}
/// The same for a product.
bool is_plain_factor(const Dim& dim) {
  return is_plain_term(dim) &&
         (dim.is_constant() || (dim.terms()[0].factor == 1 && dim.terms()[0].divisor == 1));
}

/// a / by, where a's factors show that it is an integer.
std::optional<Dim> divide_factors(const Dim& a, std::int64_t by) {
  std::optional<Dim> result = a.over(by);
  for (std::size_t i = 0; result && i < a.terms().size(); ++i) {
    if (result->terms()[i].divisor != a.terms()[i].divisor) return std::nullopt;
  }
  return result;
}

}  // namespace

Expr::Expr(std::int64_t constant) : Expr(Dim(constant)) {}
Expr::Expr(const Dim& dim)
    : node_(std::make_shared<const Node>(Node{Kind::kDim, dim, nullptr, nullptr})) {}

Expr Expr::make(Kind kind, const Expr& a, const Expr& b) {
  return Expr(std::make_shared<const Node>(Node{kind, Dim(), a.node_, b.node_}));
}

bool Expr::is_constant() const { return node_->kind == Kind::kDim && node_->dim.is_constant(); }

std::optional<Dim> Expr::dim() const {
  if (node_->kind != Kind::kDim) return std::nullopt;
  return node_->dim;
}

Expr operator+(const Expr& a, const Expr& b) {
  if (a.dim() && b.dim()) return *a.dim() + *b.dim();
  if (a == Expr(0)) return b;
  if (b == Expr(0)) return a;
  return Expr::make(Expr::Kind::kAdd, a, b);
}

Expr operator*(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.dim()) return *b.dim() * a.dim()->constant();
  if (b.is_constant() && a.dim()) return *a.dim() * b.dim()->constant();
  if (a == Expr(1) || b == Expr(0)) return b;
  if (b == Expr(1) || a == Expr(0)) return a;
  return Expr::make(Expr::Kind::kMul, a, b);
}

Expr ceil_div(const Expr& a, const Expr& b) {
  if (b.is_constant()) {
    const std::int64_t by = b.dim()->constant();
    if (a.is_constant()) return divide_up(a.dim()->constant(), by);
    if (by <= 0) divide_up(0, by);
    if (by == 1) return a;
    if (a.dim()) {
      if (auto exact = divide_factors(*a.dim(), by)) return *exact;
    }
  }
  return Expr::make(Expr::Kind::kCeilDiv, a, b);
}

Expr min(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.dim()->constant(), b.dim()->constant());
  return a == b ? a : Expr::make(Expr::Kind::kMin, a, b);
}

Expr max(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.dim()->constant(), b.dim()->constant());
  return a == b ? a : Expr::make(Expr::Kind::kMax, a, b);
}

std::int64_t Expr::Node::apply(std::int64_t x, std::int64_t y) const {
  switch (kind) {
    case Kind::kDim:
      break;
    case Kind::kAdd:
      return checked_add(x, y);
    case Kind::kMul:
      return checked_mul(x, y);
    case Kind::kCeilDiv:
      return divide_up(x, y);
    case Kind::kMin:
      return std::min(x, y);
    case Kind::kMax:
      return std::max(x, y);
  }
  throw_internal("expr", "unknown kind");
}

std::int64_t Expr::evaluate(const Bindings& bindings) const {
  if (node_->kind == Kind::kDim) return node_->dim.evaluate(bindings);
  const std::int64_t a = Expr(node_->a).evaluate(bindings);
  const std::int64_t b = Expr(node_->b).evaluate(bindings);
  return node_->apply(a, b);
}

std::int64_t Expr::max(const SymbolTable& symbols) const { return bound(symbols, true); }

std::int64_t Expr::bound(const SymbolTable& symbols, bool upper) const {
  if (node_->kind == Kind::kDim) return upper ? node_->dim.max(symbols) : node_->dim.min(symbols);
  const std::int64_t a = Expr(node_->a).bound(symbols, upper);
  const bool divisor = node_->kind == Kind::kCeilDiv;
  const std::int64_t b = Expr(node_->b).bound(symbols, divisor ? !upper : upper);
  return node_->apply(a, b);
}

std::string Expr::str() const {
  if (node_->kind == Kind::kDim) return node_->dim.str();
  const Expr a(node_->a);
  const Expr b(node_->b);
  auto wrapped = [](const Expr& e, bool wrap) { return wrap ? '(' + e.str() + ')' : e.str(); };
  switch (node_->kind) {
    case Kind::kDim:
      break;
    case Kind::kAdd: {
      const bool wrap = b.dim() ? !is_plain_term(*b.dim()) : b.node_->kind == Kind::kAdd;
      return a.str() + " + " + wrapped(b, wrap);
    }
    case Kind::kMul: {
      auto wrap_left = a.dim() ? !is_plain_term(*a.dim()) : a.node_->kind == Kind::kAdd;
      auto wrap_right = b.dim() ? !is_plain_factor(*b.dim())
                                : b.node_->kind == Kind::kAdd || b.node_->kind == Kind::kMul;
      return wrapped(a, wrap_left) + " * " + wrapped(b, wrap_right);
    }
    case Kind::kCeilDiv:
      return fmt::format("ceil_div({}, {})", a.str(), b.str());
    case Kind::kMin:
      return fmt::format("min({}, {})", a.str(), b.str());
    case Kind::kMax:
      return fmt::format("max({}, {})", a.str(), b.str());
  }
  throw_internal("expr", "unknown kind");
}

bool operator==(const Expr& a, const Expr& b) { return a.node_ == b.node_ || *a.node_ == *b.node_; }

namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxText = 10000;

/// A recursive-descent parser: sum, product, atom.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<Expr> read() {
    std::optional<Expr> e = sum(0);
    skip_space();
    return rest_.empty() ? e : std::nullopt;
  }

 private:
  void skip_space() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<Expr> sum(int depth) {
    std::optional<Expr> left = product(depth);
    while (left) {
      const bool minus = accept('-');
      if (!minus && !accept('+')) return left;
      std::optional<Expr> right = product(depth);
      if (!right) return std::nullopt;
      left = *left + (minus ? *right * Expr(-1) : *right);
    }
    return left;
  }

  std::optional<Expr> product(int depth) {
    std::optional<Expr> left = atom(depth);
    while (left) {
      const bool divides = accept('/');
      if (divides) static_cast<void>(accept('/'));  // `//`, integer division, which is exact here
      if (!divides && !accept('*')) return left;
      const std::optional<Expr> right = atom(depth);
      if (!right) return std::nullopt;
      left = divides ? quotient(*left, *right) : *left * *right;
    }
    return left;
  }

  /// An affine expression divided by a number.
  static std::optional<Expr> quotient(const Expr& a, const Expr& by) {
    if (!a.dim() || !by.is_constant()) return std::nullopt;
    const std::optional<Dim> result = a.dim()->over(by.dim()->constant());
    return result ? std::optional<Expr>(*result) : std::nullopt;
  }

  std::optional<Expr> atom(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    if (accept('-')) {
      std::optional<Expr> e = atom(depth + 1);
      if (!e) return std::nullopt;
      return *e * Expr(-1);
    }
    if (accept('(')) {
      std::optional<Expr> e = sum(depth + 1);
      return accept(')') ? e : std::nullopt;
    }
    skip_space();
    std::size_t n = 0;
    while (n < rest_.size() && is_identifier_char(rest_[n])) ++n;
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    if (!is_identifier(word)) {
      std::int64_t value = 0;
      auto [end, error] = std::from_chars(word.data(), word.data() + n, value);
      if (error != std::errc() || end != word.data() + n) return std::nullopt;
      return Expr(value);
    }
    if (!accept('(')) return Expr(Dim::symbol(word));
    std::optional<Expr> a = sum(depth + 1);
    if (!a || !accept(',')) return std::nullopt;
    std::optional<Expr> b = sum(depth + 1);
    if (!b || !accept(')')) return std::nullopt;
    if (word == "ceil_div") return ceil_div(*a, *b);
    if (word == "min") return min(*a, *b);
    if (word == "max") return max(*a, *b);
    return std::nullopt;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<Expr> Expr::parse(std::string_view text) {
  if (text.size() > kMaxText) return std::nullopt;
  try {
    return Reader(text).read();
  } catch (const Error&) {  // a number that does not fit 64 bits, a division by zero
    return std::nullopt;
  }
}

Expr numel(const Shape& shape) {
  Expr product(1);
  for (const Dim& dim : shape) product = product * Expr(dim);
  return product;
}

std::int64_t max_numel(const Shape& shape, const SymbolTable& symbols) {
  std::int64_t product = 1;
  for (const Dim& dim : shape) product = checked_mul(product, dim.max(symbols));
  return product;
}

}  // namespace braid
