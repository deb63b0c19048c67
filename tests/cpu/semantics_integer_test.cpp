// Integer, bit and comparison instructions against the statements of the PTX manual.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "braid/error.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// The widest type of the same signedness.
template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, i128, u128>;

template <class T>
constexpr int kWidth = 8 * static_cast<int>(sizeof(T));

template <class T, class F>
void typed(std::vector<Row>& rows, const std::string& text, F function) {
  const std::string name = fmt::format("{}{}", std::is_signed_v<T> ? 's' : 'u', kWidth<T>);
  rows.push_back(row(spell(text, kWidth<T>, name), function));
}
/// For instructions on .b types.
template <class T, class F>
void untyped(std::vector<Row>& rows, const std::string& text, F function) {
  rows.push_back(row(spell(text, kWidth<T>, fmt::format("b{}", kWidth<T>)), function));
}

template <class T>
void arithmetic(std::vector<Row>& rows) {
  using W = Wide<T>;
  typed<T>(rows, "add.@ $d, $a, $b;", [](T a, T b) { return static_cast<T>(W(a) + W(b)); });
  typed<T>(rows, "sub.@ $d, $a, $b;", [](T a, T b) { return static_cast<T>(W(a) - W(b)); });
  typed<T>(rows, "mul.lo.@ $d, $a, $b;", [](T a, T b) { return static_cast<T>(W(a) * W(b)); });
  typed<T>(rows, "mul.hi.@ $d, $a, $b;",
           [](T a, T b) { return static_cast<T>(W(a) * W(b) >> kWidth<T>); });
  typed<T>(rows, "mad.lo.@ $d, $a, $b, $c;",
           [](T a, T b, T c) { return static_cast<T>(W(a) * W(b) + W(c)); });
  typed<T>(rows, "mad.hi.@ $d, $a, $b, $c;",
           [](T a, T b, T c) { return static_cast<T>((W(a) * W(b) >> kWidth<T>)+W(c)); });
  // Division by zero is undefined.
  const std::string odd = fmt::format("or.b{} $x, $b, 1; ", kWidth<T>);
  typed<T>(rows, odd + "div.@ $d, $a, $x;",
           [](T a, T b) { return static_cast<T>(W(a) / W(static_cast<T>(b | 1))); });
  typed<T>(rows, odd + "rem.@ $d, $a, $x;",
           [](T a, T b) { return static_cast<T>(W(a) % W(static_cast<T>(b | 1))); });
  typed<T>(rows, "min.@ $d, $a, $b;", [](T a, T b) { return std::min(a, b); });
  typed<T>(rows, "max.@ $d, $a, $b;", [](T a, T b) { return std::max(a, b); });
  typed<T>(rows, "sad.@ $d, $a, $b, $c;", [](T a, T b, T c) {
    return static_cast<T>(W(c) + (a < b ? W(b) - W(a) : W(a) - W(b)));
  });
  typed<T>(rows, "shr.@ $d, $a, %b;", [](T a, u32 b) {
    const int by = static_cast<int>(std::min<u32>(b, kWidth<T>));
    return static_cast<T>(W(a) >> by);
  });
  if (std::is_signed_v<T>) {
    typed<T>(rows, "abs.@ $d, $a;", [](T a) { return static_cast<T>(a < 0 ? -W(a) : W(a)); });
    typed<T>(rows, "neg.@ $d, $a;", [](T a) { return static_cast<T>(-W(a)); });
  }
}

template <class T, class Twice>
void widening(std::vector<Row>& rows) {
  const bool small = kWidth<T> == 16;
  typed<T>(rows, std::string("mul.wide.@ ") + (small ? "%d" : "%D") + ", $a, $b;",
           [](T a, T b) { return static_cast<Twice>(Wide<T>(a) * Wide<T>(b)); });
  typed<T>(rows, std::string("mad.wide.@ ") + (small ? "%d, $a, $b, %c;" : "%D, $a, $b, %C;"),
           [](T a, T b, Twice c) { return static_cast<Twice>(Wide<T>(a) * Wide<T>(b) + c); });
}

TEST(SemanticsInteger, Arithmetic) {
  std::vector<Row> rows;
  arithmetic<u16>(rows);
  arithmetic<i16>(rows);
  arithmetic<u32>(rows);
  arithmetic<i32>(rows);
  arithmetic<u64>(rows);
  arithmetic<i64>(rows);
  widening<u16, u32>(rows);
  widening<i16, i32>(rows);
  widening<u32, u64>(rows);
  widening<i32, i64>(rows);
  check(rows, make_inputs(integer_edges(), 1));
}

