// Floating-point instructions against the statements of the PTX manual.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// A type by its PTX name; halves come packed or alone.
struct Type {
  const char* name;
  Format format;
  bool packed = false;
  [[nodiscard]] int bits() const { return (packed ? 2 : 1) * format.bits(); }
};
constexpr Type kTypes[] = {{"f32", kF32},         {"f64", kF64},   {"f16", kF16},
                           {"f16x2", kF16, true}, {"bf16", kBf16}, {"bf16x2", kBf16, true}};

Inputs inputs_of(const Type& type, u64 seed) {
  const Inputs inputs = make_inputs(float_edges(type.format), seed);
  return type.packed ? pack_halves(inputs, type.format.bits()) : inputs;
}

/// A row of up to three operands: each element (or half) of the result is function(a, b, c).
template <class F>
Row float_row(const Type& type, const std::string& text, F function) {
  Row out;
  out.text = spell(text, type.bits(), type.name);
  out.bits = type.bits();
  out.want = [type, function](const Inputs& in, std::size_t i) {
    u64 result = 0;
    for (int at = 0; at < type.bits(); at += type.format.bits()) {
      const u64 mask = ~0ULL >> (64 - type.format.bits());
      result |= (function(in.a[i] >> at & mask, in.b[i] >> at & mask, in.c[i] >> at & mask) & mask)
                << at;
    }
    return result;
  };
  return out.floats(type.format);
}

/// Applies `.ftz` and `.sat` around an operation on numbers, which is rounded at the end.
template <class F>
auto rounded(Format format, Mode mode, bool ftz, bool sat, F operation) {
  return [=](u64 a, u64 b, u64 c) {
    const auto input = [&](u64 x) { return decode(format, ftz ? flush(format, x) : x); };
    u64 bits = encode(format, operation(input(a), input(b), input(c)), mode);
    if (ftz) bits = flush(format, bits);
    return sat ? saturate(format, bits) : bits;
  };
}

/// add, sub, mul and fma with these modifiers.
void four_operations(std::vector<Row>& rows, const Type& type, const std::string& mode_name,
                     Mode mode, bool ftz, bool sat) {
  const std::string tail = mode_name + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".@ $d, $a, $b";
  const Format f = type.format;
  rows.push_back(
      float_row(type, "add" + tail + ";",
                rounded(f, mode, ftz, sat, [=](auto a, auto b, auto) { return add(a, b, mode); })));
  rows.push_back(float_row(
      type, "sub" + tail + ";",
      rounded(f, mode, ftz, sat, [=](auto a, auto b, auto) { return add(a, negate(b), mode); })));
  rows.push_back(
      float_row(type, "mul" + tail + ";",
                rounded(f, mode, ftz, sat, [=](auto a, auto b, auto) { return multiply(a, b); })));
  rows.push_back(float_row(type, "fma" + tail + ", $c;",
                           rounded(f, mode, ftz, sat, [=](auto a, auto b, auto c) {
                             return add(multiply(a, b), c, mode);
                           })));
}

TEST(SemanticsFloat, AddMultiply) {
  for (const Type& type : kTypes) {
    std::vector<Row> rows;
    const bool half = type.format.bits() == 16;
    for (int m = 0; m < (half ? 1 : 4); ++m) {
      const std::string mode = std::string(".") + kModeNames[m];
      four_operations(rows, type, mode, kModes[m], false, false);
      if (type.format.bits() == 32) four_operations(rows, type, mode, kModes[m], true, true);
    }
    if (type.format.bits() == 32) four_operations(rows, type, ".rn", Mode::kNearest, true, false);
    if (type.format.fraction_bits == kF16.fraction_bits) {
      four_operations(rows, type, ".rn", Mode::kNearest, true, false);
      four_operations(rows, type, ".rn", Mode::kNearest, false, true);
    }
    if (half) {
      const Format f = type.format;
      rows.push_back(float_row(type, "fma.rn.relu.@ $d, $a, $b, $c;", [f](u64 a, u64 b, u64 c) {
        const Number sum = add(multiply(decode(f, a), decode(f, b)), decode(f, c), Mode::kNearest);
        const u64 bits = encode(f, sum, Mode::kNearest);
        return !f.is_nan(bits) && (bits & f.sign()) != 0 ? 0 : bits;
      }));
      // The NaN that tensor copies fill in makes zero.
      for (const bool relu : {false, true}) {
        rows.push_back(float_row(
            type, std::string("fma.rn.oob") + (relu ? ".relu" : "") + ".@ $d, $a, $b, $c;",
            [f, relu](u64 a, u64 b, u64 c) -> u64 {
              if (a == 0x7fff || b == 0x7fff || c == 0x7fff) return 0;
              const Number sum =
                  add(multiply(decode(f, a), decode(f, b)), decode(f, c), Mode::kNearest);
              const u64 bits = encode(f, sum, Mode::kNearest);
              return relu && !f.is_nan(bits) && (bits & f.sign()) != 0 ? 0 : bits;
            }));
      }
    }
    check(rows, inputs_of(type, 11));
  }
}

