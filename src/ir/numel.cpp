#include "ir/numel.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ir/checked.h"

namespace braid {
namespace {

/// constant * product of `factors`; each factor is symbolic, its coefficients have no common
/// divisor and the first is positive.
struct Product {
  std::int64_t constant = 1;
  std::vector<Dim> factors;
};

Product factor(const Shape& shape) {
  Product product;
  for (const Dim& dim : shape) {
    if (dim.is_constant()) {
      product.constant = checked_mul(product.constant, dim.constant());
      continue;
    }
    std::int64_t content = dim.constant();
    for (const Dim::Term& term : dim.terms()) content = std::gcd(content, term.factor);
    if (dim.terms().front().factor < 0) content = -content;
    product.constant = checked_mul(product.constant, content);
    product.factors.push_back(*dim.divide_exactly(content));
  }
  return product;
}

/// Removes each of `part`'s factors from `whole`; false when one is not there.
bool cancel(std::vector<Dim>& whole, const std::vector<Dim>& part) {
  for (const Dim& dim : part) {
    auto it = std::find(whole.begin(), whole.end(), dim);
    if (it == whole.end()) return false;
    whole.erase(it);
  }
  return true;
}

}  // namespace

bool same_numel(const Shape& a, const Shape& b) {
  Product pa = factor(a);
  const Product pb = factor(b);
  return pa.constant == pb.constant && cancel(pa.factors, pb.factors) && pa.factors.empty();
}

std::optional<Dim> missing_extent(const Shape& whole, const Shape& part) {
  Product pw = factor(whole);
  const Product pp = factor(part);
  if (pp.constant == 0 || pw.constant % pp.constant != 0) return std::nullopt;
  if (!cancel(pw.factors, pp.factors) || pw.factors.size() > 1) return std::nullopt;
  const Dim rest = pw.factors.empty() ? Dim(1) : pw.factors.front();
  return rest * (pw.constant / pp.constant);
}

}  // namespace braid
