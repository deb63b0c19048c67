// Matrix products of floats of up to 8 bits, with scales, and of sparse matrices, against the
// statements of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// A type of elements: of floats the bits of exponent and fraction, and where in its container
/// an element begins.
struct Kind {
  std::string name;
  int bits, exponent = 0, fraction = 0, shift = 0;
  bool is_signed = true;
  [[nodiscard]] bool is_float() const { return exponent != 0; }
  [[nodiscard]] int per_register() const { return 32 / bits; }
  /// Bits of a code, without its position in the container.
  [[nodiscard]] int code_bits() const {
    return !is_float() ? bits : name == "tf32" ? 32 : 1 + exponent + fraction;
  }
  [[nodiscard]] double value(u32 code) const {
    if (!is_float()) {
      const int unused = 32 - bits;
      return is_signed ? static_cast<i32>(code << unused) >> unused : static_cast<double>(code);
    }
    if (bits == 32) return std::bit_cast<float>(code);
    const auto field = static_cast<int>(code >> fraction & ((1U << exponent) - 1));
    const double part = std::ldexp(code & ((1U << fraction) - 1), -fraction);
    const int bias = (1 << (exponent - 1)) - 1;
    const double size =
        field == 0 ? std::ldexp(part, 1 - bias) : std::ldexp(1 + part, field - bias);
    return (code >> (exponent + fraction) & 1) != 0 ? -size : size;
  }
};
const Kind kinds[] = {
    {"f16", 16, 5, 10},       {"bf16", 16, 8, 7}, {"tf32", 32, 8, 23},       {"e4m3", 8, 4, 3},
    {"e5m2", 8, 5, 2},        {"e3m2", 8, 3, 2},  {"e2m3", 8, 2, 3},         {"e2m1", 8, 2, 1, 2},
    {"packed", 4, 2, 1},      {"s8", 8},          {"u8", 8, 0, 0, 0, false}, {"s4", 4},
    {"u4", 4, 0, 0, 0, false}};
const Kind& kind(const std::string& name) {
  return *std::find_if(std::begin(kinds), std::end(kinds),
                       [&](const Kind& k) { return k.name == name; });
}

/// A code whose value is one of few quarters, so that sums are exact.
u32 random_code(const Kind& of, Random& random) {
  if (of.bits == 32) return std::bit_cast<u32>(static_cast<float>(random.next() % 33) / 4 - 4);
  while (true) {
    const auto code = static_cast<u32>(random.next() >> (64 - of.code_bits()));
    const double value = of.value(code);
    if (std::fabs(value) <= 8 && value * 4 == std::floor(value * 4)) return code;
  }
}

struct Codes {
  int rows, columns;
  std::vector<u32> codes;
  Codes(int r, int c) : rows(r), columns(c), codes(static_cast<std::size_t>(r * c)) {}
  u32& at(int row, int column) { return codes[static_cast<std::size_t>(row * columns + column)]; }
};

using Registers = std::vector<std::array<u32, 32>>;

/// groupID and threadID_in_group of the manual.
int group(int lane) { return lane >> 2; }
int thread(int lane) { return lane % 4; }

