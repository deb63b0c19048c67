// The matrix products that go one by one, and wmma, against the statements of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// A type of elements: how a small integer is written in it.
struct Kind {
  std::string name;
  int bits;
  Format format{};  ///< of floats
  bool is_signed = false;
  [[nodiscard]] bool is_float() const { return format.exponent_bits != 0; }
  [[nodiscard]] int register_bits() const { return std::max(bits, 32); }
  [[nodiscard]] int per_register() const { return register_bits() / bits; }
  [[nodiscard]] u64 spell(i64 value) const {
    if (is_float()) return encode(format, integer(value), Mode::kNearest);
    return static_cast<u64>(value) & (~u64{0} >> (64 - bits));
  }
  [[nodiscard]] i64 low() const { return bits == 1 || !is_signed ? 0 : bits == 4 ? -8 : -9; }
  [[nodiscard]] i64 high() const { return bits == 1 ? 1 : bits == 4 ? low() + 15 : 9; }
};
const Kind kinds[] = {{"f16", 16, kF16, true},
                      {"bf16", 16, kBf16, true},
                      {"tf32", 32, kF32, true},
                      {"f32", 32, kF32, true},
                      {"f64", 64, kF64, true},
                      {"e4m3", 8, Format{4, 3}, true},
                      {"e5m2", 8, Format{5, 2}, true},
                      {"s8", 8, {}, true},
                      {"u8", 8},
                      {"s4", 4, {}, true},
                      {"u4", 4},
                      {"b1", 1},
                      {"s32", 32, {}, true}};
const Kind& kind(const std::string& name) {
  return *std::find_if(std::begin(kinds), std::end(kinds),
                       [&](const Kind& k) { return k.name == name; });
}

/// A matrix of small integers.
struct Numbers {
  int rows, columns;
  std::vector<i64> values;
  Numbers(int r, int c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  i64& at(int row, int column) { return values[static_cast<std::size_t>(row * columns + column)]; }
  [[nodiscard]] i64 at(int row, int column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};
Numbers random_numbers(int rows, int columns, const Kind& of, Random& random) {
  Numbers out(rows, columns);
  for (i64& value : out.values) {
    // All exponents of e5m2 between these are covered by 3 bits.
    const i64 span = of.name == "e5m2" ? 8 : of.high() - of.low() + 1;
    value = (of.name == "e5m2" ? -4 : of.low()) +
            static_cast<i64>(random.next() % static_cast<u64>(span));
  }
  return out;
}

/// A B + C in whole numbers; of bits, how many pairs are both set, or differ.
Numbers product(const Numbers& a, const Numbers& b, const Numbers& c, const std::string& bit_op) {
  Numbers out = c;
  for (int row = 0; row < out.rows; ++row) {
    for (int column = 0; column < out.columns; ++column) {
      for (int k = 0; k < a.columns; ++k) {
        const i64 x = a.at(row, k);
        const i64 y = b.at(k, column);
        out.at(row, column) += bit_op == "xor" ? x ^ y : bit_op == "and" ? x & y : x * y;
      }
    }
  }
  return out;
}

enum class Side : std::uint8_t { kA, kB, kSum };
/// Row and column of element i of a lane.
using Layout = std::function<std::array<int, 2>(int lane, int i)>;

/// mma: with groupID = lane / 4 and threadID_in_group = lane % 4. Registers of a tall A hold rows
/// groupID and groupID + 8 in turn; elements of a register are neighbours along k.
Layout mma_layout(Side side, int m, int per) {
  return [=](int lane, int i) -> std::array<int, 2> {
    const int group = lane >> 2;
    const int thread = lane % 4;
    if (side == Side::kSum) return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
    if (side == Side::kB) return {thread * per + i % per + 4 * per * (i / per), group};
    if (m == 8) return {group, thread * per + i};
    return {i / per % 2 == 0 ? group : group + 8, thread * per + i % per + 4 * per * (i / per / 2)};
  };
}

/// The registers of a matrix as they lie in the lanes, 256 bytes for each.
std::vector<u8> registers_of(const Numbers& numbers, const Kind& of, const Layout& layout,
                             const std::function<bool(int)>& has_lane) {
  const int count = numbers.rows * numbers.columns * of.bits / 32 / of.register_bits();
  const int elements = std::max(count, 1) * of.per_register();
  std::vector<u8> out(static_cast<std::size_t>(std::max(count, 1)) * 256);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; has_lane(lane) && i < elements; ++i) {
      const auto [row, column] = layout(lane, i);
      const int r = i / of.per_register();
      u64 word = 0;
      u8* to = &out[static_cast<std::size_t>(256 * r + lane * of.register_bits() / 8)];
      std::memcpy(&word, to, static_cast<std::size_t>(of.register_bits()) / 8);
      word |= of.spell(numbers.at(row, column)) << (i % of.per_register() * of.bits);
      std::memcpy(to, &word, static_cast<std::size_t>(of.register_bits()) / 8);
    }
  }
  return out;
}

