#include "cpu/semantics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cpu/cpu_harness.h"

namespace braid::cpu_test::semantics {
namespace {

int width(u128 value) {
  const auto high = static_cast<u64>(value >> 64);
  const auto low = static_cast<u64>(value);
  if (high != 0) return 128 - __builtin_clzll(high);
  return low == 0 ? 0 : 64 - __builtin_clzll(low);
}

/// value >> by, with its last bit set if any bit was lost.
u128 shift_sticky(u128 value, int by) {
  if (by <= 0) return value;
  if (by > 127) return value != 0 ? 1 : 0;
  const u128 kept = value >> by;
  return kept | ((kept << by) != value ? 1 : 0);
}

/// The same value with a mantissa of 126 bits.
Number normal(Number n) {
  const int shift = 126 - width(n.size);
  n.size = shift >= 0 ? n.size << shift : shift_sticky(n.size, -shift);
  n.exponent -= shift;
  return n;
}

Number not_a_number() {
  Number n;
  n.nan = true;
  return n;
}

/// Whether what was cut off `kept` (0 none, 1 below the half, 2 the half, 3 above) counts.
bool rounds_up(Mode mode, bool negative, bool odd, int rest) {
  switch (mode) {
    case Mode::kNearest:
      return rest == 3 || (rest == 2 && odd);
    case Mode::kTiesAway:
      return rest >= 2;
    case Mode::kZero:
      return false;
    case Mode::kDown:
      return negative && rest != 0;
    case Mode::kUp:
      return !negative && rest != 0;
  }
  return false;
}

/// size / 2^by as an integer.
u128 round_shift(u128 size, int by, Mode mode, bool negative) {
  if (by <= 0) return size << -by;
  if (by > 127) return rounds_up(mode, negative, false, size == 0 ? 0 : 1) ? 1 : 0;
  const u128 kept = size >> by;
  const u128 rest = size - (kept << by);
  const u128 half = u128{1} << (by - 1);
  const int kind = rest == 0 ? 0 : rest < half ? 1 : rest == half ? 2 : 3;
  return kept + (rounds_up(mode, negative, (kept & 1) != 0, kind) ? 1 : 0);
}

}  // namespace

Number decode(Format format, u64 bits) {
  bits &= format.sign() | (format.sign() - 1);
  Number n;
  n.negative = (bits & format.sign()) != 0;
  const u64 size = bits & (format.sign() - 1);
  if (size >= format.infinity()) {
    n.infinite = size == format.infinity();
    n.nan = !n.infinite;
    return n;
  }
  const int field = static_cast<int>(size >> format.fraction_bits);
  const u64 hidden = u64{1} << format.fraction_bits;
  n.size = (size & (hidden - 1)) | (field != 0 ? hidden : 0);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  n.exponent = std::max(field, 1) - bias - format.fraction_bits;
  return n;
}

u64 encode(Format format, const Number& n, Mode mode) {
  if (n.nan) return format.sign() - 1;
  const u64 sign = n.negative ? format.sign() : 0;
  if (n.infinite) return sign | format.infinity();
  if (n.size == 0) return sign;
  const int lowest = 2 - (1 << (format.exponent_bits - 1));
  const int top = std::max(n.exponent + width(n.size) - 1, lowest);
  const u128 kept = round_shift(n.size, top - format.fraction_bits - n.exponent, mode, n.negative);
  const u64 bits =
      static_cast<u64>(kept) + (static_cast<u64>(top - lowest) << format.fraction_bits);
  if (bits < format.infinity()) return sign | bits;
  const bool to_largest = mode == Mode::kZero || (mode == Mode::kDown && !n.negative) ||
                          (mode == Mode::kUp && n.negative);
  return sign | (format.infinity() - (to_largest ? 1 : 0));
}

Number integer(i128 value) {
  Number n;
  n.negative = value < 0;
  n.size = n.negative ? -static_cast<u128>(value) : static_cast<u128>(value);
  return n;
}

i128 to_integer(const Number& n, Mode mode, i128 low, i128 high) {
  if (n.infinite || (n.size != 0 && n.exponent + width(n.size) > 100)) {
    return n.negative ? low : high;
  }
  const auto size = static_cast<i128>(round_shift(n.size, -n.exponent, mode, n.negative));
  return std::clamp(n.negative ? -size : size, low, high);
}

Number negate(Number a) {
  a.negative = !a.negative;
  return a;
}

Number add(const Number& a, const Number& b, Mode mode) {
  if (a.nan || b.nan) return not_a_number();
  if (a.infinite || b.infinite) {
    if (a.infinite && b.infinite && a.negative != b.negative) return not_a_number();
    return a.infinite ? a : b;
  }
  Number zero;
  zero.negative = a.negative == b.negative ? a.negative : mode == Mode::kDown;
  if (a.size == 0 && b.size == 0) return zero;
  if (a.size == 0) return b;
  if (b.size == 0) return a;
  Number large = normal(a);
  Number small = normal(b);
  if (large.exponent < small.exponent) std::swap(large, small);
  small.size = shift_sticky(small.size, large.exponent - small.exponent);
  if (large.negative == small.negative) {
    large.size += small.size;
    return large;
  }
  if (large.size == small.size) return zero;
  if (large.size < small.size) std::swap(large.size, small.size), large.negative = small.negative;
  large.size -= small.size;
  return large;
}

Number multiply(const Number& a, const Number& b) {
  if (a.nan || b.nan) return not_a_number();
  Number n;
  n.negative = a.negative != b.negative;
  if (a.infinite || b.infinite) {
    if ((!a.infinite && a.size == 0) || (!b.infinite && b.size == 0)) return not_a_number();
    n.infinite = true;
    return n;
  }
  n.size = a.size * b.size;
  n.exponent = a.exponent + b.exponent;
  return n;
}

Number divide(const Number& a, const Number& b) {
  if (a.nan || b.nan || (a.infinite && b.infinite)) return not_a_number();
  Number n;
  n.negative = a.negative != b.negative;
  if (b.infinite) return n;
  if (a.infinite || b.size == 0) {
    if (!a.infinite && a.size == 0) return not_a_number();
    n.infinite = true;
    return n;
  }
  if (a.size == 0) return n;
  const Number top = normal(a);
  n.size = top.size / b.size;
  if (n.size * b.size != top.size) n.size |= 1;
  n.exponent = top.exponent - b.exponent;
  return n;
}

Number square_root(const Number& a) {
  if (a.nan || (a.negative && (a.infinite || a.size != 0))) return not_a_number();
  if (a.infinite || a.size == 0) return a;
  Number n = normal(a);
  if (n.exponent % 2 != 0) {
    n.size <<= 1;
    --n.exponent;
  }
  u128 root = 0;
  for (u128 bit = u128{1} << 63; bit != 0; bit >>= 1) {
    if ((root | bit) * (root | bit) <= n.size) root |= bit;
  }
  n.size = (root << 1) | (root * root != n.size ? 1 : 0);
  n.exponent = n.exponent / 2 - 1;
  return n;
}

int order(const Number& a, const Number& b) {
  if (a.infinite || b.infinite) {
    const auto rank = [](const Number& n) { return n.infinite ? (n.negative ? -1 : 1) : 0; };
    return rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0;
  }
  const Number difference = add(a, negate(b), Mode::kNearest);
  return difference.size == 0 ? 0 : difference.negative ? -1 : 1;
}

u64 flush(Format format, u64 bits) {
  const u64 size = bits & (format.sign() - 1);
  return (size >> format.fraction_bits) == 0 ? bits & format.sign() : bits;
}

u64 saturate(Format format, u64 bits) {
  if (format.is_nan(bits) || (bits & format.sign()) != 0) return 0;
  return std::min(bits, format.one());
}

double to_double(Format format, u64 bits) {
  const Number n = decode(format, bits);
  if (n.nan) return NAN;
  const double size = n.infinite ? INFINITY : std::ldexp(static_cast<double>(n.size), n.exponent);
  return n.negative ? -size : size;
}

Inputs make_inputs(const std::vector<u64>& edges, u64 seed) {
  Inputs in;
  in.seed = seed;
  Random random(seed);
  const auto edge = [&] { return edges[random.next() % edges.size()]; };
  constexpr std::size_t kMostPairs = 1000;
  const bool paired = edges.size() * edges.size() <= kMostPairs;
  for (const u64 x : edges) {
    for (std::size_t k = 0; k < (paired ? 3 * edges.size() : 24); ++k) {
      in.a.push_back(x);
      in.b.push_back(paired ? edges[k % edges.size()] : edge());
      in.c.push_back(edge());
    }
  }
  const std::size_t end = (in.a.size() + 600) / 64 * 64;
  const auto mixed = [&] {
    const u64 kind = random.next();
    const u64 bits = random.next();
    return kind % 4 == 0 ? edge() : kind % 4 == 1 ? bits >> (kind / 4 % 64) : bits;
  };
  while (in.a.size() < end) {
    in.a.push_back(mixed());
    in.b.push_back(mixed());
    in.c.push_back(mixed());
  }
  return in;
}

Inputs pack_halves(const Inputs& inputs, int bits) {
  Inputs out = inputs;
  const std::size_t n = inputs.size();
  const u64 mask = (u64{1} << bits) - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t other = (i * 5 + 3) % n;
    out.a[i] = (inputs.a[i] & mask) | (inputs.a[other] & mask) << bits;
    out.b[i] = (inputs.b[i] & mask) | (inputs.b[other] & mask) << bits;
    out.c[i] = (inputs.c[i] & mask) | (inputs.c[other] & mask) << bits;
  }
  return out;
}