/// Element i of a lane has row groupID in the first register, groupID + 8 in the second, and so on;
/// a register is of neighbours along k, two of them of neighbouring lanes too.
Registers registers_of_a(Codes& a, const Kind& of) {
  const int per = of.per_register();
  Registers out(static_cast<std::size_t>(16 * a.columns / per / 32));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < static_cast<int>(out.size()) * per; ++i) {
      const int r = i / per;
      const int row = r % 2 == 0 ? group(lane) : group(lane) + 8;
      const int k = thread(lane) * per + i % per + (r >= 2 ? 4 * per : 0);
      out[static_cast<std::size_t>(r)][static_cast<std::size_t>(lane)] |=
          a.at(row, k) << (i % per * of.bits + of.shift);
    }
  }
  return out;
}
Registers registers_of_b(Codes& b, const Kind& of) {
  const int per = of.per_register();
  Registers out(static_cast<std::size_t>(b.rows * 8 / per / 32));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < static_cast<int>(out.size()) * per; ++i) {
      const int k = thread(lane) * per + i % per + 4 * per * (i / per);
      out[static_cast<std::size_t>(i / per)][static_cast<std::size_t>(lane)] |=
          b.at(k, group(lane)) << (i % per * of.bits + of.shift);
    }
  }
  return out;
}
using Sums = std::array<std::array<double, 8>, 16>;
/// f32, s32, or two f16 to a register.
Registers registers_of_sums(const Sums& sums, const std::string& type) {
  Registers out(type == "f16" ? 2 : 4);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group(lane) : group(lane) + 8;
      const double value =
          sums[static_cast<std::size_t>(row)][static_cast<std::size_t>(2 * thread(lane) + i % 2)];
      const auto l = static_cast<std::size_t>(lane);
      const auto r = static_cast<std::size_t>(i);
      if (type == "f16") {
        Number number = integer(static_cast<i128>(std::fabs(value) * 1024));
        number.exponent -= 10;
        number.negative = value < 0;
        out[r / 2][l] |= static_cast<u32>(encode(kF16, number, Mode::kNearest)) << (16 * (i % 2));
      } else {
        out[r][l] = type == "s32" ? static_cast<u32>(static_cast<i64>(value))
                                  : std::bit_cast<u32>(static_cast<float>(value));
      }
    }
  }
  return out;
}

/// Runs `text` on the registers %r0, %r1, ... of `in`, and gives those behind them.
Registers run(const std::string& text, const Registers& in, std::size_t results) {
  std::string body;
  for (std::size_t r = 0; r < in.size(); ++r) {
    body += fmt::format("ld.global.b32 %r{}, [%I+{}];\n", r, 128 * r);
  }
  body += text + "\n";
  for (std::size_t r = 0; r < results; ++r) {
    body += fmt::format("st.global.b32 [%O+{}], %r{};\n", 128 * r, in.size() + r);
  }
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 9.0
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b32 %r<40>, %i;
.reg .b16 %h<4>;
.reg .b64 %I, %O;
ld.param.u64 %O, [out];
ld.param.u64 %I, [in];
mov.u32 %i, %laneid;
mad.wide.u32 %I, %i, 4, %I;
mad.wide.u32 %O, %i, 4, %O;
{}ret;
}}
)",
                                            body));
  std::vector<u32> words;
  for (const auto& lanes : in) words.insert(words.end(), lanes.begin(), lanes.end());
  const u64 out = bench.upload(std::vector<u32>(32 * results));
  bench.run({1}, {32}, 0, out, bench.upload(words));
  const auto got = bench.download<u32>(out, 32 * results);
  Registers split(results);
  for (std::size_t r = 0; r < results; ++r) {
    std::copy_n(got.begin() + static_cast<std::ptrdiff_t>(32 * r), 32, split[r].begin());
  }
  return split;
}

std::string list(std::size_t& first, std::size_t count) {
  std::string out = "{";
  for (std::size_t i = 0; i < count; ++i) {
    out += fmt::format("{}%r{}", i == 0 ? "" : ", ", first++);
  }
  return out + "}";
}

/// Scales of rows of A, or columns of B, one for each of `parts` parts of k.
struct Scales {
  int parts = 0;
  std::string type;
  int byte_a = 0, lane_a = 0, byte_b = 0, lane_b = 0;
  bool in_registers = false;
};

/// A code of a scale, and what it stands for.
std::pair<u32, double> random_scale(const std::string& type, int exponent, Random& random) {
  if (type == "ue8m0") {
    const auto code = static_cast<u32>(127 + exponent + static_cast<int>(random.next() % 3) - 1);
    return {code, std::ldexp(1.0, static_cast<int>(code) - 127)};
  }
  // 0.5 to 1.875.
  const auto code = static_cast<u32>(0x30 + random.next() % 16);
  return {code, kind("e4m3").value(code)};
}