std::string list(char name, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, i);
  return out + "}";
}

/// Loads A, B and C as they lie in `in`, runs `text` on $a, $b, $c and $d, and stores D.
std::string kernel_of(std::string text, const std::array<int, 4>& counts,
                      const std::array<int, 4>& bits) {
  std::string body;
  int place = 0;
  for (int o = 0; o < 3; ++o) {
    for (int r = 0; r < counts[static_cast<std::size_t>(o)]; ++r) {
      const int width = bits[static_cast<std::size_t>(o)];
      body += fmt::format("mad.wide.u32 %P, %i, {}, %I; ld.global.b{} %{}{}, [%P+{}];\n", width / 8,
                          width, "abc"[o], r, 256 * place++);
    }
  }
  for (int o = 0; o < 4; ++o) {
    const std::string name = std::string("$") + "abcd"[o];
    text.replace(text.find(name), 2, list("abcd"[o], counts[static_cast<std::size_t>(o)]));
  }
  body += text + "\n";
  for (int r = 0; r < counts[3]; ++r) {
    body += fmt::format("mad.wide.u32 %P, %i, {}, %O; st.global.b{} [%P+{}], %d{};\n", bits[3] / 8,
                        bits[3], 256 * r, r);
  }
  return fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b{} %a<9>;
.reg .b{} %b<9>;
.reg .b{} %c<9>;
.reg .b{} %d<9>;
.reg .b32 %i;
.reg .b64 %I, %O, %P;
ld.param.u64 %O, [out];
ld.param.u64 %I, [in];
mov.u32 %i, %laneid;
{}ret;
}}
)",
                     bits[0], bits[1], bits[2], bits[3], body);
}

struct Mma {
  int m, n, k;
  const char *d, *a, *b, *c;
  const char* bit_op = "";
  bool saturate = false;
};
const Mma kMmas[] = {
    {16, 8, 16, "f32", "e4m3", "e5m2", "f32"},      {16, 8, 16, "f16", "e5m2", "e4m3", "f16"},
    {16, 8, 32, "f16", "e4m3", "e4m3", "f16"},      {8, 8, 16, "s32", "s8", "u8", "s32"},
    {8, 8, 16, "s32", "u8", "s8", "s32", "", true}, {8, 8, 32, "s32", "s4", "s4", "s32"},
    {8, 8, 32, "s32", "u4", "s4", "s32"},           {16, 8, 32, "s32", "s4", "u4", "s32"},
    {16, 8, 64, "s32", "u4", "u4", "s32"},          {16, 8, 64, "s32", "s4", "s4", "s32", "", true},
    {8, 8, 128, "s32", "b1", "b1", "s32", "xor"},   {16, 8, 128, "s32", "b1", "b1", "s32", "and"},
    {16, 8, 256, "s32", "b1", "b1", "s32", "xor"},  {8, 8, 4, "f64", "f64", "f64", "f64"},
    {16, 8, 4, "f64", "f64", "f64", "f64"},         {16, 8, 8, "f64", "f64", "f64", "f64"},
    {16, 8, 16, "f64", "f64", "f64", "f64"}};