std::vector<u64> integer_edges() {
  return {0,
          1,
          2,
          3,
          7,
          15,
          16,
          17,
          31,
          32,
          33,
          63,
          64,
          0x7f,
          0x80,
          0xff,
          0x100,
          0x7fff,
          0x8000,
          0xffff,
          0x7fffffff,
          0x80000000,
          0xffffffff,
          0x100000000,
          0x7fffffffffffffff,
          0x8000000000000000,
          0xffffffffffff8000,
          0xffffffff80000000,
          0xfffffffffffffffe,
          0xffffffffffffffff};
}

std::vector<u64> float_edges(Format format) {
  const u64 step = u64{1} << format.fraction_bits;
  const u64 one = format.one();
  const u64 infinity = format.infinity();
  // Zero, subnormals, the smallest normals, around 1 and small integers, where 1.5 * (1 + ulp) lies
  // between two values, the largest, infinity, a signalling and two quiet NaN.
  std::vector<u64> edges = {0,
                            1,
                            step / 2 + 1,
                            step - 1,
                            step,
                            step + 1,
                            one - step,
                            one - 1,
                            one,
                            one + 1,
                            one + step / 2,
                            one + step,
                            one + step + step / 4,
                            infinity - 1,
                            infinity,
                            infinity + 1,
                            infinity + step / 2,
                            format.sign() - 1};
  const std::size_t count = edges.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 != 2) edges.push_back(edges[i] | format.sign());
  }
  return edges;
}