struct Case {
  std::string text;  ///< behind "mma.", without operands
  int k;
  std::string a, b, sum;
  Scales scales{};
  bool sparse = false;
  int selector = 0;
};

/// The position in the metadata of the four bits of a chunk of a row of A.
std::array<int, 2> metadata_place(const Case& c, int row, int chunk) {
  if (kind(c.a).bits >= 16) {
    // 16 bits of row groupID, then of groupID + 8; the second half of k is the next lane's.
    const bool pair = c.k * kind(c.a).bits == 512;
    return {4 * (row % 8) + c.selector * (pair ? 2 : 1) + chunk / 4,
            16 * (row / 8) + chunk % 4 * 4};
  }
  // All of row groupID, then of groupID + 8 in the next lane; the second half two lanes on.
  return {4 * (row % 8) + 2 * c.selector + row / 8 + 2 * (chunk / 8), chunk % 8 * 4};
}

void check(const Case& c, u64 seed) {
  Random random(seed);
  const Kind& of_a = kind(c.a);
  const Kind& of_b = kind(c.b);
  Codes a(16, c.sparse ? c.k / 2 : c.k);
  Codes b(c.k, 8);
  for (u32& code : a.codes) code = random_code(of_a, random);
  for (u32& code : b.codes) code = random_code(of_b, random);
  // Unused metadata may be anything.
  Registers metadata(1), scale_words(2);
  for (auto* registers : {&metadata, &scale_words}) {
    for (auto& lanes : *registers) {
      for (u32& word : lanes) word = static_cast<u32>(random.next());
    }
  }
  // A with its zeros, or rather where there is something.
  std::vector<std::vector<std::array<double, 8>>> dense(16);
  std::array<std::vector<int>, 16> ks;
  for (int row = 0; row < 16; ++row) {
    auto& of_row = ks[static_cast<std::size_t>(row)];
    if (!c.sparse) {
      for (int k = 0; k < c.k; ++k) of_row.push_back(k);
      continue;
    }
    const int wide = c.a == "tf32" ? 2 : of_a.bits == 4 ? 8 : 4;
    const int chunks = c.k / wide;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      constexpr int kPairs[][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
      const auto& places = kPairs[random.next() % 6];
      int first = places[0];
      int second = places[1];
      // The older form has them in any order.
      if (c.text.starts_with("sp.") && random.next() % 2 == 0) std::swap(first, second);
      u32 bits = static_cast<u32>(first | second << 2);
      if (wide == 2) {
        first = static_cast<int>(random.next() % 2);
        bits = first == 0 ? 0b0100 : 0b1110;
        of_row.push_back(2 * chunk + first);
      } else if (wide == 4) {
        of_row.push_back(4 * chunk + first);
        of_row.push_back(4 * chunk + second);
      } else {
        for (const int pair : {first, second}) {
          of_row.push_back(8 * chunk + 2 * pair);
          of_row.push_back(8 * chunk + 2 * pair + 1);
        }
      }
      const auto [lane, shift] = metadata_place(c, row, chunk);
      u32& word = metadata[0][static_cast<std::size_t>(lane)];
      word = (word & ~(15U << shift)) | bits << shift;
    }
  }
  // Scales whose product is near one, though f32 does not hold those of elements.
  const int parts = std::max(c.scales.parts, 1);
  std::array<std::array<double, 4>, 16> scale_a{};
  std::array<std::array<double, 4>, 8> scale_b{};
  for (auto& row : scale_a) row.fill(1);
  for (auto& column : scale_b) column.fill(1);
  for (int p = 0; p < c.scales.parts; ++p) {
    const auto put = [&](std::size_t side, int lane, int byte, std::pair<u32, double> scale) {
      u32& word = scale_words[side][static_cast<std::size_t>(lane)];
      word = (word & ~(255U << (8 * byte))) | scale.first << (8 * byte);
      return scale.second;
    };
    for (int row = 0; row < 16; ++row) {
      scale_a[static_cast<std::size_t>(row)][static_cast<std::size_t>(p)] =
          put(0, row % 8 * 4 + 2 * c.scales.lane_a + row / 8, c.scales.byte_a + p,
              random_scale(c.scales.type, 126, random));
    }
    for (int n = 0; n < 8; ++n) {
      scale_b[static_cast<std::size_t>(n)][static_cast<std::size_t>(p)] =
          put(1, 4 * n + c.scales.lane_b, c.scales.byte_b + p,
              random_scale(c.scales.type, -125, random));
    }
  }
  Sums addend{}, want{};
  const bool saturates = c.text.find("satfinite") != std::string::npos;
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t n = 0; n < 8; ++n) {
      addend[row][n] = static_cast<double>(random.next() % 65) - 32;
      if (c.sum == "s32" && row == 3) addend[row][n] = n % 2 == 0 ? INT32_MAX : INT32_MIN;
      double& sum = want[row][n] = addend[row][n];
      for (std::size_t i = 0; i < ks[row].size(); ++i) {
        const int k = ks[row][i];
        const auto part = static_cast<std::size_t>(k / (c.k / parts));
        sum += of_a.value(a.at(static_cast<int>(row), static_cast<int>(i))) *
               of_b.value(b.at(k, static_cast<int>(n))) * (scale_a[row][part] * scale_b[n][part]);
      }
      if (saturates) sum = std::clamp<double>(sum, INT32_MIN, INT32_MAX);
    }
  }
  Registers in;
  std::string operands;
  std::size_t first = 0;
  const auto add = [&](const Registers& registers, bool braces = true) {
    in.insert(in.end(), registers.begin(), registers.end());
    operands += ", ";
    operands += braces ? list(first, registers.size()) : fmt::format("%r{}", first++);
  };
  add(registers_of_a(a, of_a));
  add(registers_of_b(b, of_b));
  add(registers_of_sums(addend, c.sum));
  if (c.sparse) {
    add(metadata, false);
    operands += fmt::format(", {}", c.selector);
  }
  std::string before;
  if (c.scales.parts != 0) {
    const std::array<int, 4> selectors{c.scales.byte_a, c.scales.lane_a, c.scales.byte_b,
                                       c.scales.lane_b};
    for (std::size_t side = 0; side < 2; ++side) {
      add({scale_words[side]}, side == 0);
      if (c.scales.in_registers) {
        for (std::size_t k = 2 * side; k < 2 * side + 2; ++k) {
          before += fmt::format("mov.u16 %h{}, {};\n", k, selectors[k]);
        }
        operands += fmt::format(", {{%h{}, %h{}}}", 2 * side, 2 * side + 1);
      } else {
        operands += fmt::format(", {{{}, {}}}", selectors[2 * side], selectors[2 * side + 1]);
      }
    }
  }
  const Registers result = registers_of_sums(want, c.sum);
  std::string text = before + "mma." + c.text + " " + list(first, result.size());
  text += operands + ";";
  EXPECT_EQ(run(text, in, result.size()), result) << text;
}