class SemanticsMatrix : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, SemanticsMatrix, testing::Range<std::size_t>(0, std::size(kMmas)));

TEST_P(SemanticsMatrix, IsATripleLoop) {
  const Mma& mma = kMmas[GetParam()];
  Random random(200 + GetParam());
  const Kind& of_d = kind(mma.d);
  const Numbers a = random_numbers(mma.m, mma.k, kind(mma.a), random);
  const Numbers b = random_numbers(mma.k, mma.n, kind(mma.b), random);
  Numbers c = random_numbers(mma.m, mma.n, kind(mma.c), random);
  // Sums that do not fit wrap, or stop at the end.
  if (mma.saturate) c.values[3] = INT32_MAX, c.values[4] = INT32_MIN;
  Numbers want = product(a, b, c, mma.bit_op);
  if (mma.saturate) {
    for (i64& value : want.values) value = std::clamp<i64>(value, INT32_MIN, INT32_MAX);
  }
  std::vector<u8> in;
  std::array<int, 4> counts{};
  std::array<int, 4> bits{};
  const auto add = [&](std::size_t o, const Numbers& numbers, const char* type, Side side) {
    const Kind& of = kind(type);
    const auto bytes = registers_of(numbers, of, mma_layout(side, mma.m, of.per_register()),
                                    [](int) { return true; });
    in.insert(in.end(), bytes.begin(), bytes.end());
    counts[o] = static_cast<int>(bytes.size() / 256);
    bits[o] = of.register_bits();
  };
  add(0, a, mma.a, Side::kA);
  add(1, b, mma.b, Side::kB);
  add(2, c, mma.c, Side::kSum);
  counts[3] = counts[2];
  bits[3] = of_d.register_bits();
  const bool is_bits = *mma.bit_op != 0;
  const std::string text =
      fmt::format("mma.sync.aligned.m{}n{}k{}.row.col{}.{}.{}.{}.{}{} $d, $a, $b, $c;", mma.m,
                  mma.n, mma.k, mma.saturate ? ".satfinite" : "", mma.d, mma.a, mma.b, mma.c,
                  is_bits ? std::string(".") + mma.bit_op + ".popc" : "");
  Bench bench = Bench::from_ptx(kernel_of(text, counts, bits));
  const std::size_t size = static_cast<std::size_t>(counts[3]) * 256;
  const u64 out = bench.upload(std::vector<u8>(size));
  bench.run({1}, {32}, 0, out, bench.upload(in));
  EXPECT_EQ(bench.download<u8>(out, size),
            registers_of(want, of_d, mma_layout(Side::kSum, mma.m, of_d.per_register()),
                         [](int) { return true; }))
      << text;
}

