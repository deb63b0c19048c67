// cvt against the statements of the PTX manual.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

struct Integer {
  const char* name;
  int bits;
  bool is_signed;
  [[nodiscard]] i128 low() const { return is_signed ? -(i128{1} << (bits - 1)) : 0; }
  [[nodiscard]] i128 high() const { return (i128{1} << (is_signed ? bits - 1 : bits)) - 1; }
  [[nodiscard]] i128 value(u64 operand) const {
    const u64 cut = operand & (~u64{0} >> (64 - bits));
    return is_signed && (cut >> (bits - 1)) != 0 ? i128{cut} - (i128{1} << bits) : i128{cut};
  }
};
constexpr Integer kIntegers[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                 {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                 {"u64", 64, false}, {"s64", 64, true}};

struct Float {
  const char* name;
  Format format;
};
constexpr Float kHalf{"f16", kF16};
constexpr Float kBfloat{"bf16", kBf16};
constexpr Float kSingle{"f32", kF32};
constexpr Float kDouble{"f64", kF64};

const char* operand(int bits) { return bits == 64 ? "%A" : bits == 16 ? "%ha" : "%a"; }
/// A byte arrives in a register of 32 bits, extended by its own sign.
const char* result(int bits) { return bits == 64 ? "%D" : bits == 16 ? "%h" : "%d"; }

Row convert(const std::string& modifiers, int from_bits, int to_bits,
            std::function<u64(u64)> function) {
  Row out;
  out.text = fmt::format("cvt.{} {}, {};", modifiers, result(to_bits), operand(from_bits));
  out.bits = std::max(to_bits == 8 ? 32 : to_bits, 16);
  out.want = [from_bits, function = std::move(function)](const Inputs& in, std::size_t i) {
    return function(in.a[i] & (~u64{0} >> (64 - from_bits)));
  };
  return out;
}

TEST(SemanticsConvert, Integers) {
  std::vector<Row> rows;
  for (const Integer& from : kIntegers) {
    for (const Integer& to : kIntegers) {
      rows.push_back(
          convert(fmt::format("{}.{}", to.name, from.name), from.bits, to.bits, [=](u64 a) {
            const auto cut = static_cast<u64>(from.value(a));
            return static_cast<u64>(to.value(cut));
          }));
      // Only where something can be out of range.
      if (from.low() >= to.low() && from.high() <= to.high()) continue;
      rows.push_back(convert(
          fmt::format("sat.{}.{}", to.name, from.name), from.bits, to.bits,
          [=](u64 a) { return static_cast<u64>(std::clamp(from.value(a), to.low(), to.high())); }));
    }
  }
  check(rows, make_inputs(integer_edges(), 21));
}

TEST(SemanticsConvert, IntegersToFloats) {
  std::vector<Row> rows;
  for (const Float& to : {kHalf, kBfloat, kSingle, kDouble}) {
    for (const Integer& from : kIntegers) {
      for (int m = 0; m < 4; ++m) {
        rows.push_back(convert(
            fmt::format("{}.{}.{}", kModeNames[m], to.name, from.name), from.bits, to.format.bits(),
            [=](u64 a) { return encode(to.format, integer(from.value(a)), kModes[m]); }));
      }
    }
  }
  rows.push_back(convert("rn.sat.f32.s32", 32, 32,
                         [](u64 a) { return static_cast<i32>(a) > 0 ? kF32.one() : 0; }));
  // Halfway between two values of 8, 11 and 24 bits, and a little to the sides of it.
  std::vector<u64> edges = {0, 1, 0xff, 0x7f, 0x80, 0x8000, 0xffff, 65519, 65520, ~0ULL};
  for (const int bits : {8, 11, 24, 53}) {
    for (const int top : {bits, 30, 31, 62, 63}) {
      const u64 half = (u64{1} << top) | (top > bits ? u64{1} << (top - bits) : 1);
      for (const u64 x : {half, half + 1, half - 1, 0 - half}) edges.push_back(x);
    }
  }
  check(rows, make_inputs(edges, 22), false);
  // One value per warp takes another way; a few types are enough.
  check({rows.begin(), rows.begin() + 32}, make_inputs(integer_edges(), 23));
}

constexpr const char* kIntegralNames[] = {"rni", "rzi", "rmi", "rpi"};

TEST(SemanticsConvert, FloatsToIntegers) {
  for (const Float& from : {kHalf, kBfloat, kSingle, kDouble}) {
    std::vector<Row> rows;
    const Format f = from.format;
    for (const Integer& to : kIntegers) {
      for (int m = 0; m < 4; ++m) {
        for (const bool ftz : {false, true}) {
          if (ftz && (f.bits() != 32 || to.bits != 32)) continue;
          if (to.bits == 8 && f.fraction_bits == kBf16.fraction_bits) continue;
          rows.push_back(convert(
              fmt::format("{}{}.{}.{}", kIntegralNames[m], ftz ? ".ftz" : "", to.name, from.name),
              f.bits(), to.bits, [=](u64 a) {
                if (ftz) a = flush(f, a);
                if (!f.is_nan(a)) {
                  return static_cast<u64>(to_integer(decode(f, a), kModes[m], to.low(), to.high()));
                }
                // NaN: 0, or only the top bit where one of the types has 64 bits.
                const bool wide = f.bits() == 64 || to.bits == 64;
                return wide ? static_cast<u64>(to.value(u64{1} << (to.bits - 1))) : u64{0};
              }));
        }
      }
    }
    std::vector<u64> edges = float_edges(f);
    // Halves, and the ends of the ranges of the integers.
    for (const double x : {0.5, 1.5, 2.5, 127.5, 128.0, 255.5, 32767.5, 65535.5, 2147483647.5,
                           2147483648.0, 4294967295.5, 9.2e18, 0x1p63, 1.8e19, 0x1p64}) {
      const u64 bits = encode(f, decode(kF64, std::bit_cast<u64>(x)), Mode::kZero);
      edges.push_back(bits);
      edges.push_back(bits | f.sign());
    }
    check(rows, make_inputs(edges, 24), f.bits() == 64);
  }
}

Row between(const std::string& modifiers, const Float& to, const Float& from,
            std::function<u64(u64)> function) {
  return convert(
             fmt::format("{}{}{}.{}", modifiers, modifiers.empty() ? "" : ".", to.name, from.name),
             from.format.bits(), to.format.bits(), std::move(function))
      .floats(to.format);
}
u64 rectified(Format f, u64 bits) { return !f.is_nan(bits) && (bits & f.sign()) != 0 ? 0 : bits; }
/// Boundaries between two formats: values of one around the halfway points of the other.
std::vector<u64> meeting_edges(Format from, Format to) {
  std::vector<u64> edges = float_edges(from);
  for (const u64 x : float_edges(to)) {
    const u64 bits = encode(from, decode(to, x), Mode::kNearest);
    edges.push_back(bits);
    const int below = from.fraction_bits - to.fraction_bits;
    if (below <= 0 || (bits & (from.sign() - 1)) >= from.infinity()) continue;
    const u64 half = bits + (u64{1} << (below - 1));
    for (const u64 y : {half, half + 1, half - 1}) edges.push_back(y);
  }
  return edges;
}

TEST(SemanticsConvert, FloatsToFloats) {
  for (const Float& from : {kSingle, kDouble}) {
    for (const Float& to : {kHalf, kBfloat, kSingle}) {
      const Format f = from.format;
      const Format t = to.format;
      if (f.bits() == t.bits()) continue;
      std::vector<Row> rows;
      for (int m = 0; m < 4; ++m) {
        const std::string name = kModeNames[m];
        const auto plain = [=](u64 a) { return encode(t, decode(f, a), kModes[m]); };
        rows.push_back(between(name, to, from, plain));
        if (f.bits() == 64 && t.bits() == 16) continue;
        if (t.bits() == 32 || t.exponent_bits == kF16.exponent_bits) {
          rows.push_back(
              between(name + ".sat", to, from, [=](u64 a) { return saturate(t, plain(a)); }));
          rows.push_back(between(name + ".ftz", to, from, [=](u64 a) {
            return f.bits() == 32 ? plain(flush(f, a)) : flush(t, plain(a));
          }));
        }
        if (t.bits() == 16 && m < 2) {
          rows.push_back(
              between(name + ".relu", to, from, [=](u64 a) { return rectified(t, plain(a)); }));
        }
      }
      check(rows, make_inputs(meeting_edges(f, t), 25), f.bits() == 32);
    }
  }
}

// Hosts may round warps at once that hold neither a NaN nor a subnormal; one lane takes all of them
// another way.
TEST(SemanticsConvert, BfloatsOfWarps) {
  std::vector<u64> ordinary, special;
  for (const u64 bits : make_inputs(meeting_edges(kF32, kBf16), 28).a) {
    const u64 size = bits & (kF32.sign() - 1);
    const bool subnormal = size != 0 && size >> kF32.fraction_bits == 0;
    (kF32.is_nan(bits & 0xffffffff) || subnormal ? special : ordinary).push_back(bits & 0xffffffff);
  }
  for (const u64 bits : {0x7f800001U, 0xff800001U, 0x7fc12345U, 0xffffffffU, 1U, 0x80000001U,
                         0x7fffffU, 0x807fffffU, 0x8000U, 0x18000U, 0x7f8000U}) {
    special.push_back(bits);
  }
  Inputs inputs;
  for (std::size_t warp = 0; warp < 512; ++warp) {
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const bool one = warp % 4 == 3 && lane == warp / 4 % 32;
      inputs.a.push_back(one ? special[special.size() - 1 - warp / 4 % special.size()]
                             : ordinary[(warp * 32 + lane) % ordinary.size()]);
      inputs.b.push_back(ordinary[(warp * 37 + lane * 5) % ordinary.size()]);
      inputs.c.push_back(0);
    }
  }
  const auto near = [](u32 bits) {
    return static_cast<u16>(encode(kBf16, decode(kF32, bits), Mode::kNearest));
  };
  const auto pair = [=](u32 a, u32 b) { return u32{near(a)} << 16 | near(b); };
  check({row("cvt.rn.bf16.f32 %h, %a;", near), row("cvt.rn.bf16x2.f32 %d, %a, %b;", pair)}, inputs);
}

