// Video instructions against the statements of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// ".b2", ".h1", or nothing.
struct Part {
  std::string text;
  int bits;
  int at;
  [[nodiscard]] i64 of(u32 word, bool is_signed) const {
    const u64 field = word >> (bits * at) & (~u64{0} >> (64 - bits));
    if (!is_signed) return static_cast<i64>(field);
    return static_cast<i64>(field << (64 - bits)) >> (64 - bits);
  }
  [[nodiscard]] u32 put(i64 value, u32 into) const {
    const u64 mask = (~u64{0} >> (64 - bits)) << (bits * at);
    return static_cast<u32>((static_cast<u64>(value) << (bits * at) & mask) | (into & ~mask));
  }
};
const Part kParts[] = {{"", 32, 0},   {".b0", 8, 0},  {".b1", 8, 1}, {".b2", 8, 2},
                       {".b3", 8, 3}, {".h0", 16, 0}, {".h1", 16, 1}};

i128 clamped(i128 value, int bits, bool is_signed) {
  const i128 top = i128{1} << (is_signed ? bits - 1 : bits);
  return std::clamp<i128>(value, is_signed ? -top : 0, top - 1);
}

i64 compared(const std::string& how, i64 x, i64 y) {
  if (how == "eq") return x == y ? 1 : 0;
  if (how == "ne") return x != y ? 1 : 0;
  if (how == "lt") return x < y ? 1 : 0;
  if (how == "le") return x <= y ? 1 : 0;
  if (how == "gt") return x > y ? 1 : 0;
  return x >= y ? 1 : 0;
}

i128 computed(const std::string& op, i64 x, i64 y) {
  if (op == "vadd") return i128{x} + y;
  if (op == "vsub") return i128{x} - y;
  if (op == "vabsdiff") return x > y ? i128{x} - y : i128{y} - x;
  if (op == "vmin") return std::min(x, y);
  if (op == "vmax") return std::max(x, y);
  if (op == "vshl") return i128{x} * (i128{1} << y);
  if (op == "vshr") return x >> y;
  const i64 sum = x + y;  // vavrg
  return sum >= 0 ? (sum + 1) >> 1 : sum >> 1;
}

/// The second operation of an instruction.
u32 finished(i128 value, const std::string& second, const Part& into, bool to_signed, u32 c) {
  if (into.bits < 32) return into.put(static_cast<i64>(value), c);
  const auto from_33 = [](i128 v) { return static_cast<i64>(static_cast<u64>(v) << 31) >> 31; };
  const i64 other = to_signed ? static_cast<i32>(c) : i64{c};
  const i64 first = from_33(value);
  if (second == ".add") return static_cast<u32>(first + other);
  if (second == ".min") return static_cast<u32>(std::min(first, other));
  if (second == ".max") return static_cast<u32>(std::max(first, other));
  return static_cast<u32>(value);
}

const char* sign_name(bool is_signed) { return is_signed ? "s32" : "u32"; }

/// All signs on whole words with saturation, then all parts and signs, each with some of the
/// others.
struct Choice {
  bool d, a, b, sat;
  std::string second;
  Part into, from_a, from_b;
};
std::vector<Choice> choices(u64 seed, bool saturates) {
  std::vector<Choice> out;
  Random random(seed);
  const std::string seconds[] = {"", ".add", ".min", ".max"};
  for (unsigned n = 0; n < 36; ++n) {
    const u64 r = random.next() >> 16;
    const bool whole = n < 8;
    Choice c{(n & 1) != 0,
             (n & 2) != 0,
             (n & 4) != 0,
             saturates && (whole || (r & 1) != 0),
             whole ? "" : seconds[r / 2 % 4],
             kParts[whole ? 0 : r / 8 % 7],
             kParts[whole ? 0 : n % 7],
             kParts[whole ? 0 : r / 64 % 7]};
    if (!c.second.empty()) c.into = kParts[0];
    out.push_back(c);
  }
  return out;
}
std::string operands_of(const Choice& c) {
  return fmt::format(" %d{}, %a{}, %b{}{};", c.into.text, c.from_a.text, c.from_b.text,
                     c.second.empty() && c.into.bits == 32 ? "" : ", %c");
}

