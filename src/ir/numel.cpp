#include "ir/numel.h"

#include <algorithm>
#include <vector>

#include "ir/checked.h"

namespace braid {
namespace {

/// A product: constant / divisor * product of `factors`. Each factor is symbolic, with coprime
/// integer coefficients, the first of them positive.
struct Product {
  std::int64_t constant = 1;
  std::int64_t divisor = 1;
  std::vector<Dim> factors;

  void times(std::int64_t numerator, std::int64_t denominator) {
    constant = checked_mul(constant, numerator);
    divisor = checked_mul(divisor, denominator);
    const std::int64_t common = checked_gcd(constant, divisor);
    constant /= common;
    divisor /= common;
  }
};

Product factor(const Shape& shape) {
  Product product;
  for (const Dim& dim : shape) {
    if (dim.is_constant()) {
      product.times(dim.constant(), 1);
      continue;
    }
    std::int64_t divisor = 1;
    for (const Dim::Term& term : dim.terms()) divisor = checked_lcm(divisor, term.divisor);
    const Dim integral = dim * divisor;
    std::int64_t content = integral.constant();
    for (const Dim::Term& term : integral.terms()) content = checked_gcd(content, term.factor);
    if (integral.terms().front().factor < 0) content = -content;
    product.times(content, divisor);
    product.factors.push_back(*integral.over(content));
  }
  return product;
}

/// Removes each of `part`'s factors from `whole`; false when one is not there.
bool cancel(std::vector<Dim>& whole, const std::vector<Dim>& part) {
  for (const Dim& dim : part) {
    auto it = std::ranges::find(whole, dim);
    if (it == whole.end()) return false;
    whole.erase(it);
  }
  return true;
}

}  // namespace

bool same_numel(const Shape& a, const Shape& b) {
  Product pa = factor(a);
  const Product pb = factor(b);
  return pa.constant == pb.constant && pa.divisor == pb.divisor && cancel(pa.factors, pb.factors) &&
         pa.factors.empty();
}

std::optional<Dim> missing_extent(const Shape& whole, const Shape& part) {
  Product pw = factor(whole);
  const Product pp = factor(part);
  if (pp.constant == 0) return std::nullopt;
  if (!cancel(pw.factors, pp.factors) || pw.factors.size() > 1) return std::nullopt;
  const Dim rest = pw.factors.empty() ? Dim(1) : pw.factors.front();
  pw.times(pp.divisor, pp.constant);
  return (rest * pw.constant).over(pw.divisor);
}

bool lies_in_front(const Shape& shape, std::size_t dim) {
  return std::all_of(shape.begin(), shape.begin() + dim,
                     [](const Dim& extent) { return extent == Dim(1); });
}

}  // namespace braid