TEST(SemanticsConvert, ExactAndIntegral) {
  for (const Float& from : {kHalf, kBfloat, kSingle, kDouble}) {
    std::vector<Row> rows;
    const Format f = from.format;
    for (const Float& to : {kSingle, kDouble}) {
      if (to.format.bits() <= f.bits()) continue;
      rows.push_back(between(
          "", to, from, [=](u64 a) { return encode(to.format, decode(f, a), Mode::kNearest); }));
    }
    if (f.exponent_bits != kBf16.exponent_bits || f.bits() == 32) {
      for (int m = 0; m < 4; ++m) {
        rows.push_back(between(kIntegralNames[m], from, from, [=](u64 a) {
          const Number n = decode(f, a);
          // From 2^fraction on all values are integers; a zero keeps its sign.
          if (n.nan || n.infinite || n.exponent >= 0) return encode(f, n, Mode::kNearest);
          Number whole = integer(to_integer(n, kModes[m], -(i128{1} << 60), i128{1} << 60));
          whole.negative = n.negative;
          return encode(f, whole, Mode::kNearest);
        }));
      }
    }
    if (f.bits() == 32) {
      rows.push_back(between("sat", from, from, [=](u64 a) { return saturate(f, a); }));
      rows.push_back(between("ftz", from, from, [=](u64 a) { return flush(f, a); }));
      // tf32 is an f32 with fewer bits.
      for (const auto& [name, mode] :
           {std::pair{"rna", Mode::kTiesAway}, {"rn", Mode::kNearest}, {"rz", Mode::kZero}}) {
        rows.push_back(convert(fmt::format("{}.tf32.f32", name), 32, 32, [mode = mode](u64 a) {
                         return encode(kTf32, decode(kF32, a), mode) << 13;
                       }).floats(kF32));
      }
    }
    check(rows, make_inputs(meeting_edges(f, kTf32), 26));
  }
}