TEST(SemanticsFloat, PairsOfSingles) {
  const Type pair{"f32x2", kF32, true};
  std::vector<Row> rows;
  for (int m = 0; m < 4; ++m) {
    for (const bool ftz : {false, true}) {
      four_operations(rows, pair, std::string(".") + kModeNames[m], kModes[m], ftz, false);
    }
  }
  const auto sum = [](u64 a, u64 b, u64) {
    return encode(kF32, add(decode(kF32, a), decode(kF32, b), Mode::kNearest), Mode::kNearest);
  };
  rows.push_back(float_row(pair, "add.@ $d, $a, $b;", sum));
  check(rows, inputs_of(pair, 13));
}

/// The narrow operands are f32 as they are, so that only the result is rounded.
TEST(SemanticsFloat, SinglesWithNarrowOperands) {
  for (const Type& type : {kTypes[2], kTypes[4]}) {
    std::vector<Row> rows;
    const auto mixed = [&](const std::string& text, Mode mode, bool saturates, auto operation) {
      Row out = row(text, [=](u64 a, u64 b, u64 c) {
        const u64 bits = encode(kF32, operation(a, b, c), mode);
        return static_cast<u32>(saturates ? saturate(kF32, bits) : bits);
      });
      rows.push_back(out.floats(kF32));
    };
    const Format f = type.format;
    for (int m = 0; m < 4; ++m) {
      const Mode mode = kModes[m];
      for (const bool sat : {false, true}) {
        const std::string tail =
            fmt::format(".{}{}.f32.{} %d, %ha, ", kModeNames[m], sat ? ".sat" : "", type.name);
        mixed("add" + tail + "%b;", mode, sat,
              [=](u64 a, u64 b, u64) { return add(decode(f, a), decode(kF32, b), mode); });
        mixed("sub" + tail + "%b;", mode, sat,
              [=](u64 a, u64 b, u64) { return add(decode(f, a), negate(decode(kF32, b)), mode); });
        mixed("fma" + tail + "%hb, %c;", mode, sat, [=](u64 a, u64 b, u64 c) {
          return add(multiply(decode(f, a), decode(f, b)), decode(kF32, c), mode);
        });
      }
    }
    // 16-bit operands beside f32 ones of their own edges.
    Inputs inputs = inputs_of(type, 14);
    const Inputs wide = make_inputs(float_edges(kF32), 15);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs.b[i] = wide.b[i % wide.size()];
      inputs.c[i] = wide.c[i % wide.size()];
    }
    check(rows, inputs);
  }
}

u64 extreme(Format f, bool minimum, bool propagate, u64 a, u64 b) {
  if (f.is_nan(a) || f.is_nan(b)) {
    if (propagate || (f.is_nan(a) && f.is_nan(b))) return f.sign() - 1;
    return f.is_nan(a) ? b : a;
  }
  int sign = order(decode(f, a), decode(f, b));
  if (sign == 0 && a != b) sign = (a & f.sign()) != 0 ? -1 : 1;  // -0 is below +0
  return (sign < 0) == minimum ? a : b;
}

