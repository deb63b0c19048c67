#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "braid/error.h"
#include "braid/graph.h"

namespace braid {

// The arithmetic of every pointwise op, written once: instantiated for `double` by the evaluator
// and for a tile expression by codegen. A `T` offers + - * /, unary -, and by argument-dependent
// lookup exp, log, sqrt, rsqrt, tanh, erf, erfc, pow, abs, floor, nearbyint, maximum, less, equal,
// select and `like(T, double)` (a constant of the same kind). A truth value is 0 or 1.

inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
/// NaN wins, as in torch.maximum.
inline double maximum(double a, double b) {
  return std::isnan(a) ? a : (a < b || std::isnan(b)) ? b : a;
}
inline double less(double a, double b) { return a < b ? 1 : 0; }
inline double equal(double a, double b) { return a == b ? 1 : 0; }
inline double select(double condition, double a, double b) { return condition != 0 ? a : b; }
inline double like(double, double constant) { return constant; }

/// torch's gelu with approximate = "tanh": x / 2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3),
/// as x sigmoid(2u), which keeps its digits where 1 + tanh u cancels.
template <class T>
T gelu_tanh(T x) {
  using std::exp;
  const T twice = x * like(x, 1.5957691216057308) * (like(x, 1.0) + x * x * like(x, 0.044715));
  return x / (like(x, 1.0) + exp(-twice));
}

/// The result of pointwise op `name` on `x`, before it is rounded to the declared dtype. Casts
/// (`to`, `copy`) are the identity here.
template <class T>
T pointwise(std::string_view name, std::span<const T> x, const Attrs& attrs) {
  using std::abs;
  using std::erf;
  using std::erfc;
  using std::exp;
  using std::floor;
  using std::log;
  using std::nearbyint;
  using std::pow;
  using std::sqrt;
  using std::tanh;
  const auto one = [&] { return like(x[0], 1.0); };
  const auto zero = [&] { return like(x[0], 0.0); };
  const auto truth = [&](T a) { return one() - equal(a, zero()); };
  if (name == "add") return x[0] + x[1];
  if (name == "sub") return x[0] - x[1];
  if (name == "mul") return x[0] * x[1];
  if (name == "div") return x[0] / x[1];
  if (name == "pow") return pow(x[0], x[1]);
  if (name == "maximum") return maximum(x[0], x[1]);
  if (name == "minimum") return -maximum(-x[0], -x[1]);
  if (name == "neg") return -x[0];
  if (name == "abs") return abs(x[0]);
  if (name == "exp") return exp(x[0]);
  if (name == "log") return log(x[0]);
  if (name == "sqrt") return sqrt(x[0]);
  if (name == "rsqrt") return rsqrt(x[0]);
  if (name == "tanh") return tanh(x[0]);
  if (name == "erf") return erf(x[0]);
  if (name == "floor") return floor(x[0]);
  if (name == "round") return nearbyint(x[0]);
  if (name == "relu") return maximum(x[0], zero());
  if (name == "sigmoid") return one() / (one() + exp(-x[0]));
  if (name == "silu") return x[0] / (one() + exp(-x[0]));
  if (name == "gelu") {
    if (std::get<std::string>(attrs.find("approximate")->second) == "tanh") return gelu_tanh(x[0]);
    // 1 + erf(a) is erfc(-a), which does not cancel.
    return x[0] * like(x[0], 0.5) * erfc(-x[0] * like(x[0], 0.70710678118654752));
  }
  if (name == "clamp") {
    T y = x[0];
    const auto bound = [&](const char* key) { return attrs.find(key); };
    if (auto low = bound("min"); low != attrs.end()) {
      y = maximum(y, like(y, std::get<double>(low->second)));
    }
    if (auto high = bound("max"); high != attrs.end()) {
      y = -maximum(-y, like(y, -std::get<double>(high->second)));
    }
    return y;
  }
  if (name == "where") return select(x[0], x[1], x[2]);
  if (name == "eq") return equal(x[0], x[1]);
  if (name == "ne") return like(equal(x[0], x[1]), 1.0) - equal(x[0], x[1]);
  if (name == "lt") return less(x[0], x[1]);
  if (name == "gt") return less(x[1], x[0]);
  // Not by negation: a comparison with NaN is false.
  if (name == "le") return maximum(less(x[0], x[1]), equal(x[0], x[1]));
  if (name == "ge") return maximum(less(x[1], x[0]), equal(x[0], x[1]));
  if (name == "logical_not") return equal(x[0], zero());
  if (name == "logical_and") return truth(x[0]) * truth(x[1]);
  if (name == "logical_or") return maximum(truth(x[0]), truth(x[1]));
  if (name == "to" || name == "copy") return x[0];
  throw_internal(std::string(name), "not a pointwise op");
}

}  // namespace braid