TEST(SemanticsVideo, Arithmetic) {
  std::vector<Row> rows;
  u64 seed = 1;
  for (const std::string op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"}) {
    for (const Choice& how : choices(seed++, true)) {
      const std::string text =
          fmt::format("{}.{}.{}.{}{}{}", op, sign_name(how.d), sign_name(how.a), sign_name(how.b),
                      how.sat ? ".sat" : "", how.second);
      rows.push_back(row(text + operands_of(how), [=](u32 a, u32 b, u32 c) {
        i128 value = computed(op, how.from_a.of(a, how.a), how.from_b.of(b, how.b));
        if (how.sat) value = clamped(value, how.into.bits, how.d);
        return finished(value, how.second, how.into, how.d, c);
      }));
    }
  }
  check(rows, make_inputs(integer_edges(), 61), false);
  // One value per warp takes another way; a few are enough.
  check({rows.begin(), rows.begin() + 16}, make_inputs({0, 1, 0x80, 0x8000, 0xffffffff}, 65));
}

TEST(SemanticsVideo, ShiftsAndComparisons) {
  std::vector<Row> rows;
  u64 seed = 10;
  for (const std::string op : {"vshl", "vshr"}) {
    for (const Choice& how : choices(seed++, true)) {
      const std::string mode = how.b ? "wrap" : "clamp";
      const std::string text =
          fmt::format("{}.{}.{}.u32{}.{}{}", op, sign_name(how.d), sign_name(how.a),
                      how.sat ? ".sat" : "", mode, how.second);
      rows.push_back(row(text + operands_of(how), [=](u32 a, u32 b, u32 c) {
        i64 by = how.from_b.of(b, false);
        by = mode == "wrap" ? by & 31 : std::min<i64>(by, 32);
        i128 value = computed(op, how.from_a.of(a, how.a), by);
        if (how.sat) value = clamped(value, how.into.bits, how.d);
        return finished(value, how.second, how.into, how.d, c);
      }));
    }
  }
  for (const std::string compare : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    for (const Choice& how : choices(seed++, false)) {
      const std::string text =
          fmt::format("vset.{}.{}.{}{}", sign_name(how.a), sign_name(how.b), compare, how.second);
      rows.push_back(row(text + operands_of(how), [=](u32 a, u32 b, u32 c) {
        const i64 value = compared(compare, how.from_a.of(a, how.a), how.from_b.of(b, how.b));
        return finished(value, how.second, how.into, false, c);
      }));
    }
  }
  check(rows, make_inputs(integer_edges(), 62), false);
}

TEST(SemanticsVideo, MultiplyAdd) {
  std::vector<Row> rows;
  for (const Choice& how : choices(20, true)) {
    for (const std::string scale : {"", ".shr7", ".shr15"}) {
      for (const std::string sign : {"", "a", "c", "po"}) {
        const std::string text =
            fmt::format("vmad.{0}.{1}.{2}{3}{4}{5} %d, {6}%a{7}, %b{8}, {9}%c;", sign_name(how.d),
                        sign_name(how.a), sign_name(how.b), sign == "po" ? ".po" : "",
                        how.sat ? ".sat" : "", scale, sign == "a" ? "-" : "", how.from_a.text,
                        how.from_b.text, sign == "c" ? "-" : "");
        rows.push_back(row(text, [=](u32 a, u32 b, u32 c) {
          const bool final_signed = how.a || how.b || sign == "a" || sign == "c";
          i128 value = i128{how.from_a.of(a, how.a)} * how.from_b.of(b, how.b);
          i128 other = final_signed ? i128{static_cast<i32>(c)} : i128{c};
          i128 lsb = 0;
          if (sign == "po") {
            lsb = 1;
          } else if (sign == "a") {
            value = ~value;
            lsb = 1;
          } else if (sign == "c") {
            other = ~other;
            lsb = 1;
          }
          value += other + lsb;
          value >>= scale.empty() ? 0 : scale == ".shr7" ? 7 : 15;
          if (how.sat) value = clamped(value, 32, final_signed);
          return static_cast<u32>(value);
        }));
      }
    }
  }
  check(rows, make_inputs(integer_edges(), 63), false);
}

/// A choice of parts of two words: ".b5210", the last for the lowest place.
std::string random_parts(Random& random, int count) {
  std::string digits;
  for (int k = 0; k < count; ++k) {
    digits += static_cast<char>('0' + static_cast<int>(random.next() >> 20 & (count == 4 ? 7 : 3)));
  }
  return digits;
}