constexpr const char* kSmallTypes[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};

TEST(SemanticsSmallMma, OfEveryPairOfTypes) {
  u64 seed = 900;
  for (const std::string a : kSmallTypes) {
    for (const std::string b : kSmallTypes) {
      const std::string sum = seed % 2 == 0 ? "f32" : "f16";
      check({fmt::format("sync.aligned.m16n8k32.row.col.kind::f8f6f4.{0}.{1}.{2}.{0}", sum, a, b),
             32, a, b, sum},
            seed++);
      check({fmt::format("sync.aligned.kind::mxf8f6f4.block_scale{}.m16n8k32.row.col.f32.{}.{}"
                         ".f32.ue8m0",
                         seed % 2 == 0 ? "" : ".scale_vec::1X", a, b),
             32,
             a,
             b,
             "f32",
             {1, "ue8m0", static_cast<int>(seed % 4), 1, 3, 2}},
            seed);
      ++seed;
    }
  }
  check({"sync.aligned.m16n8k16.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32", 16, "e4m3", "e5m2", "f32"},
        seed);
}

TEST(SemanticsSmallMma, TakesScalesWhereTheSelectorsSay) {
  u64 seed = 950;
  for (const bool in_registers : {false, true}) {
    for (int lane_a = 0; lane_a < 2; ++lane_a) {
      for (int lane_b = 0; lane_b < 4; ++lane_b) {
        check({"sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0",
               32,
               "e4m3",
               "e2m1",
               "f32",
               {1, "ue8m0", 2 * lane_a + 1, lane_a, lane_b, lane_b, in_registers}},
              seed++);
        for (const std::string kind : {"mxf4.block_scale", "mxf4nvf4.block_scale.scale_vec::2X"}) {
          check({"sync.aligned.m16n8k64.row.col.kind::" + kind + ".f32.e2m1.e2m1.f32.ue8m0",
                 64,
                 "packed",
                 "packed",
                 "f32",
                 {2, "ue8m0", lane_b % 2 * 2, lane_a, 2 - lane_b % 2 * 2, lane_b, in_registers}},
                seed++);
        }
        for (const std::string type : {"ue8m0", "ue4m3"}) {
          check({"sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1."
                 "e2m1.f32." +
                     type,
                 64,
                 "packed",
                 "packed",
                 "f32",
                 {4, type, 0, lane_a, 0, lane_b, in_registers}},
                seed++);
        }
      }
    }
  }
}

