#pragma once

#include <cmath>
#include <span>
#include <string_view>

#include "braid/error.h"

namespace braid {

// The arithmetic of every pointwise op, written once: instantiated for `double` by the evaluator
// and for a tile expression by codegen. A `T` offers + - * /, unary -, and by argument-dependent
// lookup exp, erf, sqrt, rsqrt, maximum, and `like(T, double)` (a constant of the same kind).

inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
/// NaN wins, as in torch.maximum.
inline double maximum(double a, double b) {
  return std::isnan(a) ? a : (a < b || std::isnan(b)) ? b : a;
}
inline double like(double, double constant) { return constant; }

/// The result of pointwise op `name` on `x`, before it is rounded to the declared dtype. Casts
/// (`to`, `copy`) are the identity here.
template <class T>
T pointwise(std::string_view name, std::span<const T> x) {
  using std::erf;
  using std::exp;
  if (name == "add") return x[0] + x[1];
  if (name == "sub") return x[0] - x[1];
  if (name == "mul") return x[0] * x[1];
  if (name == "div") return x[0] / x[1];
  if (name == "neg") return -x[0];
  if (name == "exp") return exp(x[0]);
  if (name == "rsqrt") return rsqrt(x[0]);
  if (name == "relu") return maximum(x[0], like(x[0], 0.0));
  if (name == "silu") return x[0] / (like(x[0], 1.0) + exp(-x[0]));
  if (name == "gelu") {
    return x[0] * like(x[0], 0.5) * (like(x[0], 1.0) + erf(x[0] * like(x[0], 0.70710678118654752)));
  }
  if (name == "to" || name == "copy") return x[0];
  throw_internal(std::string(name), "not a pointwise op");
}

}  // namespace braid