i32 saturated(i64 value) { return static_cast<i32>(std::clamp<i64>(value, INT32_MIN, INT32_MAX)); }
i64 low_24(i32 value) { return static_cast<i32>(static_cast<u32>(value) << 8) >> 8; }
u64 low_24(u32 value) { return value & 0xffffffU; }

template <class T>
T dot4(u32 a, u32 b, u32 c, bool signed_a, bool signed_b) {
  const auto byte = [](u32 v, int k, bool is_signed) {
    const auto bits = static_cast<u8>(v >> (8 * k));
    return is_signed ? static_cast<i32>(static_cast<i8>(bits)) : static_cast<i32>(bits);
  };
  u32 sum = c;
  for (int k = 0; k < 4; ++k) sum += static_cast<u32>(byte(a, k, signed_a) * byte(b, k, signed_b));
  return static_cast<T>(sum);
}
u32 dot2(u32 a, u32 b, u32 c, bool signed_a, bool signed_b, int first) {
  u32 sum = c;
  for (int k = 0; k < 2; ++k) {
    const auto half = static_cast<u16>(a >> (16 * k));
    const auto byte = static_cast<u8>(b >> (8 * (first + k)));
    const i64 x = signed_a ? i64{static_cast<i16>(half)} : i64{half};
    const i64 y = signed_b ? i64{static_cast<i8>(byte)} : i64{byte};
    sum += static_cast<u32>(x * y);
  }
  return sum;
}