void extremes(std::vector<Row>& rows, const Type& type, bool ftz, bool propagate, bool by_size) {
  const Format f = type.format;
  for (const bool minimum : {true, false}) {
    const std::string text = std::string(minimum ? "min" : "max") + (ftz ? ".ftz" : "") +
                             (propagate ? ".NaN" : "") + (by_size ? ".xorsign.abs" : "") +
                             ".@ $d, $a, $b;";
    rows.push_back(float_row(type, text, [=](u64 a, u64 b, u64) {
      if (ftz) {
        a = flush(f, a);
        b = flush(f, b);
      }
      if (!by_size) return extreme(f, minimum, propagate, a, b);
      const u64 sizes = f.sign() - 1;
      const u64 result = extreme(f, minimum, propagate, a & sizes, b & sizes);
      return f.is_nan(result) ? result : (result & sizes) | ((a ^ b) & f.sign());
    }));
  }
}

/// min and max of three operands: f32 only.
void extremes_of_three(std::vector<Row>& rows, bool ftz, bool propagate, bool sizes) {
  for (const bool minimum : {true, false}) {
    const std::string text = std::string(minimum ? "min" : "max") + (ftz ? ".ftz" : "") +
                             (propagate ? ".NaN" : "") + (sizes ? ".abs" : "") +
                             ".@ $d, $a, $b, $c;";
    rows.push_back(float_row(kTypes[0], text, [=](u64 a, u64 b, u64 c) {
      const auto input = [&](u64 x) {
        return (ftz ? flush(kF32, x) : x) & (sizes ? kF32.sign() - 1 : ~0ULL);
      };
      u64 result = extreme(kF32, minimum, propagate, input(a), input(b));
      // A NaN that must not be lost is one of the three.
      if (propagate && (kF32.is_nan(a) || kF32.is_nan(b))) return result;
      return extreme(kF32, minimum, propagate, result, input(c));
    }));
  }
}

TEST(SemanticsFloat, MinMaxOfThree) {
  std::vector<Row> rows;
  for (const bool ftz : {false, true}) {
    for (const bool propagate : {false, true}) {
      for (const bool sizes : {false, true}) extremes_of_three(rows, ftz, propagate, sizes);
    }
  }
  check(rows, make_inputs(float_edges(kF32), 18));
}

TEST(SemanticsFloat, MinMaxAndSigns) {
  for (const Type& type : kTypes) {
    std::vector<Row> rows;
    const Format f = type.format;
    const bool has_ftz = f.bits() == 32 || f.fraction_bits == kF16.fraction_bits;
    extremes(rows, type, false, false, false);
    if (f.bits() < 64) {
      extremes(rows, type, false, true, false);
      extremes(rows, type, false, true, true);
      extremes(rows, type, false, false, true);
    }
    if (has_ftz) extremes(rows, type, true, false, false);
    for (const bool ftz : {false, true}) {
      if (ftz && !has_ftz) continue;
      const std::string tail = std::string(ftz ? ".ftz" : "") + ".@ $d, $a;";
      const auto input = [=](u64 a) { return ftz ? flush(f, a) : a; };
      rows.push_back(
          float_row(type, "neg" + tail, [=](u64 a, u64, u64) { return input(a) ^ f.sign(); }));
      rows.push_back(float_row(type, "abs" + tail,
                               [=](u64 a, u64, u64) { return input(a) & (f.sign() - 1); }));
    }
    if (f.bits() >= 32) {
      rows.push_back(float_row(type, "copysign.@ $d, $a, $b;", [=](u64 a, u64 b, u64) {
        return (a & f.sign()) | (b & (f.sign() - 1));
      }));
    }
    check(rows, inputs_of(type, 12));
  }
}