TEST(SemanticsConvert, PackedHalves) {
  std::vector<Row> rows;
  for (const Float& to : {kHalf, kBfloat}) {
    for (int m = 0; m < 2; ++m) {
      for (const bool relu : {false, true}) {
        Row both = row(fmt::format("cvt.{}{}.{}x2.f32 %d, %a, %b;", kModeNames[m],
                                   relu ? ".relu" : "", to.name),
                       [=, f = to.format](u32 a, u32 b) {
                         u64 high = encode(f, decode(kF32, a), kModes[m]);
                         u64 low = encode(f, decode(kF32, b), kModes[m]);
                         if (relu) high = rectified(f, high), low = rectified(f, low);
                         return static_cast<u32>(high << 16 | low);
                       });
        rows.push_back(both.floats(to.format));
      }
    }
  }
  check(rows, make_inputs(meeting_edges(kF32, kF16), 27));
  check(rows, make_inputs(meeting_edges(kF32, kBf16), 28));
}

/// e4m3 has no infinity: the code of e5m2's is a number in it, and only all ones are NaN.
constexpr Format kE5m2{5, 2};

u64 encode_float8(bool e5m2, const Number& n) {
  const u64 sign = n.negative ? 0x80 : 0;
  if (n.nan) return 0x7f;
  const u64 largest = e5m2 ? 0x7b : 0x7e;
  if (n.infinite) return sign | largest;
  // One more exponent, so that the largest of e4m3 are not taken for infinity.
  Number scaled = n;
  const Format wide = e5m2 ? kE5m2 : Format{5, 3};
  if (!e5m2 && n.size != 0) scaled.exponent += 7 - 15;  // both biases count from the smallest
  const u64 bits = encode(wide, scaled, Mode::kNearest) & (wide.sign() - 1);
  return sign | std::min(bits, largest);
}
Number decode_float8(bool e5m2, u64 code) {
  if (e5m2) return decode(kE5m2, code);
  Number n = decode(Format{5, 3}, code & 0x7f);
  n.exponent += 15 - 7;
  n.negative = (code & 0x80) != 0;
  n.nan = (code & 0x7f) == 0x7f;
  return n;
}