TEST(SemanticsVideo, OfAllParts) {
  std::vector<Row> rows;
  Random random(30);
  const std::string masks[2][4] = {{"", "0", "1", "10"}, {"", "2", "31", "3210"}};
  for (const std::string op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg", "lt", "ne"}) {
    for (const int count : {2, 4}) {
      for (unsigned n = 0; n < 16; ++n) {
        const bool set = op.size() == 2;
        const bool d = (n & 1) != 0;
        const bool a_signed = (n & 2) != 0;
        const bool b_signed = (n & 4) != 0;
        const bool sat = !set && n % 3 == 1;
        const bool add = n % 3 == 2;
        const std::string mask = masks[count / 4][random.next() >> 30 & 3];
        const std::string from_a = n < 4 ? "" : random_parts(random, count);
        const std::string from_b = n < 4 ? "" : random_parts(random, count);
        const char letter = count == 2 ? 'h' : 'b';
        const auto dotted = [&](const std::string& digits) {
          return digits.empty() ? digits : fmt::format(".{}{}", letter, digits);
        };
        const std::string signs = fmt::format("{}.{}", sign_name(a_signed), sign_name(b_signed));
        const std::string head =
            set ? fmt::format("vset{}.{}.{}", count, signs, op)
                : fmt::format("{}{}.{}.{}{}", op, count, sign_name(d), signs, sat ? ".sat" : "");
        const std::string text = fmt::format("{}{} %d{}, %a{}, %b{}, %c;", head, add ? ".add" : "",
                                             dotted(mask), dotted(from_a), dotted(from_b));
        rows.push_back(row(text, [=](u32 a, u32 b, u32 c) {
          const int bits = 32 / count;
          const u64 both = u64{b} << 32 | a;
          const auto element = [&](const std::string& digits, int k, int first, bool is_signed) {
            const int from =
                digits.empty() ? first + k : digits[static_cast<std::size_t>(count - 1 - k)] - '0';
            return Part{"", bits, 0}.of(static_cast<u32>(both >> (bits * from)), is_signed);
          };
          u32 out = c;
          for (int k = 0; k < count; ++k) {
            const i64 x = element(from_a, k, 0, a_signed);
            const i64 y = element(from_b, k, count, b_signed);
            i128 value = set ? compared(op, x, y) : computed(op, x, y);
            if (sat) value = clamped(value, bits, d);
            if (!mask.empty() && mask.find(static_cast<char>('0' + k)) == std::string::npos)
              continue;
            out = add ? out + static_cast<u32>(value)
                      : Part{"", bits, k}.put(static_cast<i64>(value), out);
          }
          return out;
        }));
      }
    }
  }
  check(rows, make_inputs(integer_edges(), 64), false);
}

TEST(SemanticsVideo, PartsAreForThemAlone) {
  const auto error_of = [](const std::string& instruction) -> std::string {
    return cpu_test::error_of([&] {
      Bench::from_ptx(
          ".version 8.6\n.target sm_80\n.address_size 64\n.visible .entry k() {\n"
          ".reg .b32 %r<8>;\n" +
          instruction + "\nret; }\n");
    });
  };
  using testing::HasSubstr;
  EXPECT_EQ(error_of("vadd.s32.s32.s32 %r0, %r1.b3, %r2.h1;"), "");
  EXPECT_THAT(error_of("add.s32 %r0, %r1.b3, %r2;"), HasSubstr("ptx:6: expected ','"));
  EXPECT_THAT(error_of("add.s32 %r0, -%r1, %r2;"), HasSubstr("expected a number after '-'"));
  EXPECT_THAT(error_of("vadd.s32.s32.s32 %r0, -%r1, %r2;"), HasSubstr("a sign is not supported"));
  EXPECT_THAT(error_of("vadd.s32.s32.s32 %r0, %r1.b4, %r2;"), HasSubstr("expected one part"));
  EXPECT_THAT(error_of("vadd.s32.s32.s32 %r0, %r1.b9, %r2;"), HasSubstr("has no part '.b9'"));
  EXPECT_THAT(error_of("vadd.s32.s32.s32 %r0, %r1.c0, %r2;"), HasSubstr("has no part '.c0'"));
  EXPECT_THAT(error_of("vadd.s32.s32.s32 %r0.h1, %r1, %r2;"), HasSubstr("expected 4 operands"));
  EXPECT_THAT(error_of("vadd4.s32.s32.s32 %r0.b01, %r1, %r2, %r3;"),
              HasSubstr("unsupported parts"));
  EXPECT_THAT(error_of("vadd4.s32.s32.s32 %r0, %r1.h10, %r2, %r3;"),
              HasSubstr("unsupported parts"));
  EXPECT_THAT(error_of("vadd2.s32.s32.s32.sat.add %r0, %r1, %r2, %r3;"),
              HasSubstr("unsupported combination"));
}

}  // namespace
}  // namespace braid::cpu_test