TEST(SemanticsFloat, DivideAndRoots) {
  for (const Type& type : {kTypes[0], kTypes[1]}) {
    std::vector<Row> rows;
    const Format f = type.format;
    const Number one = integer(1);
    for (int m = 0; m < 4; ++m) {
      for (const bool ftz : {false, true}) {
        if (ftz && f.bits() == 64) continue;
        const std::string tail =
            std::string(".") + kModeNames[m] + (ftz ? ".ftz" : "") + ".@ $d, $a";
        rows.push_back(float_row(
            type, "div" + tail + ", $b;",
            rounded(f, kModes[m], ftz, false, [](auto a, auto b, auto) { return divide(a, b); })));
        rows.push_back(float_row(
            type, "rcp" + tail + ";",
            rounded(f, kModes[m], ftz, false, [=](auto a, auto, auto) { return divide(one, a); })));
        rows.push_back(float_row(
            type, "sqrt" + tail + ";",
            rounded(f, kModes[m], ftz, false, [](auto a, auto, auto) { return square_root(a); })));
      }
    }
    check(rows, inputs_of(type, 13));
  }
}

/// A row of one operand whose exact value is known to the host, in double.
template <class F>
Row approximate(const Type& type, const std::string& text, double relative, double absolute,
                F function) {
  const Format f = type.format;
  const bool ftz = text.find(".ftz") != std::string::npos;
  Row out = float_row(type, text, [=](u64 a, u64 b, u64) {
    const auto input = [&](u64 x) { return to_double(f, ftz && f.bits() == 32 ? flush(f, x) : x); };
    const auto bits = std::bit_cast<u64>(static_cast<double>(function(input(a), input(b))));
    const u64 result = encode(f, decode(kF64, bits), Mode::kNearest);
    return ftz && f.bits() == 32 ? flush(f, result) : result;
  });
  return out.floats(f, relative, absolute);
}