TEST(SemanticsConvert, Float8) {
  std::vector<Row> rows;
  for (const bool e5m2 : {false, true}) {
    const std::string name = e5m2 ? "e5m2x2" : "e4m3x2";
    for (const bool relu : {false, true}) {
      const auto code = [=](Number n) {
        if (relu && !n.nan && n.negative) n = Number{};
        return encode_float8(e5m2, n);
      };
      const std::string head = std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + name;
      rows.push_back(row(head + ".f32 %h, %a, %b;", [=](u32 a, u32 b) {
        return static_cast<u16>(code(decode(kF32, a)) << 8 | code(decode(kF32, b)));
      }));
      rows.push_back(row(head + ".f16x2 %h, %a;", [=](u32 a) {
        return static_cast<u16>(code(decode(kF16, a >> 16)) << 8 | code(decode(kF16, a & 0xffff)));
      }));
      Row back =
          row(fmt::format("cvt.rn{}.f16x2.{} %d, %ha;", relu ? ".relu" : "", name), [=](u16 a) {
            const auto half = [&](u64 bits) {
              const u64 value = encode(kF16, decode_float8(e5m2, bits), Mode::kNearest);
              return relu ? rectified(kF16, value) : value;
            };
            return static_cast<u32>(half(a >> 8) << 16 | half(a & 0xff));
          });
      rows.push_back(back.floats(kF16));
      rows.push_back(
          row(fmt::format("cvt.rn{}.bf16x2.{} %d, %ha;", relu ? ".relu" : "", name), [=](u16 a) {
            const auto half = [&](u64 bits) {
              const u64 value = encode(kBf16, decode_float8(e5m2, bits), Mode::kNearest);
              return relu ? rectified(kBf16, value) : value;
            };
            return static_cast<u32>(half(a >> 8) << 16 | half(a & 0xff));
          }).floats(kBf16));
    }
  }
  std::vector<u64> edges = meeting_edges(kF32, kE5m2);
  for (const u64 x : meeting_edges(kF32, Format{5, 3})) {
    Number n = decode(kF32, x);
    n.exponent += 8;
    edges.push_back(encode(kF32, n, Mode::kNearest));
  }
  check(rows, make_inputs(edges, 29), false);
  check(rows, make_inputs(float_edges(kF32), 30));
  check(rows, pack_halves(make_inputs(float_edges(kF16), 31)));
}

/// A float's place among those of its kind: the fraction's bits, the exponent of the smallest
/// normal, the code of the largest, and of NaN.
struct Target {
  const char* name;
  int fraction, lowest;
  u64 largest, nan;
  int bits;
};