/// mma.m8n8k4 of f16: lanes 0-3 and 16-19 make the first product, and so on.
TEST(SemanticsQuads, FourProducts) {
  for (const bool a_columns : {false, true}) {
    for (const bool b_rows : {false, true}) {
      for (const std::string type : {"f32", "f16"}) {
        Random random(300);
        const Kind& sum = kind(type);
        const Layout layout_a = [=](int lane, int i) -> std::array<int, 2> {
          const int high = lane < 16 ? 0 : 4;
          if (a_columns) return {i % 4 + high, lane % 4};
          return {lane % 4 + high, i};
        };
        const Layout layout_b = [=](int lane, int i) -> std::array<int, 2> {
          const int high = lane < 16 ? 0 : 4;
          if (b_rows) return {lane % 4, i + high};
          return {i, lane % 4 + high};
        };
        const Layout layout_sum = [=](int lane, int i) -> std::array<int, 2> {
          const int high = lane < 16 ? 0 : 4;
          if (type == "f16") return {lane % 4 + high, i};
          return {(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
        };
        const auto count = static_cast<std::size_t>(type == "f16" ? 4 : 8);
        std::vector<u8> in((4 + count) * 256);
        std::vector<u8> want(count * 256);
        for (int p = 0; p < 4; ++p) {
          const Numbers a = random_numbers(8, 4, kind("f16"), random);
          const Numbers b = random_numbers(4, 8, kind("f16"), random);
          const Numbers c = random_numbers(8, 8, sum, random);
          // Computed for four times as many, of which a lane holds the part of its own product.
          const auto place = [&](std::vector<u8>& into, std::size_t first, const Numbers& numbers,
                                 const Kind& of, const Layout& layout, int registers) {
            for (int lane = 0; lane < 32; ++lane) {
              if (lane % 16 / 4 != p) continue;
              for (int i = 0; i < registers * of.per_register(); ++i) {
                const auto [row, column] = layout(lane, i);
                const u64 bits = of.spell(numbers.at(row, column));
                std::memcpy(&into[first + static_cast<std::size_t>(
                                              256 * (i / of.per_register()) + 4 * lane +
                                              i % of.per_register() * of.bits / 8)],
                            &bits, static_cast<std::size_t>(of.bits) / 8);
              }
            }
          };
          place(in, 0, a, kind("f16"), layout_a, 2);
          place(in, 512, b, kind("f16"), layout_b, 2);
          place(in, 1024, c, sum, layout_sum, static_cast<int>(count));
          place(want, 0, product(a, b, c, ""), sum, layout_sum, static_cast<int>(count));
        }
        const std::string text =
            fmt::format("mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{} $d, $a, $b, $c;",
                        a_columns ? "col" : "row", b_rows ? "row" : "col", type, type);
        const int n = static_cast<int>(count);
        Bench bench = Bench::from_ptx(kernel_of(text, {2, 2, n, n}, {32, 32, 32, 32}));
        const u64 out = bench.upload(std::vector<u8>(want.size()));
        bench.run({1}, {32}, 0, out, bench.upload(in));
        EXPECT_EQ(bench.download<u8>(out, want.size()), want) << text;
      }
    }
  }
}

struct Wmma {
  int m, n, k;
  const char *d, *a, *b, *c;
  const char* bit_op = "";
  bool saturate = false;
};
const Wmma kWmmas[] = {
    {16, 16, 16, "f32", "f16", "f16", "f32"},     {8, 32, 16, "f16", "f16", "f16", "f16"},
    {32, 8, 16, "f32", "f16", "f16", "f16"},      {16, 16, 16, "f16", "f16", "f16", "f32"},
    {16, 16, 16, "f32", "bf16", "bf16", "f32"},   {8, 32, 16, "f32", "bf16", "bf16", "f32"},
    {32, 8, 16, "f32", "bf16", "bf16", "f32"},    {16, 16, 8, "f32", "tf32", "tf32", "f32"},
    {16, 16, 16, "s32", "s8", "s8", "s32"},       {8, 32, 16, "s32", "u8", "u8", "s32", "", true},
    {32, 8, 16, "s32", "s8", "s8", "s32"},        {8, 8, 4, "f64", "f64", "f64", "f64"},
    {8, 8, 32, "s32", "s4", "s4", "s32"},         {8, 8, 32, "s32", "u4", "u4", "s32", "", true},
    {8, 8, 128, "s32", "b1", "b1", "s32", "xor"}, {8, 8, 128, "s32", "b1", "b1", "s32", "and"}};

/// A matrix in memory: rows (or columns) `stride` elements apart, as short as it can be.
std::vector<u8> memory_of(const Numbers& numbers, const Kind& of, bool by_columns, int stride) {
  const int lines = by_columns ? numbers.columns : numbers.rows;
  const int length = by_columns ? numbers.rows : numbers.columns;
  std::vector<u8> out(static_cast<std::size_t>(((lines - 1) * stride + length) * of.bits / 8));
  for (int line = 0; line < lines; ++line) {
    for (int k = 0; k < length; ++k) {
      const u64 bits = of.spell(by_columns ? numbers.at(k, line) : numbers.at(line, k));
      const auto at = static_cast<std::size_t>((line * stride + k) * of.bits);
      for (std::size_t bit = 0; bit < static_cast<std::size_t>(of.bits); ++bit) {
        const u64 one = bits >> bit & 1;
        out[(at + bit) / 8] = static_cast<u8>(out[(at + bit) / 8] | one << (at + bit) % 8);
      }
    }
  }
  return out;
}

class SemanticsWmma : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, SemanticsWmma, testing::Range<std::size_t>(0, std::size(kWmmas)));

struct Layouts {
  bool a_columns, b_columns, c_columns, d_columns, strided;
};

/// load, mma and store, from and to global memory (and shared memory for A).
std::string wmma_kernel(const Wmma& w, const Layouts& how, const std::array<int, 4>& strides) {
  const auto registers = [&](Side side, const Kind& of) {
    if (side != Side::kSum && of.name == "f16") return 8;
    const int size = side == Side::kA ? w.m * w.k : side == Side::kB ? w.k * w.n : w.m * w.n;
    return size * of.bits / 32 / of.register_bits();
  };
  const auto order = [](bool columns) { return columns ? "col" : "row"; };
  const auto stride = [&](std::size_t o) {
    return how.strided ? fmt::format(", {}", strides[o]) : std::string();
  };
  const std::string shape = fmt::format("m{}n{}k{}", w.m, w.n, w.k);
  const bool is_half = std::string(w.a) == "f16";
  std::string text;
  text += fmt::format("wmma.load.a.sync.aligned.{}.{}.{} {}, [%A]{};\n", order(how.a_columns),
                      shape, w.a, list('a', registers(Side::kA, kind(w.a))), stride(0));
  text +=
      fmt::format("wmma.load.b.sync.aligned.{}.{}.global.{} {}, [%B]{};\n", order(how.b_columns),
                  shape, w.b, list('b', registers(Side::kB, kind(w.b))), stride(1));
  text +=
      fmt::format("wmma.load.c.sync.aligned.{}.{}.global.{} {}, [%C]{};\n", order(how.c_columns),
                  shape, w.c, list('c', registers(Side::kSum, kind(w.c))), stride(2));
  const std::string op = *w.bit_op != 0 ? std::string(".") + w.bit_op + ".popc" : "";
  text += fmt::format(
      "wmma.mma{}.sync.aligned.{}.{}.{}.{}{}.{}{} {}, {}, {}, {};\n", op, order(how.a_columns),
      order(how.b_columns), shape, w.d, is_half ? "" : fmt::format(".{}.{}", w.a, w.b), w.c,
      w.saturate ? ".satfinite" : "", list('d', registers(Side::kSum, kind(w.d))),
      list('a', registers(Side::kA, kind(w.a))), list('b', registers(Side::kB, kind(w.b))),
      list('c', registers(Side::kSum, kind(w.c))));
  text +=
      fmt::format("wmma.store.d.sync.aligned.{}.{}.global.{} [%D], {}{};\n", order(how.d_columns),
                  shape, w.d, list('d', registers(Side::kSum, kind(w.d))), stride(3));
  const auto type = [](const char* name) {
    const std::string of = name;
    return of == "f64" || of == "f32" ? of : std::string("b32");
  };
  return fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)
{{
.reg .{} %a<9>;
.reg .{} %b<9>;
.reg .{} %c<9>;
.reg .{} %d<9>;
.reg .b64 %A, %B, %C, %D;
ld.param.u64 %A, [pa];
ld.param.u64 %B, [pb];
ld.param.u64 %C, [pc];
ld.param.u64 %D, [pd];
{}ret;
}}
)",
                     type(w.a), type(w.b), type(w.c), type(w.d), text);
}