/// All codes except infinities and NaN, with a B that picks one k for each column.
TEST(SemanticsSmallMma, ReadsEveryCode) {
  for (const std::string type : kSmallTypes) {
    const Kind& of = kind(type);
    for (int first = 0; first < 32; first += 8) {
      Codes a(16, 32);
      Codes b(32, 8);
      for (std::size_t i = 0; i < a.codes.size(); ++i) {
        const auto code = static_cast<u32>(i) & ((1U << of.code_bits()) - 1);
        const u32 size = code & 0x7f;
        const bool number = (type != "e4m3" || size != 0x7f) && (type != "e5m2" || size < 0x7c);
        a.codes[i] = number ? code : 0;
      }
      Sums want{};
      for (int n = 0; n < 8; ++n) {
        b.at(first + n, n) = 0x38;  // 1 in e4m3
        for (int row = 0; row < 16; ++row) {
          want[static_cast<std::size_t>(row)][static_cast<std::size_t>(n)] =
              of.value(a.at(row, first + n));
        }
      }
      // 0 + -0 is 0.
      for (auto& row : want) {
        for (double& value : row) value += 0.0;
      }
      Registers in = registers_of_a(a, of);
      const Registers of_b = registers_of_b(b, kind("e4m3"));
      in.insert(in.end(), of_b.begin(), of_b.end());
      const std::string text = fmt::format(
          "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{}.e4m3.f32 {{%r6, %r7, %r8, %r9}}, "
          "{{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{0f00000000, 0f00000000, 0f00000000, "
          "0f00000000}};",
          type);
      EXPECT_EQ(run(text, in, 4), registers_of_sums(want, "f32")) << text;
    }
  }
}