/// Toward zero, and one further where adding the random bits, which begin where what is cut off
/// does, to that carries. Beyond the largest is `most`.
u64 rounded_by_bits(const Target& to, u32 value, u32 random, u64 most) {
  const u64 sign = u64{value >> 31} << (to.bits - 1);
  const u32 size = value & 0x7fffffff;
  if (size > 0x7f800000) return to.nan;
  if (size == 0x7f800000) return sign | most;
  const int exponent = std::max(static_cast<int>(size >> 23), 1) - 127;
  const u128 digits = (size & 0x7fffff) | (size >> 23 == 0 ? 0 : 0x800000);
  // The value is digits * 2^(exponent - 23); one step of the result is 2^(place - fraction).
  const int place = std::max(exponent, to.lowest);
  const int cut = 23 - to.fraction + place - exponent;
  u64 steps = 0;
  if (cut < 64) {
    const u128 part = digits & ((u128{1} << cut) - 1);
    steps = static_cast<u64>(digits >> cut);
    if ((part << 16) + (u128{random} << cut) >= u128{1} << (cut + 16)) ++steps;
  }
  // The hidden bit of a normal number counts as one of its exponent.
  const u64 code = steps + (static_cast<u64>(place - to.lowest) << to.fraction);
  return sign | std::min(code, most);
}

TEST(SemanticsConvert, ByRandomBits) {
  constexpr Target kHalves[] = {{"f16x2", 10, -14, 0x7bff, 0x7fff, 16},
                                {"bf16x2", 7, -126, 0x7f7f, 0x7fff, 16}};
  constexpr Target kParts[] = {{"e4m3x4", 3, -6, 0x7e, 0x7f, 8},
                               {"e5m2x4", 2, -14, 0x7b, 0x7f, 8},
                               {"e2m1x4", 1, 0, 0x7, 0x7, 4},
                               {"e2m3x4", 3, 0, 0x1f, 0x1f, 6},
                               {"e3m2x4", 2, -2, 0x1f, 0x1f, 6}};
  const auto positive = [](u32 value, bool relu) {
    return relu && value >> 31 != 0 && (value & 0x7fffffff) <= 0x7f800000 ? 0 : value;
  };
  std::vector<Row> rows;
  for (const bool relu : {false, true}) {
    for (const Target& to : kHalves) {
      for (const bool finite : {false, true}) {
        const auto half = [=](u32 value, u32 random) {
          if (to.bits == 16 && to.fraction == 10) random = (random & 0x1fff) << 3;
          return rounded_by_bits(to, positive(value, relu), random & 0xffff,
                                 finite ? to.largest : to.largest + 1);
        };
        rows.push_back(row(fmt::format("cvt.rs{}{}.{}.f32 %d, %a, %b, %c;", relu ? ".relu" : "",
                                       finite ? ".satfinite" : "", to.name),
                           [=](u32 a, u32 b, u32 c) {
                             return static_cast<u32>(half(a, c >> 16) << 16 | half(b, c));
                           }));
      }
    }
    for (const Target& to : kParts) {
      const bool nibbles = to.bits == 4;
      const auto code = [=](u32 value, u32 random) {
        return rounded_by_bits(to, positive(value, relu), random, to.largest);
      };
      rows.push_back(row(
          fmt::format("not.b32 %t0, %a; not.b32 %t1, %b; cvt.rs{}.satfinite.{}.f32 {}, "
                      "{{%a, %b, %t0, %t1}}, %c;{}",
                      relu ? ".relu" : "", to.name, nibbles ? "%h" : "%d",
                      nibbles ? " cvt.u32.u16 %d, %h;" : ""),
          [=](u32 a, u32 b, u32 c) {
            const u32 high = nibbles ? (c >> 16 & 0xff00) | (c >> 8 & 0xff) : c >> 16;
            const u32 low = nibbles ? (c >> 8 & 0xff00) | (c & 0xff) : c & 0xffff;
            const int place = nibbles ? 4 : 8;
            const u64 upper = code(a, high) << place | code(b, high);
            return static_cast<u32>(upper << 2 * place | code(~a, low) << place | code(~b, low));
          }));
    }
  }
  std::vector<u64> edges = meeting_edges(kF32, kF16);
  for (const u64 x : {0x3fc00000, 0x40c00000, 0x43e80000, 0x477fe001, 0x7f7fffff})
    edges.push_back(x);
  check(rows, make_inputs(edges, 36));
}