TEST_P(SemanticsWmma, LoadsMultipliesAndStores) {
  const Wmma& w = kWmmas[GetParam()];
  const bool along_k = kind(w.a).bits < 8;
  for (const Layouts how :
       {Layouts{false, true, false, false, false}, Layouts{true, false, true, false, true},
        Layouts{false, false, false, true, true}, Layouts{true, true, true, true, false}}) {
    if (along_k && (how.a_columns || !how.b_columns)) continue;
    Random random(400 + GetParam());
    const Numbers a = random_numbers(w.m, w.k, kind(w.a), random);
    const Numbers b = random_numbers(w.k, w.n, kind(w.b), random);
    Numbers c = random_numbers(w.m, w.n, kind(w.c), random);
    if (w.saturate) c.values[3] = INT32_MAX, c.values[4] = INT32_MIN;
    Numbers want = product(a, b, c, w.bit_op);
    if (w.saturate) {
      for (i64& value : want.values) value = std::clamp<i64>(value, INT32_MIN, INT32_MAX);
    }
    std::array<int, 4> strides{};
    const auto bytes = [&](std::size_t o, const Numbers& numbers, const char* type, bool columns) {
      strides[o] = (columns ? numbers.rows : numbers.columns) + (how.strided ? 128 : 0);
      return memory_of(numbers, kind(type), columns, strides[o]);
    };
    const auto of_a = bytes(0, a, w.a, how.a_columns);
    const auto of_b = bytes(1, b, w.b, how.b_columns);
    const auto of_c = bytes(2, c, w.c, how.c_columns);
    const auto of_d = bytes(3, want, w.d, how.d_columns);
    // Under the sanitizer, which knows where the matrices end.
    Bench bench =
        Bench::from_ptx(wmma_kernel(w, how, strides), {.threads = 1, .checks = kCheckBounds});
    const u64 out = bench.upload(std::vector<u8>(of_d.size()));
    bench.run({1}, {32}, 0, bench.upload(of_a), bench.upload(of_b), bench.upload(of_c), out);
    EXPECT_EQ(bench.download<u8>(out, of_d.size()), of_d) << wmma_kernel(w, how, strides);
    EXPECT_TRUE(found_by(bench.device()).empty());
  }
}