TEST(SemanticsFloat, Approximations) {
  const auto power = [](double a, double) { return std::exp2(a); };
  const auto hyperbolic = [](double a, double) { return std::tanh(a); };
  for (const Type& type : kTypes) {
    std::vector<Row> rows;
    const bool single = type.format.bits() == 32;
    const bool half = type.format.fraction_bits == kF16.fraction_bits;
    // Errors of the last place of a subnormal are as large as one.
    const double tiny = std::ldexp(1.0, single ? -149 : half ? -24 : -133);
    if (type.format.bits() == 64) {
      rows.push_back(approximate(type, "rsqrt.approx.@ $d, $a;", 0x1p-22, 0,
                                 [](double a, double) { return 1 / std::sqrt(a); }));
      rows.push_back(approximate(type, "rsqrt.approx.ftz.@ $d, $a;", 0x1p-22, 0,
                                 [](double a, double) { return 1 / std::sqrt(a); }));
      rows.push_back(approximate(type, "rcp.approx.ftz.@ $d, $a;", 0x1p-19, 0x1p-1000,
                                 [](double a, double) { return 1 / a; }));
    } else if (single) {
      for (const std::string ftz : {"", ".ftz"}) {
        const std::string tail = ".approx" + ftz + ".@ $d, $a;";
        rows.push_back(approximate(type, "ex2" + tail, 0x1p-22, tiny, power));
        rows.push_back(approximate(type, "lg2" + tail, 0x1p-22, 0x1p-22,
                                   [](double a, double) { return std::log2(a); }));
        rows.push_back(
            approximate(type, "rcp" + tail, 0x1p-23, tiny, [](double a, double) { return 1 / a; }));
        rows.push_back(approximate(type, "rsqrt" + tail, 0x1p-22, tiny,
                                   [](double a, double) { return 1 / std::sqrt(a); }));
        rows.push_back(approximate(type, "sqrt" + tail, 0x1p-22, tiny,
                                   [](double a, double) { return std::sqrt(a); }));
        // In [-2 pi, 2 pi], where the manual has a bound: others are cut to [-4, 4].
        const std::string near = "min.f32 %t0, %a, 0f40800000; max.f32 %t0, %t0, 0fC0800000; ";
        rows.push_back(approximate(
            type, near + "sin.approx" + ftz + ".f32 %d, %t0;", 0, 0x1p-20, [](double a, double) {
              return std::sin(std::isnan(a) ? 4 : std::fmax(std::fmin(a, 4), -4));
            }));
        rows.push_back(approximate(
            type, near + "cos.approx" + ftz + ".f32 %d, %t0;", 0, 0x1p-20, [](double a, double) {
              return std::cos(std::isnan(a) ? 4 : std::fmax(std::fmin(a, 4), -4));
            }));
        rows.push_back(approximate(type, "div.full" + ftz + ".@ $d, $a, $b;", 0x1p-22, 2 * tiny,
                                   [](double a, double b) { return a / b; }));
        // The bound holds for divisors in [2^-126, 2^126]: clear the top bit of the exponent.
        Row divide_near =
            row("and.b32 %t0, %b, 0xbfffffff; or.b32 %t0, %t0, 0x00800000;"
                "div.approx" +
                    ftz + ".f32 %d, %a, %t0;",
                [ftz](u32 a, u32 b) {
                  const bool flushed = !ftz.empty();
                  const Number divisor = decode(kF32, (b & 0xbfffffff) | 0x00800000);
                  const Number top = decode(kF32, flushed ? flush(kF32, a) : a);
                  const u64 bits = encode(kF32, divide(top, divisor), Mode::kNearest);
                  return static_cast<u32>(flushed ? flush(kF32, bits) : bits);
                });
        rows.push_back(divide_near.floats(kF32, 0x1p-22, 2 * tiny));
      }
      // One divisor for all lanes: at both ends of the range, and what is no number.
      for (const u32 divisor :
           {0x40400000U, 0xbf99999aU, 0x00000003U, 0x80400001U, 0x00800000U, 0x7e7fffffU,
            0x7f000001U, 0xff7fffffU, 0U, 0xff800000U, 0x7fc00000U}) {
        rows.push_back(approximate(type, fmt::format("div.full.f32 $d, $a, 0f{:08X};", divisor),
                                   0x1p-22, 2 * tiny,
                                   [=](double a, double) { return a / to_double(kF32, divisor); }));
      }
      rows.push_back(approximate(type, "tanh.approx.@ $d, $a;", 0x1p-11, tiny, hyperbolic));
    } else {
      // f16: 2^-9.9 for ex2, 2^-10.987 (absolute) for tanh; bf16: 2^-7 and 2^-8.
      rows.push_back(approximate(type, half ? "ex2.approx.@ $d, $a;" : "ex2.approx.ftz.@ $d, $a;",
                                 half ? 0x1p-9 : 0x1p-7, half ? tiny : 0x1p-126, power));
      rows.push_back(approximate(type, "tanh.approx.@ $d, $a;", half ? 0 : 0x1p-7,
                                 half ? 0x1p-10 : tiny, hyperbolic));
    }
    check(rows, inputs_of(type, 14));
  }
}

bool compared(const std::string& how, Format f, u64 a, u64 b) {
  const bool unordered = f.is_nan(a) || f.is_nan(b);
  if (how == "num" || how == "nan") return unordered == (how == "nan");
  if (unordered) return how.size() == 3;
  const int sign = order(decode(f, a), decode(f, b));
  const std::string base = how.substr(0, 2);
  if (base == "eq") return sign == 0;
  if (base == "ne") return sign != 0;
  if (base == "lt") return sign < 0;
  if (base == "le") return sign <= 0;
  return base == "gt" ? sign > 0 : sign >= 0;
}
constexpr const char* kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