/// .satfinite: what is above the largest becomes that, and infinity, too; NaN stays.
u64 finite(Format f, u64 bits) {
  const u64 size = bits & (f.sign() - 1);
  return size == f.infinity() ? bits - 1 : bits;
}

TEST(SemanticsConvert, Finite) {
  std::vector<Row> rows;
  for (const Float& to : {kHalf, kBfloat}) {
    for (int m = 0; m < 2; ++m) {
      for (const bool relu : {false, true}) {
        const auto one = [=, f = to.format](u64 bits) {
          const u64 value = finite(f, encode(f, decode(kF32, bits), kModes[m]));
          return relu ? rectified(f, value) : value;
        };
        const std::string head =
            fmt::format("cvt.{}{}.satfinite.{}", kModeNames[m], relu ? ".relu" : "", to.name);
        rows.push_back(row(head + ".f32 %h, %a;", [=](u32 a) {
                         return static_cast<u16>(one(a));
                       }).floats(to.format));
        rows.push_back(row(head + "x2.f32 %d, %a, %b;", [=](u32 a, u32 b) {
                         return static_cast<u32>(one(a) << 16 | one(b));
                       }).floats(to.format));
      }
    }
  }
  for (const auto& [name, mode] :
       {std::pair{"rna", Mode::kTiesAway}, {"rn", Mode::kNearest}, {"rz", Mode::kZero}}) {
    rows.push_back(
        row(fmt::format("cvt.{}.satfinite.tf32.f32 %d, %a;", name), [mode = mode](u32 a) {
          return static_cast<u32>(finite(kTf32, encode(kTf32, decode(kF32, a), mode)) << 13);
        }).floats(kF32));
  }
  check(rows, make_inputs(meeting_edges(kF32, kF16), 33), false);
  check(rows, make_inputs(meeting_edges(kF32, kBf16), 34));
}

/// A float of 4 or 6 bits: all codes are numbers.
struct Small {
  const char* name;
  int bits, fraction, bias;
  [[nodiscard]] double value(u64 code) const {
    const u64 size = code & ((u64{1} << (bits - 1)) - 1);
    const auto field = static_cast<int>(size >> fraction);
    const double rest = static_cast<double>(size & ((u64{1} << fraction) - 1));
    const double steps = rest + (field == 0 ? 0 : std::ldexp(1, fraction));
    const double magnitude = std::ldexp(steps, std::max(field, 1) - bias - fraction);
    return (code >> (bits - 1) & 1) != 0 ? -magnitude : magnitude;
  }
  /// The nearest of all, of two the even one; NaN is the largest.
  [[nodiscard]] u64 code(double number) const {
    const u64 largest = (u64{1} << (bits - 1)) - 1;
    if (std::isnan(number)) return largest;
    u64 best = 0;
    while (best < largest) {
      const double middle = (value(best) + value(best + 1)) / 2;
      if (std::fabs(number) < middle || (std::fabs(number) == middle && best % 2 == 0)) break;
      ++best;
    }
    return best | (std::signbit(number) ? u64{1} << (bits - 1) : 0);
  }
};
constexpr Small kSmalls[] = {{"e2m1x2", 4, 1, 1}, {"e2m3x2", 6, 3, 1}, {"e3m2x2", 6, 2, 3}};