TEST(SemanticsWmma, EndsWhereItsMatricesEnd) {
  const Wmma& w = kWmmas[0];
  Bench bench = Bench::from_ptx(wmma_kernel(w, {}, {}), {.threads = 1, .checks = kCheckBounds});
  const u64 a = bench.upload(std::vector<u8>(512 - 2));
  const u64 b = bench.upload(std::vector<u8>(512));
  EXPECT_THROW(bench.run({1}, {32}, 0, a, b, bench.upload(std::vector<u8>(1024)),
                         bench.upload(std::vector<u8>(1024))),
               Error);
  const std::vector<Finding> findings = found_by(bench.device());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "bounds");
}

/// Products and sums of f64 are rounded once for each k, as the modifier says.
TEST(SemanticsWmma, RoundsFloat64) {
  constexpr const char* kHead = "wmma.mma.sync.aligned.row.col.m8n8k4.";
  constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  for (std::size_t mode = 0; mode < 4; ++mode) {
    Random random(500);
    std::array<std::vector<double>, 3> values;
    for (std::size_t o = 0; o < 3; ++o) {
      for (int i = 0; i < (o == 2 ? 64 : 32); ++i) {
        values[o].push_back(std::ldexp(static_cast<double>(random.next() >> 11), -52) - 1);
      }
    }
    std::string text = wmma_kernel(kWmmas[11], {false, true, false, false, false}, {});
    const std::string head = kHead;
    text.insert(text.find(head) + head.size(), std::string(kModeNames[mode]) + ".");
    Bench bench = Bench::from_ptx(text);
    const u64 out = bench.upload(std::vector<double>(64));
    bench.run({1}, {32}, 0, bench.upload(values[0]), bench.upload(values[1]),
              bench.upload(values[2]), out);
    const auto got = bench.download<double>(out, 64);
    std::fesetround(kHostModes[mode]);
    for (std::size_t row = 0; row < 8; ++row) {
      for (std::size_t column = 0; column < 8; ++column) {
        volatile double sum = values[2][row * 8 + column];
        for (std::size_t k = 0; k < 4; ++k) {
          sum = std::fma(values[0][row * 4 + k], values[1][column * 4 + k], sum);
        }
        EXPECT_EQ(got[row * 8 + column], sum) << kModeNames[mode];
      }
    }
    std::fesetround(FE_TONEAREST);
  }
}