std::string spell(const std::string& text, int bits, const std::string& type) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '@') {
      out += type;
    } else if (text[i] == '$') {
      char name = text[++i];
      if (name == 'x' || name == 'y') {
        out += fmt::format("%{}{}", bits == 64 ? 'T' : bits == 32 ? 't' : 's', name - 'x');
        continue;
      }
      if (bits == 64) name = static_cast<char>(name - 'a' + 'A');
      out += bits != 16 ? fmt::format("%{}", name) : name == 'd' ? "%h" : fmt::format("%h{}", name);
    } else {
      out += text[i];
    }
  }
  return out;
}

namespace {

std::string kernel(const std::vector<Row>& rows, std::size_t first, std::size_t last, std::size_t n,
                   bool one_by_one) {
  std::string body;
  for (std::size_t r = first; r < last; ++r) {
    const int bits = rows[r].bits;
    const char* result = bits == 64 ? "%D" : bits == 16 ? "%h" : "%d";
    body += fmt::format("{{ {} {} st.global.b{} [%O+{}], {}; }}\n", rows[r].text,
                        bits == 1 ? "selp.b32 %d, 1, 0, %p;" : "",
                        std::max(bits == 1 ? 32 : bits, 16), (r - first) * n * 8, result);
  }
  return fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b64 %A, %B, %C, %D, %O, %I, %T<8>;
.reg .b32 %a, %b, %c, %d, %i, %m, %t<8>;
.reg .b16 %ha, %hb, %hc, %h, %s<8>;
.reg .pred %p, %q<4>;
.shared .align 32 .b8 M[2048];
.local .align 32 .b8 L[32];
mov.u32 %m, M;
mov.u32 %t0, %tid.x;
mad.lo.u32 %m, %t0, 32, %m;
ld.param.u64 %O, [out];
ld.param.u64 %I, [in];
mov.u32 %i, %ctaid.x;
{}
mul.wide.u32 %D, %i, 8;
add.s64 %O, %O, %D;
add.s64 %I, %I, %D;
ld.global.b64 %A, [%I];
ld.global.b64 %B, [%I+{}];
ld.global.b64 %C, [%I+{}];
cvt.u32.u64 %a, %A;
cvt.u32.u64 %b, %B;
cvt.u32.u64 %c, %C;
cvt.u16.u64 %ha, %A;
cvt.u16.u64 %hb, %B;
cvt.u16.u64 %hc, %C;
{}ret;
}}
)",
                     one_by_one ? ""
                                : "mov.u32 %t0, %ntid.x; mov.u32 %t1, %tid.x;\n"
                                  "mad.lo.u32 %i, %i, %t0, %t1;",
                     8 * n, 16 * n, body);
}