/// All ones, in both types of scales.
TEST(SemanticsSmallMma, ScalesMayBeNaN) {
  for (const std::string type : {"ue8m0", "ue4m3"}) {
    Registers in(6);
    in.emplace_back().fill(type == "ue8m0" ? 0x7f7f7f7f : 0x38383838);  // 1
    in.emplace_back(in.back());
    in[6][4] = type == "ue8m0" ? 0x7f7fff7f : 0x38387f38;  // of row 1, and k from 16 on
    const Registers got =
        run(fmt::format(
                "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
                ".f32.e2m1.e2m1.f32.{} {{%r8, %r9, %r10, %r11}}, {{%r0, %r1, %r2, %r3}}, {{%r4, "
                "%r5}}, {{%r0, %r1, %r2, %r3}}, %r6, {{0, 0}}, %r7, {{0, 0}};",
                type),
            in, 4);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(got[0][lane], lane / 4 == 1 ? 0x7fffffff : 0) << lane;
      EXPECT_EQ(got[2][lane], 0U) << lane;
    }
  }
}

std::string error_of(const std::string& instruction) {
  return cpu_test::error_of([&] {
    Bench::from_ptx(
        ".version 9.0\n.target sm_120a\n.address_size 64\n.visible .entry k() {\n"
        ".reg .b32 %r<32>; .reg .b16 %h<4>; .reg .b64 %rd;\n" +
        instruction + "\nret; }\n");
  });
}

constexpr const char* kSums = "{%r0, %r1, %r2, %r3}";

