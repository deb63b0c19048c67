#pragma once

#include <cmath>
#include <limits>

namespace braid {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The functions of one or two floats. The evaluator, tile programs, their text form and the CUDA
// printer all use this table, so a new function is one line: an enumerator (Fn::kExp), a name in
// C++ and in the text form, its value for doubles a (and b), and its CUDA spelling.
#define BRAID_SCALAR_FUNCTIONS(UNARY, BINARY)                            \
  UNARY(Exp, exp, std::exp(a), "expf({0})")                              \
  UNARY(Expm1, expm1, std::expm1(a), "expm1f({0})")                      \
  UNARY(Cos, cos, std::cos(a), "cosf({0})")                              \
  UNARY(Sin, sin, std::sin(a), "sinf({0})")                              \
  UNARY(Tan, tan, std::tan(a), "tanf({0})")                              \
  UNARY(Acos, acos, std::acos(a), "acosf({0})")                          \
  UNARY(Asin, asin, std::asin(a), "asinf({0})")                          \
  UNARY(Atan, atan, std::atan(a), "atanf({0})")                          \
  BINARY(Atan2, atan2, std::atan2(a, b), "atan2f({0}, {1})")             \
  UNARY(Cosh, cosh, std::cosh(a), "coshf({0})")                          \
  UNARY(Sinh, sinh, std::sinh(a), "sinhf({0})")                          \
  UNARY(Tanh, tanh, std::tanh(a), "tanhf({0})")                          \
  UNARY(Acosh, acosh, std::acosh(a), "acoshf({0})")                      \
  UNARY(Asinh, asinh, std::asinh(a), "asinhf({0})")                      \
  UNARY(Atanh, atanh, std::atanh(a), "atanhf({0})")                      \
  UNARY(Log, log, std::log(a), "logf({0})")                              \
  UNARY(Log1p, log1p, std::log1p(a), "log1pf({0})")                      \
  UNARY(Sqrt, sqrt, std::sqrt(a), "sqrtf({0})")                          \
  UNARY(Rsqrt, rsqrt, 1.0 / std::sqrt(a), "rsqrtf({0})")                 \
  BINARY(Hypot, hypot, std::hypot(a, b), "hypotf({0}, {1})")             \
  UNARY(Erf, erf, std::erf(a), "erff({0})")                              \
  UNARY(Erfc, erfc, std::erfc(a), "erfcf({0})")                          \
  BINARY(Pow, pow, std::pow(a, b), "powf({0}, {1})")                     \
  BINARY(Copysign, copysign, std::copysign(a, b), "copysignf({0}, {1})") \
  UNARY(Floor, floor, std::floor(a), "floorf({0})")                      \
  UNARY(Rint, rint, std::nearbyint(a), "rintf({0})")

#define BRAID_UNARY(Name, name, value, cuda) \
  inline double name(double a) { return value; }
#define BRAID_BINARY(Name, name, value, cuda) \
  inline double name(double a, double b) { return value; }
BRAID_SCALAR_FUNCTIONS(BRAID_UNARY, BRAID_BINARY)
#undef BRAID_UNARY
#undef BRAID_BINARY

}  // namespace braid
