#pragma once

#include <cmath>
#include <limits>

namespace braid {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The functions of one or two floats. The evaluator, tile programs, their text form and the CUDA
// printer all use this table, so a new function is one line: an enumerator (Fn::kExp), a name in
// C++ and in the text form, its value for doubles a (and b), and its CUDA spelling.
#define BRAID_SCALAR_FUNCTIONS(UNARY, BINARY)            \
  UNARY(Exp, exp, std::exp(a), "expf({0})")              \
  UNARY(Cos, cos, std::cos(a), "cosf({0})")              \
  UNARY(Sin, sin, std::sin(a), "sinf({0})")              \
  UNARY(Log, log, std::log(a), "logf({0})")              \
  UNARY(Log1p, log1p, std::log1p(a), "log1pf({0})")      \
  UNARY(Sqrt, sqrt, std::sqrt(a), "sqrtf({0})")          \
  UNARY(Rsqrt, rsqrt, 1.0 / std::sqrt(a), "rsqrtf({0})") \
  UNARY(Tanh, tanh, std::tanh(a), "tanhf({0})")          \
  UNARY(Erf, erf, std::erf(a), "erff({0})")              \
  UNARY(Erfc, erfc, std::erfc(a), "erfcf({0})")          \
  BINARY(Pow, pow, std::pow(a, b), "powf({0}, {1})")     \
  UNARY(Floor, floor, std::floor(a), "floorf({0})")      \
  UNARY(Rint, rint, std::nearbyint(a), "rintf({0})")

#define BRAID_UNARY(Name, name, value, cuda) \
  inline double name(double a) { return value; }
#define BRAID_BINARY(Name, name, value, cuda) \
  inline double name(double a, double b) { return value; }
BRAID_SCALAR_FUNCTIONS(BRAID_UNARY, BRAID_BINARY)
#undef BRAID_UNARY
#undef BRAID_BINARY

}  // namespace braid