/// The same for mma: a lane has A(lane / 4, lane % 4), B(lane % 4, lane / 4) and two columns of C.
TEST(SemanticsMma, RoundsFloat64) {
  constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  Random random(501);
  std::vector<double> in;
  for (int i = 0; i < 32 * 4; ++i) {
    in.push_back(std::ldexp(static_cast<double>(random.next() >> 11), -52) - 1);
  }
  for (std::size_t mode = 0; mode < 4; ++mode) {
    Bench bench = Bench::from_ptx(fmt::format(
        R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b32 %i; .reg .b64 %O, %I, %o; .reg .f64 %d<6>;
ld.param.u64 %O, [out]; ld.param.u64 %I, [in]; mov.u32 %i, %tid.x;
mul.wide.u32 %o, %i, 32; add.u64 %I, %I, %o; mul.wide.u32 %o, %i, 16; add.u64 %O, %O, %o;
ld.global.v2.f64 {{%d0, %d1}}, [%I]; ld.global.v2.f64 {{%d2, %d3}}, [%I+16];
mma.sync.aligned.m8n8k4.row.col.{}.f64.f64.f64.f64 {{%d4, %d5}}, {{%d0}}, {{%d1}}, {{%d2, %d3}};
st.global.v2.f64 [%O], {{%d4, %d5}};
ret;
}}
)",
        kModeNames[mode]));
    const u64 out = bench.upload(std::vector<double>(64));
    bench.run({1}, {32}, 0, out, bench.upload(in));
    const auto got = bench.download<double>(out, 64);
    std::fesetround(kHostModes[mode]);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t i = 0; i < 2; ++i) {
        volatile double sum = in[lane * 4 + 2 + i];
        const std::size_t column = 2 * (lane % 4) + i;
        for (std::size_t k = 0; k < 4; ++k) {
          sum = std::fma(in[(lane / 4 * 4 + k) * 4], in[(column * 4 + k) * 4 + 1], sum);
        }
        EXPECT_EQ(got[2 * lane + i], sum) << kModeNames[mode] << " " << lane;
      }
    }
    std::fesetround(FE_TONEAREST);
  }
}

TEST(SemanticsMma, WhatIsNotThereIsRefused) {
  const auto error_of = [](const std::string& instruction) -> std::string {
    return cpu_test::error_of([&] {
      Bench::from_ptx(
          ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
          ".reg .b32 %r<32>; .reg .b64 %rd;\n" +
          instruction + "\nret; }\n");
    });
  };
  EXPECT_THAT(error_of("wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r0, %r1, %r2, %r3}, [%rd];"),
              testing::HasSubstr("ptx:6: 'wmma.load.a.sync.aligned.row.m16n16k8.f16': an "
                                 "unsupported combination"));
  EXPECT_THAT(error_of("wmma.load.b.sync.aligned.row.m8n8k128.b1 {%r0}, [%rd];"),
              testing::HasSubstr("an unsupported combination"));
  EXPECT_THAT(error_of("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1}, [%rd];"),
              testing::HasSubstr("the vector has the wrong number of elements"));
}

}  // namespace
}  // namespace braid::cpu_test