bool agrees(const Row& row, u64 got, u64 want) {
  if (got == want) return true;
  if (row.part_bits == 0) return false;
  for (int at = 0; at < row.bits; at += row.part_bits) {
    const u64 mask = ~0ULL >> (64 - row.part_bits);
    const u64 x = (got >> at) & mask;
    const u64 y = (want >> at) & mask;
    if (x == y || (row.format.is_nan(x) && row.format.is_nan(y))) continue;
    if (row.relative == 0 && row.absolute == 0) return false;
    const double dx = to_double(row.format, x);
    const double dy = to_double(row.format, y);
    if (!(std::fabs(dx - dy) <= std::max(row.relative * std::fabs(dy), row.absolute))) return false;
  }
  return true;
}

void check_rows(const std::vector<Row>& rows, std::size_t first, std::size_t last,
                const Inputs& inputs, bool one_by_one) {
  const std::size_t n = inputs.size();
  Bench bench = Bench::from_ptx(kernel(rows, first, last, n, one_by_one));
  std::vector<u64> all = inputs.a;
  all.insert(all.end(), inputs.b.begin(), inputs.b.end());
  all.insert(all.end(), inputs.c.begin(), inputs.c.end());
  const u64 out = bench.upload(std::vector<u64>((last - first) * n, 0xa5a5a5a5a5a5a5a5));
  const auto blocks = static_cast<std::uint32_t>(one_by_one ? n : n / 64);
  bench.run({blocks}, {one_by_one ? 32U : 64U}, 0, out, bench.upload(all));
  const auto got = bench.download<u64>(out, (last - first) * n);
  for (std::size_t r = first; r < last; ++r) {
    const Row& row = rows[r];
    const u64 mask = ~0ULL >> (row.bits == 1 ? 32 : 64 - row.bits);
    std::size_t wrong = 0;
    std::string example;
    for (std::size_t i = 0; i < n; ++i) {
      const u64 value = got[(r - first) * n + i] & mask;
      const u64 want = row.want(inputs, i) & mask;
      if (agrees(row, value, want) || wrong++ != 0) continue;
      example = fmt::format("{:#x}, {:#x}, {:#x} give {:#x} instead of {:#x}", inputs.a[i],
                            inputs.b[i], inputs.c[i], value, want);
    }
    EXPECT_EQ(wrong, 0) << row.text << (one_by_one ? " (uniform)" : "") << ", seed " << inputs.seed
                        << ": " << example;
  }
}

}  // namespace

void check(const std::vector<Row>& rows, const Inputs& inputs, bool one_by_one) {
  ASSERT_EQ(inputs.size() % 64, 0);
  // Longer blocks of code take the code generator more than their share of time.
  constexpr std::size_t kPerKernel = 32;
  for (std::size_t first = 0; first < rows.size(); first += kPerKernel) {
    const std::size_t last = std::min(rows.size(), first + kPerKernel);
    check_rows(rows, first, last, inputs, false);
    if (one_by_one) check_rows(rows, first, last, inputs, true);
  }
}

}  // namespace braid::cpu_test::semantics