TEST(SemanticsFloat, Comparisons) {
  for (const Type& type : kTypes) {
    std::vector<Row> rows;
    const Format f = type.format;
    const bool has_ftz = f.bits() == 32 || f.fraction_bits == kF16.fraction_bits;
    for (const std::string how : kComparisons) {
      for (const bool ftz : {false, true}) {
        if (ftz && (!has_ftz || how.size() == 3)) continue;
        const auto truth = [=](u64 a, u64 b) {
          return ftz ? compared(how, f, flush(f, a), flush(f, b)) : compared(how, f, a, b);
        };
        const std::string tail = how + (ftz ? ".ftz" : "");
        if (!type.packed) {
          Row one = float_row(type, "setp." + tail + ".@ %p, $a, $b;",
                              [=](u64 a, u64 b, u64) { return u64{truth(a, b)}; });
          one.bits = 1;
          one.part_bits = 0;
          rows.push_back(one);
          continue;
        }
        // Packed, the two predicates are of the two halves, and `set` has a result in each.
        const bool bfloat = f.fraction_bits == kBf16.fraction_bits;
        const u64 yes = bfloat ? 0x3f80 : 0x3c00;
        rows.push_back(float_row(type, "set." + tail + ".@.@ $d, $a, $b;",
                                 [=](u64 a, u64 b, u64) { return truth(a, b) ? yes : 0; }));
        rows.push_back(
            float_row(type, "set." + tail + ".u32.@ $d, $a, $b;",
                      [=](u64 a, u64 b, u64) { return u64{truth(a, b) ? 0xffffU : 0U}; }));
        rows.back().part_bits = 0;
        rows.push_back(float_row(type,
                                 "setp." + tail +
                                     ".@ %q0|%q1, $a, $b; selp.b32 %d, 1, 0, %q0;"
                                     "selp.b32 %t0, 0x10000, 0, %q1; or.b32 %d, %d, %t0;",
                                 [=](u64 a, u64 b, u64) { return u64{truth(a, b)}; }));
        rows.back().part_bits = 0;
      }
    }
    check(rows, inputs_of(type, 15));
  }
}

TEST(SemanticsFloat, SetAndTestp) {
  std::vector<Row> rows;
  const std::string third = "setp.lt.s32 %q0, %c, 0; ";
  rows.push_back(row("set.ltu.f32.f32 %d, %a, %b;",
                     [](u32 a, u32 b) { return compared("ltu", kF32, a, b) ? 0x3f800000U : 0U; }));
  rows.push_back(row(third + "set.ge.xor.ftz.s32.f32 %d, %a, %b, %q0;", [](u32 a, u32 b, i32 c) {
    return compared("ge", kF32, flush(kF32, a), flush(kF32, b)) != (c < 0) ? -1 : 0;
  }));
  rows.push_back(row(third + "set.neu.or.u32.f64 %d, %A, %B, !%q0;", [](u64 a, u64 b, i32 c) {
    return compared("neu", kF64, a, b) || c >= 0 ? ~0U : 0U;
  }));
  rows.push_back(row("set.gt.f16.f16 %h, %ha, %hb;", [](u16 a, u16 b) {
    return static_cast<u16>(compared("gt", kF16, a, b) ? 0x3c00 : 0);
  }));
  rows.push_back(row(third + "set.eq.and.u16.f16 %h, %ha, %hb, %q0;", [](u16 a, u16 b, i32 c) {
    return static_cast<u16>(compared("eq", kF16, a, b) && c < 0 ? 0xffff : 0);
  }));
  rows.push_back(row(third + "setp.le.and.f32 %q1|%p, %a, %b, %q0;",
                     [](u32 a, u32 b, i32 c) { return !compared("le", kF32, a, b) && c < 0; }));
  const std::pair<const char*, int> kinds[] = {{"finite", 7},  {"infinite", 8},
                                               {"number", 15}, {"notanumber", 16},
                                               {"normal", 5},  {"subnormal", 2}};
  // Classes: zero 1, subnormal 2, normal 4, infinity 8, NaN 16.
  const auto class_of = [](Format f, u64 bits) {
    const u64 size = bits & (f.sign() - 1);
    if (size == 0) return 1;
    if (size >= f.infinity()) return size == f.infinity() ? 8 : 16;
    return size >> f.fraction_bits == 0 ? 2 : 4;
  };
  for (const auto& [name, classes] : kinds) {
    rows.push_back(row(fmt::format("testp.{}.f32 %p, %a;", name),
                       [=, k = classes](u32 a) { return (class_of(kF32, a) & k) != 0; }));
    rows.push_back(row(fmt::format("testp.{}.f64 %p, %A;", name),
                       [=, k = classes](u64 a) { return (class_of(kF64, a) & k) != 0; }));
  }
  for (const Format& format : {kF16, kF32, kF64}) check(rows, make_inputs(float_edges(format), 16));
}

}  // namespace
}  // namespace braid::cpu_test