TEST(SemanticsConvert, SmallFloats) {
  std::vector<Row> rows;
  std::vector<u64> edges = float_edges(kF32);
  for (const Small& small : kSmalls) {
    const bool nibbles = small.bits == 4;
    const int place = nibbles ? 4 : 8;
    for (const bool relu : {false, true}) {
      const auto code = [=](u32 bits) {
        double value = to_double(kF32, bits);
        if (relu && !(value > 0) && !std::isnan(value)) value = 0;
        return small.code(value);
      };
      const std::string head =
          fmt::format("cvt.rn.satfinite{}.{}.f32 ", relu ? ".relu" : "", small.name);
      rows.push_back(
          row(nibbles ? "{ .reg .b8 %y; " + head + "%y, %a, %b; mov.b16 %h, {%y, 0}; }"
                      : head + "%h, %a, %b;",
              [=](u32 a, u32 b) { return static_cast<u16>(code(a) << place | code(b)); }));
      const std::string halves =
          fmt::format("cvt.rn.satfinite{}.{}.f16x2 ", relu ? ".relu" : "", small.name);
      rows.push_back(row(nibbles ? "{ .reg .b8 %y; " + halves + "%y, %a; mov.b16 %h, {%y, 0}; }"
                                 : halves + "%h, %a;",
                         [=](u32 a) {
                           const auto half = [&](u32 bits) {
                             const Number n = decode(kF16, bits & 0xffff);
                             return code(static_cast<u32>(encode(kF32, n, Mode::kNearest)));
                           };
                           return static_cast<u16>(half(a >> 16) << place | half(a));
                         }));
      const std::string back = fmt::format("cvt.rn{}.f16x2.{} ", relu ? ".relu" : "", small.name);
      rows.push_back(row(nibbles ? "{ .reg .b8 %y, %z; mov.b16 {%y, %z}, %ha; " + back + "%d, %z; }"
                                 : back + "%d, %ha;",
                         [=](u16 a) {
                           const auto half = [&](u64 bits) {
                             const double value = small.value(bits);
                             Number n = integer(static_cast<i64>(std::fabs(value) * 64));
                             n.exponent = -6;
                             n.negative = std::signbit(value);
                             const u64 out = encode(kF16, n, Mode::kNearest);
                             return relu ? rectified(kF16, out) : out;
                           };
                           const u32 codes = nibbles ? a >> 8 : a;
                           return static_cast<u32>(half(codes >> place) << 16 | half(codes));
                         }));
    }
    for (u64 c = 0; c < u64{1} << (small.bits - 1); ++c) {
      const double middle = (small.value(c) + small.value(c + 1)) / 2;
      for (const double x : {small.value(c), -small.value(c), middle, -middle}) {
        const auto bits = std::bit_cast<u32>(static_cast<float>(x));
        for (const u32 near : {bits - 1, bits, bits + 1}) edges.push_back(near);
      }
    }
  }
  check(rows, make_inputs(edges, 35), false);
  check(rows, make_inputs(integer_edges(), 36));
}

/// ue8m0: powers of two from 2^-127 on by their exponents; all ones are NaN.
TEST(SemanticsConvert, Exponents) {
  std::vector<Row> rows;
  for (const bool up : {false, true}) {
    for (const bool saturate : {false, true}) {
      const auto code = [=](Format f, u64 bits) -> u64 {
        if (f.is_nan(bits)) return 0xff;
        const double value = std::fabs(to_double(f, bits));
        u64 best = 0;
        // The last of those that are not above it, or the first that is not below it.
        while (best < 0xff && (up ? std::ldexp(1, static_cast<int>(best) - 127) < value
                                  : std::ldexp(1, static_cast<int>(best) - 126) <= value)) {
          ++best;
        }
        return saturate ? std::min<u64>(best, 0xfe) : best;
      };
      const std::string head =
          fmt::format("cvt.{}{}.ue8m0x2", up ? "rp" : "rz", saturate ? ".satfinite" : "");
      rows.push_back(row(head + ".f32 %h, %a, %b;", [=](u32 a, u32 b) {
        return static_cast<u16>(code(kF32, a) << 8 | code(kF32, b));
      }));
      rows.push_back(row(head + ".bf16x2 %h, %a;", [=](u32 a) {
        return static_cast<u16>(code(kBf16, a >> 16) << 8 | code(kBf16, a & 0xffff));
      }));
    }
  }
  rows.push_back(row("cvt.rn.bf16x2.ue8m0x2 %d, %ha;", [](u16 a) {
                   const auto power = [](u64 bits) {
                     Number n = integer(1);
                     n.exponent = static_cast<int>(bits) - 127;
                     n.nan = bits == 0xff;
                     return encode(kBf16, n, Mode::kNearest);
                   };
                   return static_cast<u32>(power(a >> 8) << 16 | power(a & 0xff));
                 }).floats(kBf16));
  check(rows, make_inputs(float_edges(kF32), 37), false);
  check(rows, pack_halves(make_inputs(float_edges(kBf16), 38)));
}

}  // namespace
}  // namespace braid::cpu_test