TEST(SemanticsSmallMma, WhatIsNotThereIsRefused) {
  const auto dense = [](const std::string& modifiers, const std::string& scales = "") {
    return error_of(
        fmt::format("mma.sync.aligned.{} {}, {{%r4, %r5, %r6, %r7}}, {{%r8, %r9}}, {}{};",
                    modifiers, kSums, kSums, scales));
  };
  EXPECT_EQ(dense("m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e2m1.f32"), "");
  EXPECT_THAT(dense("m16n8k32.row.col.f32.e2m3.e2m1.f32"),
              testing::HasSubstr("lacks a modifier, or is an unsupported combination"));
  EXPECT_THAT(dense("m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e2m1.f16"),
              testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(dense("m16n8k16.row.col.kind::f8f6f4.f32.e2m3.e4m3.f32"),
              testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(dense("m16n8k16.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32"),
              testing::HasSubstr("an unsupported combination"));
  const std::string one = "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0";
  const std::string two = "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0";
  const std::string four =
      "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3";
  EXPECT_EQ(dense(one, ", %r10, {%h0, 1}, %r11, {3, %h1}"), "");
  EXPECT_EQ(dense(two, ", {%r10}, {2, 1}, {%r11}, {0, 3}"), "");
  EXPECT_EQ(dense(four, ", %r10, {0, 1}, %r11, {0, 3}"), "");
  EXPECT_THAT(dense(one), testing::HasSubstr("expected 8 operands, found 4"));
  EXPECT_THAT(dense(one, ", %r10, {4, 1}, %r11, {3, 0}"),
              testing::HasSubstr("operand 6: found 4, expected 0, 1, 2 or 3"));
  EXPECT_THAT(dense(one, ", %r10, {0, 2}, %r11, {3, 0}"),
              testing::HasSubstr("operand 6: found 2, expected 0 or 1"));
  EXPECT_THAT(dense(one, ", %r10, {0, 0}, %r11, {3, 4}"),
              testing::HasSubstr("operand 8: found 4, expected 0, 1, 2 or 3"));
  EXPECT_THAT(dense(two, ", %r10, {0, 0}, %r11, {1, 0}"),
              testing::HasSubstr("operand 8: found 1, expected 0 or 2"));
  EXPECT_THAT(dense(four, ", %r10, {2, 0}, %r11, {0, 0}"),
              testing::HasSubstr("operand 6: found 2, expected 0"));
  EXPECT_THAT(dense(one, ", %r10, {%r11, 0}, %r11, {0, 0}"),
              testing::HasSubstr("operand 6 has a register that is not of 16 bits"));
  EXPECT_THAT(dense(one, ", %h0, {0, 0}, %r11, {0, 0}"),
              testing::HasSubstr("operand 5 must be a register of 32 bits"));
  EXPECT_THAT(dense(one, ", %r10, {0, 0}, 127, {0, 0}"),
              testing::HasSubstr("operand 7 must be a register of 32 bits"));
  EXPECT_THAT(dense(one, ", %r10, {0}, %r11, {0, 0}"),
              testing::HasSubstr("the vector has the wrong number of elements"));
  EXPECT_THAT(
      dense("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
            ", %r10, {0, 0}, %r11, {0, 0}"),
      testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(dense("m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue4m3",
                    ", %r10, {0, 0}, %r11, {0, 0}"),
              testing::HasSubstr("lacks a modifier"));
}

TEST(SemanticsSparseMma, MultipliesWhatThereIs) {
  u64 seed = 1000;
  for (const std::string form : {"sp", "sp::ordered_metadata"}) {
    const auto all = [&](int k, const std::string& sum, const std::string& a, const std::string& b,
                         int selectors, const std::string& more = "") {
      for (int selector = 0; selector < selectors; ++selector) {
        const std::string text = fmt::format("{}.sync.aligned.m16n8k{}.row.col{}.{}.{}.{}.{}", form,
                                             k, more, sum, a, b, sum);
        check({text, k, a, b, sum, {}, true, selector}, seed++);
      }
    };
    all(16, "f32", "f16", "f16", 4);
    all(32, "f32", "f16", "f16", 2);
    all(16, "f16", "f16", "f16", 4);
    all(32, "f16", "f16", "f16", 2);
    all(16, "f32", "bf16", "bf16", 4);
    all(32, "f32", "bf16", "bf16", 2);
    all(8, "f32", "tf32", "tf32", 4);
    all(16, "f32", "tf32", "tf32", 2);
    all(64, "f32", "e4m3", "e5m2", 1);
    all(64, "f32", "e5m2", "e5m2", 1);
    all(32, "s32", "s8", "u8", 2);
    all(32, "s32", "u8", "u8", 2, ".satfinite");
    all(64, "s32", "u8", "s8", 1);
    all(64, "s32", "s8", "s8", 1, ".satfinite");
    all(64, "s32", "s4", "u4", 2);
    all(64, "s32", "u4", "s4", 2, ".satfinite");
    all(128, "s32", "u4", "u4", 1);
    all(128, "s32", "s4", "s4", 1, ".satfinite");
    if (form == "sp") continue;
    all(64, "f16", "e5m2", "e4m3", 1);
    for (const std::string a : kSmallTypes) {
      for (const std::string b : kSmallTypes) {
        all(64, seed % 2 == 0 ? "f32" : "f16", a, b, 1, ".kind::f8f6f4");
        check(
            {"sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32." +
                 a + "." + b + ".f32.ue8m0",
             64,
             a,
             b,
             "f32",
             {1, "ue8m0", 3, 1, static_cast<int>(seed % 4), 2},
             true},
            seed);
        ++seed;
      }
    }
    const std::string head = "sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::";
    const std::string types = ".f32.e2m1.e2m1.f32.";
    const auto four = [&](const std::string& kind, const Scales& scales) {
      check({head + kind + types + scales.type, 128, "packed", "packed", "f32", scales, true},
            seed++);
    };
    four("mxf4.block_scale", {2, "ue8m0", 2, 1, 0, 3});
    four("mxf4nvf4.block_scale.scale_vec::2X", {2, "ue8m0", 0, 0, 2, 1});
    four("mxf4nvf4.block_scale.scale_vec::4X", {4, "ue8m0", 0, 1, 0, 2});
    four("mxf4nvf4.block_scale.scale_vec::4X", {4, "ue4m3", 0, 0, 0, 0});
  }
}

/// An element of B where A has none counts for nothing, whatever it is.
TEST(SemanticsSparseMma, LeavesOutWhatIsNotThere) {
  Registers in(10);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    in[0][lane] = in[1][lane] = 0x3c003c00;                               // A: 1
    in[2][lane] = in[3][lane] = lane % 2 == 0 ? 0x3c003c00 : 0x7e007c00;  // B: 1, 1, inf, NaN
    in[8][lane] = 0x44444444;                                             // the first two of four
  }
  const Registers got =
      run("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, {%r0, "
          "%r1}, {%r2, %r3}, {%r4, %r5, %r6, %r7}, %r8, 0;",
          in, 4);
  for (const auto& lanes : got) {
    EXPECT_THAT(lanes, testing::Each(std::bit_cast<u32>(8.0F)));
  }
}

TEST(SemanticsSparseMma, WhatIsNotThereIsRefused) {
  const auto two = [](const std::string& modifiers, const std::string& behind) {
    return error_of(fmt::format("mma.{} {}, {{%r4, %r5}}, {{%r8, %r9}}, {}, {};", modifiers, kSums,
                                kSums, behind));
  };
  const auto four = [](const std::string& modifiers, const std::string& behind) {
    return error_of(
        fmt::format("mma.{} {}, {{%r4, %r5, %r6, %r7}}, {{%r8, %r9, %r10, %r11}}, {}, {};",
                    modifiers, kSums, kSums, behind));
  };
  const std::string sp = "sp.sync.aligned.";
  const std::string ordered = "sp::ordered_metadata.sync.aligned.";
  EXPECT_EQ(two(sp + "m16n8k16.row.col.f32.f16.f16.f32", "{%r12}, 3"), "");
  EXPECT_EQ(two("sync.aligned.sp.m16n8k16.row.col.f32.f16.f16.f32", "%r12, 3"), "");
  EXPECT_THAT(two(sp + "m16n8k16.row.col.f32.f16.f16.f32", "%r12, 4"),
              testing::HasSubstr("operand 6: found 4, expected 0, 1, 2 or 3"));
  EXPECT_THAT(two(sp + "m16n8k16.row.col.f32.f16.f16.f32", "%r12, %r13"),
              testing::HasSubstr("operand 6 must be a constant"));
  EXPECT_THAT(two(sp + "m16n8k16.row.col.f32.f16.f16.f32", "77, 0"),
              testing::HasSubstr("operand 5 must be a register of 32 bits"));
  EXPECT_THAT(two(sp + "m16n8k16.row.col.f32.f16.bf16.f32", "%r12, 0"),
              testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(two(sp + "m16n8k16.row.col.f32.f16.f16.f16", "%r12, 0"),
              testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(four(sp + "m16n8k32.row.col.f32.f16.f16.f32", "%r12, 2"),
              testing::HasSubstr("operand 6: found 2, expected 0 or 1"));
  EXPECT_THAT(four(sp + "m16n8k64.row.col.f32.e4m3.e4m3.f32", "%r12, 1"),
              testing::HasSubstr("operand 6: found 1, expected 0"));
  EXPECT_THAT(error_of("mma.sp.sync.aligned.m16n8k64.row.col.f16.e4m3.e4m3.f16 {%r0, %r1}, {%r4, "
                       "%r5, %r6, %r7}, {%r8, %r9, %r10, %r11}, {%r0, %r1}, %r12, 0;"),
              testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(four(sp + "m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32", "%r12, 0"),
              testing::HasSubstr("lacks a modifier, or is an unsupported combination"));
  EXPECT_EQ(four(ordered + "m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32", "%r12, 0"), "");
  EXPECT_THAT(four(ordered + "m16n8k32.row.col.f32.e4m3.e4m3.f32", "%r12, 0"),
              testing::HasSubstr("lacks a modifier, or is an unsupported combination"));
  EXPECT_THAT(four(ordered + "m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
                   "%r12, 0, %r13, {1, 0}, %r14, {0, 0}"),
              testing::HasSubstr("operand 8: found 1, expected 0 or 2"));
  EXPECT_THAT(four(sp + "m16n8k64.row.col.s32.s8.s8.s32", "%r12"),
              testing::HasSubstr("expected 6 operands, found 5"));
}

}  // namespace
}  // namespace braid::cpu_test