TEST(SemanticsInteger, SaturationCarriesAndDotProducts) {
  std::vector<Row> rows = {
      row("add.sat.s32 %d, %a, %b;", [](i32 a, i32 b) { return saturated(i64{a} + b); }),
      row("sub.sat.s32 %d, %a, %b;", [](i32 a, i32 b) { return saturated(i64{a} - b); }),
      row("mad.hi.sat.s32 %d, %a, %b, %c;",
          [](i32 a, i32 b, i32 c) { return saturated((i64{a} * b >> 32) + c); }),
      row("mul24.lo.s32 %d, %a, %b;",
          [](i32 a, i32 b) { return static_cast<i32>(low_24(a) * low_24(b)); }),
      row("mul24.hi.s32 %d, %a, %b;",
          [](i32 a, i32 b) { return static_cast<i32>(low_24(a) * low_24(b) >> 16); }),
      row("mul24.lo.u32 %d, %a, %b;",
          [](u32 a, u32 b) { return static_cast<u32>(low_24(a) * low_24(b)); }),
      row("mul24.hi.u32 %d, %a, %b;",
          [](u32 a, u32 b) { return static_cast<u32>(low_24(a) * low_24(b) >> 16); }),
      row("mad24.lo.u32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return static_cast<u32>(low_24(a) * low_24(b) + c); }),
      row("mad24.hi.sat.s32 %d, %a, %b, %c;",
          [](i32 a, i32 b, i32 c) {
            return saturated(static_cast<i32>(low_24(a) * low_24(b) >> 16) + i64{c});
          }),
      // Wide sums in pieces: of 64 bits of two, of 96 of three.
      row("mov.b64 {%t0, %t1}, %A; mov.b64 {%t2, %t3}, %B;"
          "add.cc.u32 %t0, %t0, %t2; addc.u32 %t1, %t1, %t3; mov.b64 %D, {%t0, %t1};",
          [](u64 a, u64 b) { return a + b; }),
      row("mov.b64 {%t0, %t1}, %A; mov.b64 {%t2, %t3}, %B;"
          "sub.cc.u32 %t0, %t0, %t2; subc.u32 %t1, %t1, %t3; mov.b64 %D, {%t0, %t1};",
          [](u64 a, u64 b) { return a - b; }),
      row("add.cc.u64 %T0, %A, %B; addc.cc.u64 %T1, %A, %C; addc.u64 %D, 0, 0;",
          [](u64 a, u64 b, u64 c) {
            const u64 first = static_cast<u64>((u128{a} + b) >> 64);
            return static_cast<u64>((u128{a} + c + first) >> 64);
          }),
      row("sub.cc.s64 %T0, %A, %B; subc.cc.s64 %T1, %A, %C; subc.s64 %D, 0, 0;",
          [](u64 a, u64 b, u64 c) {
            const u64 first = a < b ? 1 : 0;
            return u128{a} < u128{c} + first ? ~u64{0} : u64{0};
          }),
      row("mad.lo.cc.u32 %t0, %a, %b, %c; madc.hi.u32 %t1, %a, %b, 0; mov.b64 %D, {%t0, %t1};",
          [](u32 a, u32 b, u32 c) { return u64{a} * b + c; }),
      row("mad.lo.cc.u64 %T0, %A, %B, %C; madc.hi.cc.u64 %T1, %A, %B, %C; addc.u64 %D, %T1, 0;",
          [](u64 a, u64 b, u64 c) {
            const u128 low = u128{a} * b;
            const u64 first = static_cast<u64>((u128{static_cast<u64>(low)} + c) >> 64);
            const u128 high = u128{static_cast<u64>(low >> 64)} + c + first;
            return static_cast<u64>(high) + static_cast<u64>(high >> 64);
          }),
      // The flag of a difference is the carry of a + ~b + 1, as NVRTC's division of 128 bits uses
      // it.
      row("sub.cc.u32 %t0, %a, %b; addc.u32 %d, %c, 0;",
          [](u32 a, u32 b, u32 c) { return c + (a >= b ? 1 : 0); }),
      row("add.cc.u32 %t0, %a, %b; subc.cc.u32 %t1, %c, %a; addc.u32 %d, %t1, 0;",
          [](u32 a, u32 b, u32 c) {
            const u64 next = u64{c} + static_cast<u32>(~a) + ((u64{a} + b) >> 32);
            return static_cast<u32>(next) + static_cast<u32>(next >> 32);
          }),
      // 16 bits read the flag, and do not write it.
      row("add.cc.u32 %t0, %a, %b; addc.u16 %h, %ha, %hb;",
          [](u32 a, u32 b) {
            return static_cast<u16>(a + b + static_cast<u32>((u64{a} + b) >> 32));
          }),
      row("sub.cc.u32 %t0, %a, %b; subc.s16 %h, %ha, %hb;",
          [](u32 a, u32 b) { return static_cast<u16>(a - b - (a < b ? 1 : 0)); }),
      row("add.cc.u32 %t0, %a, %b; madc.lo.s16 %h, %ha, %hb, %hc;",
          [](u32 a, u32 b, u32 c) {
            return static_cast<u16>(a * b + c + static_cast<u32>((u64{a} + b) >> 32));
          }),
      row("add.cc.u32 %t0, %a, %b; madc.hi.u16 %h, %ha, %hb, %hc;",
          [](u32 a, u32 b, u32 c) {
            const u32 high = u32{static_cast<u16>(a)} * static_cast<u16>(b) >> 16;
            return static_cast<u16>(high + c + static_cast<u32>((u64{a} + b) >> 32));
          }),
      // A flag that crosses a branch and a predicate.
      row("add.cc.u32 %t0, %a, %b; setp.lt.s32 %q0, %c, 0; @%q0 bra over; sub.u32 %t1, %c, 1;"
          "over: @!%q0 addc.cc.u32 %t0, %t0, %t1; addc.u32 %d, 0, 0;",
          [](u32 a, u32 b, u32 c) {
            const u64 sum = u64{a} + b;
            if (static_cast<i32>(c) < 0) return static_cast<u32>(sum >> 32);
            return static_cast<u32>((u64{static_cast<u32>(sum)} + (c - 1) + (sum >> 32)) >> 32);
          }),
      row("dp4a.u32.u32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot4<u32>(a, b, c, false, false); }),
      row("dp4a.s32.u32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot4<i32>(a, b, c, true, false); }),
      row("dp4a.u32.s32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot4<i32>(a, b, c, false, true); }),
      row("dp4a.s32.s32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot4<i32>(a, b, c, true, true); }),
      row("dp2a.lo.s32.s32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot2(a, b, c, true, true, 0); }),
      row("dp2a.hi.s32.u32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot2(a, b, c, true, false, 2); }),
      row("dp2a.lo.u32.s32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot2(a, b, c, false, true, 0); }),
      row("dp2a.hi.u32.u32 %d, %a, %b, %c;",
          [](u32 a, u32 b, u32 c) { return dot2(a, b, c, false, false, 2); }),
  };
  check(rows, make_inputs(integer_edges(), 2));
}

template <class T>
T extract(T a, u32 position, u32 length) {
  constexpr u32 kTop = kWidth<T> - 1;
  position &= 0xff;
  length &= 0xff;
  const bool sign = std::is_signed_v<T> && length != 0 &&
                    ((static_cast<u64>(a) >> std::min(position + length - 1, kTop)) & 1) != 0;
  u64 out = 0;
  for (u32 i = 0; i <= kTop; ++i) {
    const bool inside = i < length && position + i <= kTop;
    const bool bit = inside ? ((static_cast<u64>(a) >> (position + i)) & 1) != 0 : sign;
    out |= u64{bit} << i;
  }
  return static_cast<T>(out);
}
template <class T>
T insert(T from, T into, u32 position, u32 length) {
  for (u32 i = 0; i < (length & 0xff) && (position & 0xff) + i < kWidth<T>; ++i) {
    const T bit = T{1} << ((position & 0xff) + i);
    into = (from >> i & 1) != 0 ? into | bit : into & ~bit;
  }
  return into;
}
template <class T>
u32 top_bit(T a, bool as_shift) {
  const auto sign = static_cast<int>(std::is_signed_v<T> && a < 0);
  for (int i = kWidth<T> - 1; i >= 0; --i) {
    const auto bit = static_cast<int>(static_cast<u64>(a) >> i & 1);
    if (bit != sign) return static_cast<u32>(as_shift ? kWidth<T> - 1 - i : i);
  }
  return ~0U;
}
template <class T>
void fields(std::vector<Row>& rows) {
  typed<T>(rows, "bfe.@ $d, $a, %b, %c;", extract<T>);
  typed<T>(rows, "bfind.@ %d, $a;", [](T a) { return top_bit(a, false); });
  typed<T>(rows, "bfind.shiftamt.@ %d, $a;", [](T a) { return top_bit(a, true); });
}
template <class T>
void bits(std::vector<Row>& rows) {
  untyped<T>(rows, "and.@ $d, $a, $b;", [](T a, T b) { return static_cast<T>(a & b); });
  untyped<T>(rows, "or.@ $d, $a, $b;", [](T a, T b) { return static_cast<T>(a | b); });
  untyped<T>(rows, "xor.@ $d, $a, $b;", [](T a, T b) { return static_cast<T>(a ^ b); });
  untyped<T>(rows, "not.@ $d, $a;", [](T a) { return static_cast<T>(~a); });
  untyped<T>(rows, "cnot.@ $d, $a;", [](T a) { return static_cast<T>(a == 0 ? 1 : 0); });
  untyped<T>(rows, "shl.@ $d, $a, %b;",
             [](T a, u32 b) { return static_cast<T>(b >= kWidth<T> ? 0 : a << b); });
  untyped<T>(rows, "shr.@ $d, $a, %b;",
             [](T a, u32 b) { return static_cast<T>(b >= kWidth<T> ? 0 : a >> b); });
  untyped<T>(rows, "setp.lt.s32 %q0, %c, 0; selp.@ $d, $a, $b, %q0;",
             [](T a, T b, i32 c) { return c < 0 ? a : b; });
  untyped<T>(rows, "slct.@.s32 $d, $a, $b, %c;", [](T a, T b, i32 c) { return c >= 0 ? a : b; });
  if (kWidth<T> == 16) return;
  untyped<T>(rows, "popc.@ %d, $a;", [](T a) { return static_cast<u32>(std::popcount(a)); });
  untyped<T>(rows, "clz.@ %d, $a;", [](T a) { return static_cast<u32>(std::countl_zero(a)); });
  untyped<T>(rows, "brev.@ $d, $a;", [](T a) {
    T out = 0;
    for (int i = 0; i < kWidth<T>; ++i) out |= (a >> i & 1) << (kWidth<T> - 1 - i);
    return out;
  });
  untyped<T>(rows, "bfi.@ $d, $a, $b, %c, 7;", [](T a, T b, u32 c) { return insert(a, b, c, 7); });
  untyped<T>(rows, "bfi.@ $d, $a, $b, 5, %c;", [](T a, T b, u32 c) { return insert(a, b, 5, c); });
}

/// Bytes by the table of the manual: digit k is the byte of {b, a} that becomes byte k.
u32 pick(u32 a, u32 b, const char* digits) {
  const u64 both = u64{b} << 32 | a;
  u32 out = 0;
  for (int k = 0; k < 4; ++k) {
    out |= (static_cast<u32>(both >> (8 * (digits[k] - '0'))) & 0xff) << (8 * k);
  }
  return out;
}
u32 permute(u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 nibble = c >> (4 * k) & 15;
    const char digits[] = {static_cast<char>('0' + (nibble & 7)), '0', '0', '0'};
    u32 byte = pick(a, b, digits) & 0xff;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    out |= byte << (8 * k);
  }
  return out;
}
u32 nth_set(u32 mask, u32 base, i32 offset) {
  if (base > 31) return ~0U;
  if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0U;
  i64 count = std::abs(i64{offset}) - 1;
  for (i64 at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
    if ((mask >> at & 1) == 0) continue;
    if (count == 0) return static_cast<u32>(at);
    --count;
  }
  return ~0U;
}

TEST(SemanticsInteger, Bits) {
  std::vector<Row> rows;
  bits<u16>(rows);
  bits<u32>(rows);
  bits<u64>(rows);
  fields<u32>(rows);
  fields<i32>(rows);
  fields<u64>(rows);
  fields<i64>(rows);
  const auto both = [](u32 a, u32 b) { return u64{b} << 32 | a; };
  rows.insert(
      rows.end(),
      {row("shf.l.wrap.b32 %d, %a, %b, %c;",
           [=](u32 a, u32 b, u32 c) { return static_cast<u32>(both(a, b) << (c & 31) >> 32); }),
       row("shf.r.wrap.b32 %d, %a, %b, %c;",
           [=](u32 a, u32 b, u32 c) { return static_cast<u32>(both(a, b) >> (c & 31)); }),
       row("shf.l.clamp.b32 %d, %a, %b, %c;",
           [=](u32 a, u32 b, u32 c) {
             return static_cast<u32>(both(a, b) << std::min(c, 32U) >> 32);
           }),
       row("shf.r.clamp.b32 %d, %a, %b, %c;",
           [=](u32 a, u32 b, u32 c) { return static_cast<u32>(both(a, b) >> std::min(c, 32U)); }),
       row("prmt.b32 %d, %a, %b, %c;", permute),
       row("and.b32 %t0, %c, 7; sub.s32 %t0, %t0, 4; and.b32 %t1, %b, 31; fns.b32 %d, %a, %t1, "
           "%t0;",
           [](u32 a, u32 b, u32 c) { return nth_set(a, b & 31, static_cast<i32>(c & 7) - 4); }),
       row("mov.b32 {%s0, %s1}, %a; mov.b32 %d, {%s1, %s0};",
           [](u32 a) { return a << 16 | a >> 16; }),
       row("mov.b64 {%t0, %t1}, %A; mov.b64 %D, {%t1, %b};",
           [](u64 a, u32 b) { return u64{b} << 32 | a >> 32; }),
       row("mov.b64 {%s0, %s1, %s2, %s3}, %A; mov.b64 %D, {%s2, %s0, %s3, %hb};",
           [](u64 a, u16 b) {
             return (a >> 32 & 0xffff) | (a & 0xffff) << 16 | a >> 48 << 32 | u64{b} << 48;
           }),
       row("mov.b64 {_, %d}, %A;", [](u64 a) { return static_cast<u32>(a >> 32); }),
       row("slct.b64.f32 %D, %A, %B, %c;",
           [](u64 a, u64 b, u32 c) {
             return kF32.is_nan(c) || (c >> 31 != 0 && c << 1 != 0) ? b : a;
           }),
       row("slct.ftz.b32.f32 %d, %a, %b, %c;", [](u32 a, u32 b, u32 c) {
         const u64 flushed = flush(kF32, c);
         return kF32.is_nan(c) || (c >> 31 != 0 && flushed != kF32.sign()) ? b : a;
       })});
  // Row s of a table: the bytes for selector s.
  const std::pair<const char*, const char*> modes[] = {
      {"f4e", "0123123423453456"}, {"b4e", "0765107621073210"}, {"rc8", "0000111122223333"},
      {"ecl", "0123112322233333"}, {"ecr", "0000011101220123"}, {"rc16", "0101232301012323"}};
  for (const auto& [mode, table] : modes) {
    rows.push_back(
        row(fmt::format("prmt.b32.{} %d, %a, %b, %c;", mode),
            [table = table](u32 a, u32 b, u32 c) { return pick(a, b, table + 4 * (c & 3)); }));
  }
  for (const int table : {0x00, 0x1b, 0x80, 0x96, 0xac, 0xca, 0xe8, 0xfe, 0xff}) {
    rows.push_back(
        row(fmt::format("lop3.b32 %d, %a, %b, %c, {};", table), [table](u32 a, u32 b, u32 c) {
          u32 out = 0;
          for (int i = 0; i < 32; ++i) {
            const u32 index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            out |= (static_cast<u32>(table) >> index & 1) << i;
          }
          return out;
        }));
  }
  check(rows, make_inputs(integer_edges(), 3));
}

bool compared(const std::string& how, int sign) {
  if (how == "eq") return sign == 0;
  if (how == "ne") return sign != 0;
  if (how == "lt" || how == "lo") return sign < 0;
  if (how == "le" || how == "ls") return sign <= 0;
  return how == "gt" || how == "hi" ? sign > 0 : sign >= 0;
}
template <class T>
void comparisons(std::vector<Row>& rows, std::initializer_list<const char*> names) {
  for (const std::string how : names) {
    typed<T>(rows, "setp." + how + ".@ %p, $a, $b;", [how](T a, T b) {
      return compared(how, a < b ? -1 : a > b ? 1 : 0);
    });
  }
}

TEST(SemanticsInteger, Comparisons) {
  std::vector<Row> rows;
  comparisons<i16>(rows, {"eq", "ne", "lt", "le", "gt", "ge"});
  comparisons<u16>(rows, {"lt", "ge", "lo", "ls", "hi", "hs"});
  comparisons<i32>(rows, {"eq", "ne", "lt", "le", "gt", "ge"});
  comparisons<u32>(rows, {"lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"});
  comparisons<i64>(rows, {"eq", "ne", "lt", "le", "gt", "ge"});
  comparisons<u64>(rows, {"lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"});
  const std::string third = "setp.lt.s32 %q0, %c, 0; ";
  const auto join = [](const std::string& how, bool x, bool y) {
    return how == "and" ? x && y : how == "or" ? x || y : x != y;
  };
  for (const std::string how : {"and", "or", "xor"}) {
    rows.push_back(row(third + "setp.lt." + how + ".u32 %p|%q1, %a, %b, %q0;",
                       [=](u32 a, u32 b, i32 c) { return join(how, a < b, c < 0); }));
    rows.push_back(row(third + "setp.lt." + how + ".u32 %q1|%p, %a, %b, !%q0;",
                       [=](u32 a, u32 b, i32 c) { return join(how, a >= b, c >= 0); }));
    rows.push_back(row(
        third + how + ".pred %p, %q0, %q0; setp.eq.b32 %q1, %a, %b; " + how + ".pred %p, %p, %q1;",
        [=](u32 a, u32 b, i32 c) { return join(how, join(how, c < 0, c < 0), a == b); }));
    rows.push_back(row(third + "set.gt." + how + ".u32.s64 %d, %A, %B, %q0;",
                       [=](i64 a, i64 b, i32 c) { return join(how, a > b, c < 0) ? ~0U : 0U; }));
  }
  rows.push_back(row(third + "not.pred %p, %q0;", [](u32, u32, i32 c) { return c >= 0; }));
  rows.push_back(row(third + "mov.pred %p, %q0;", [](u32, u32, i32 c) { return c < 0; }));
  rows.push_back(row("set.ne.s32.b16 %d, %ha, %hb;", [](u16 a, u16 b) { return a != b ? -1 : 0; }));
  rows.push_back(
      row("set.lo.f32.u32 %d, %a, %b;", [](u32 a, u32 b) { return a < b ? 0x3f800000U : 0U; }));
  check(rows, make_inputs(integer_edges(), 4));
}

TEST(SemanticsInteger, BitMasks) {
  // By the manual: ((1 << size) - 1) << position, whose low 32 bits count.
  const auto mask = [](u64 position, u64 size) {
    return static_cast<u32>(((u64{1} << size) - 1) << position);
  };
  std::vector<Row> rows;
  rows.push_back(row("bmsk.clamp.b32 %d, %a, %b;",
                     [=](u32 a, u32 b) { return mask(std::min(a, 32U), std::min(b, 32U)); }));
  rows.push_back(
      row("bmsk.wrap.b32 %d, %a, %b;", [=](u32 a, u32 b) { return mask(a % 32, b % 32); }));
  check(rows, make_inputs({0, 1, 2, 5, 16, 31, 32, 33, 64, 100, 0xffffffff}, 9));
}

/// By the manual: N is the low bits of the second operand, and .clamp leaves `a` unchanged if N is
/// 32 or more.
TEST(SemanticsInteger, Extensions) {
  const auto extend = [](u32 a, u32 b, bool clamps, bool is_signed) {
    const u32 n = b & 31;
    const bool too_large = clamps && b >= 32;
    const u32 mask = too_large ? 0 : ~u32{0} << n;
    const bool sign = n != 0 && !too_large && is_signed && (a >> ((n - 1) & 31) & 1) != 0;
    return (a & ~mask) | (sign ? mask : 0);
  };
  std::vector<Row> rows;
  for (const bool clamps : {false, true}) {
    for (const bool is_signed : {false, true}) {
      rows.push_back(row(fmt::format("szext.{}.{}32 %d, %a, %b;", clamps ? "clamp" : "wrap",
                                     is_signed ? 's' : 'u'),
                         [=](u32 a, u32 b) { return extend(a, b, clamps, is_signed); }));
    }
  }
  check(rows,
        make_inputs({0, 1, 2, 7, 8, 31, 32, 33, 0x80, 0x8000, 0x7fffffff, 0x80000000, ~0U}, 11));
}

/// cvt.pack.sat d, a, b, c: a above b, saturated, above them the low bits of c.
TEST(SemanticsInteger, Packs) {
  const auto pack = [](u32 a, u32 b, u32 c, int bits, bool is_signed) {
    const i64 top = (i64{1} << (is_signed ? bits - 1 : bits)) - 1;
    const auto part = [&](u32 value) {
      const i64 kept = std::clamp<i64>(static_cast<i32>(value), is_signed ? -top - 1 : 0, top);
      return static_cast<u64>(kept) & ((u64{1} << bits) - 1);
    };
    return static_cast<u32>(part(a) << bits | part(b) | u64{c} << (2 * bits));
  };
  std::vector<Row> rows;
  for (const int bits : {2, 4, 8, 16}) {
    for (const bool is_signed : {false, true}) {
      const std::string type = fmt::format("{}{}.s32", is_signed ? 's' : 'u', bits);
      const bool halves = bits == 16;
      rows.push_back(
          row("cvt.pack.sat." + type + (halves ? " %d, %a, %b;" : ".b32 %d, %a, %b, %c;"),
              [=](u32 a, u32 b, u32 c) { return pack(a, b, halves ? 0 : c, bits, is_signed); }));
    }
  }
  check(rows, make_inputs({0,   1,   2,     3,     7,     8,       127,        128,
                           255, 256, 32767, 32768, 65535, 65536,   0x7fffffff, 0x80000000,
                           ~0U, ~1U, ~7U,   ~127U, ~128U, ~32767U, ~32768U},
                          12));
}

TEST(SemanticsInteger, PackedHalves) {
  const auto halves = [](auto operation) {
    return [operation](u32 a, u32 b) {
      const auto low = static_cast<u16>(operation(static_cast<u16>(a), static_cast<u16>(b)));
      const auto high =
          static_cast<u16>(operation(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16)));
      return u32{low} | u32{high} << 16;
    };
  };
  const auto sum = halves([](u16 a, u16 b) { return a + b; });
  const auto difference = halves([](u16 a, u16 b) { return a - b; });
  const auto least = [](i16 a, i16 b) { return std::min(a, b); };
  const auto most = [](i16 a, i16 b) { return std::max(a, b); };
  check({row("add.u16x2 %d, %a, %b;", sum), row("add.s16x2 %d, %a, %b;", sum),
         row("sub.u16x2 %d, %a, %b;", difference), row("sub.s16x2 %d, %a, %b;", difference),
         row("neg.s16x2 %d, %b;", [=](u32, u32 b) { return difference(0, b); }),
         row("min.u16x2 %d, %a, %b;", halves([](u16 a, u16 b) { return std::min(a, b); })),
         row("max.u16x2 %d, %a, %b;", halves([](u16 a, u16 b) { return std::max(a, b); })),
         row("min.s16x2 %d, %a, %b;", halves(least)), row("max.s16x2 %d, %a, %b;", halves(most)),
         row("min.relu.s16x2 %d, %a, %b;",
             halves([=](i16 a, i16 b) { return std::max<i16>(least(a, b), 0); })),
         row("max.relu.s16x2 %d, %a, %b;",
             halves([=](i16 a, i16 b) { return std::max<i16>(most(a, b), 0); }))},
        pack_halves(make_inputs(integer_edges(), 16)));
}

/// lop3 with a predicate: whether any bit of the result is one, joined with another.
TEST(SemanticsInteger, LogicWithAPredicate) {
  std::vector<Row> rows;
  for (const unsigned table : {0x80U, 0x96U, 0xe8U, 0x00U, 0xffU}) {
    const auto bits = [=](u32 a, u32 b, u32 c) {
      u32 out = 0;
      for (unsigned k = 0; k < 32; ++k) {
        const unsigned at = (a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1);
        out |= (table >> at & 1) << k;
      }
      return out;
    };
    const std::string tail = fmt::format("%a, %b, %c, {}, ", table);
    const std::string odd = "and.b32 %t0, %a, 1; setp.ne.b32 %q0, %t0, 0; ";
    rows.push_back(row(odd + "lop3.and.b32 %t1|%p, " + tail + "%q0;",
                       [=](u32 a, u32 b, u32 c) { return bits(a, b, c) != 0 && (a & 1) != 0; }));
    rows.push_back(row(odd + "lop3.or.b32 _|%p, " + tail + "!%q0;",
                       [=](u32 a, u32 b, u32 c) { return bits(a, b, c) != 0 || (a & 1) == 0; }));
    rows.push_back(row(odd + "lop3.or.b32 %d|%q1, " + tail + "%q0;", bits));
  }
  check(rows, make_inputs(integer_edges(), 17));
}

TEST(SemanticsInteger, RefusesOtherForms) {
  for (const char* text :
       {"mad.hi.sat.u32 %d, %a, %b, %c;",
        "mul24.lo.u16 %h, %ha, %hb;",
        "addc.f32 %d, %a, %b;",
        "madc.wide.u32 %D, %a, %b, %C;",
        "prmt.b32.f3e %d, %a, %b, %c;",
        "dp2a.u32.u32 %d, %a, %b, %c;",
        "add.cc.u16 %h, %ha, %hb;",
        "madc.lo.cc.u16 %h, %ha, %hb, %hc;",
        "neg.u16x2 %d, %a;",
        "cvt.rn.e4m3x2.f32 %h, %a, %b;",
        "cvt.rn.tf32.f64 %d, %A;",
        "set.eq.u64.f16x2 %D, %a, %b;",
        "set.eq.u16.f16x2 %h, %a, %b;",
        "fns.b32 %d, %a, %b;",
        "min.xorsign.abs.f32 %d, %a, %b, %c;",
        "max.abs.f32 %d, %a, %b;",
        "min.xorsign.f32 %d, %a, %b;",
        "add.sat.s16x2 %d, %a, %b;",
        "min.relu.u16x2 %d, %a, %b;",
        "add.sat.f32x2 %D, %A, %B;",
        "min.f32x2 %D, %A, %B;",
        "add.ftz.f32.f16 %d, %ha, %b;",
        "mul.f32.bf16 %d, %ha, %b;",
        "lop3.xor.b32 %d|%p, %a, %b, %c, 1, %q0;",
        "redux.sync.add.f32 %d, %a, -1;",
        "redux.sync.min.f64 %D, %A, -1;",
        "elect.sync %d, -1;",
        "max.f64 %D, %A, %B, %C;",
        "min.f32 %d, %a;",
        "mma.sync.aligned.m16n8k32.row.col.f32.tf32.tf32.f32 {%d,%d,%d,%d}, {%a,%a,%a,%a}, {%b,%b},"
        " {%c,%c,%c,%c};",
        "mma.sync.aligned.m16n8k16.row.col.other.s32.s8.s8.s32 {%d,%d,%d,%d}, {%a,%a}, {%b},"
        " {%c,%c,%c,%c};"}) {
    const Row row{.text = text, .want = nullptr};
    try {
      check({row}, make_inputs({0}, 5), false);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("ptx:"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
