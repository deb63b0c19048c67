// Loads, stores, atomics, copies and special registers against the statements of the PTX manual.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// The place of a thread's 32 bytes.
struct Place {
  const char* space;
  const char* setup;  ///< leaves the address in `at`
  const char* at;
};
const Place kPlaces[] = {
    {".shared", "", "%m"},
    {".local", "", "L"},
    {".local", "mov.u64 %T7, L; ", "%T7"},
    {"", "cvt.u64.u32 %T7, %m; cvta.shared.u64 %T7, %T7; ", "%T7"},
    {"", "mov.u64 %T7, L; cvta.local.u64 %T7, %T7; ", "%T7"},
};

/// The content of the 32 bytes: the three operands and the sum of the first two.
std::array<u8, 32> bytes_of(u64 a, u64 b, u64 c) {
  const u64 words[] = {a, b, c, a + b};
  std::array<u8, 32> bytes{};
  std::memcpy(bytes.data(), words, 32);
  return bytes;
}
std::string fill(const Place& place) {
  return fmt::format(
      "{0} st{1}.v2.b64 [{2}], {{%A, %B}}; add.s64 %T0, %A, %B;"
      "st{1}.b64 [{2}+16], %C; st{1}.b64 [{2}+24], %T0; ",
      place.setup, place.space, place.at);
}
/// Mixes up to four values to one that none can leave unnoticed.
u64 mix(const std::vector<u64>& values) {
  u64 out = 0;
  for (const u64 value : values) out = out * 0x100000001b3 + value;
  return out;
}
std::string mix_text(int count) {
  std::string out = "mov.u64 %D, 0; ";
  for (int k = 0; k < count; ++k) out += fmt::format("mad.lo.u64 %D, %D, 0x100000001b3, %T{}; ", k);
  return out;
}
std::string list(const char* name, int count) {
  if (count == 1) return fmt::format("%{}0", name);
  std::string out = "{";
  for (int k = 0; k < count; ++k) out += fmt::format("{}%{}{}", k == 0 ? "" : ", ", name, k);
  return out + "}";
}

struct Element {
  const char* name;
  int bytes;
  bool is_signed;
};
constexpr Element kElements[] = {
    {"u8", 1, false},  {"s8", 1, true},  {"b8", 1, false},  {"u16", 2, false}, {"s16", 2, true},
    {"u32", 4, false}, {"s32", 4, true}, {"f32", 4, false}, {"u64", 8, false}, {"f64", 8, false}};

u64 element(const u8* bytes, const Element& type) {
  u64 value = 0;
  std::memcpy(&value, bytes, static_cast<std::size_t>(type.bytes));
  const int unused = 64 - 8 * type.bytes;
  return type.is_signed ? static_cast<u64>(static_cast<i64>(value << unused) >> unused) : value;
}

/// Rows that load `count` elements from `offset` of the 32 bytes on, into registers of 64 bits.
Row load_row(const Place& place, const std::string& modifiers, const Element& type, int count,
             int offset) {
  // Loaded f32 need a register of their size.
  const bool exact = type.name[0] == 'f' && type.bytes == 4;
  std::string text =
      fill(place) + fmt::format("ld{}.{}{} {}, [{}+{}]; ", modifiers,
                                count == 1 ? "" : fmt::format("v{}.", count), type.name,
                                list(exact ? "t" : "T", count), place.at, offset);
  for (int k = 0; exact && k < count; ++k) text += fmt::format("cvt.u64.u32 %T{0}, %t{0}; ", k);
  return row(text + mix_text(count), [=](u64 a, u64 b, u64 c) {
    const auto bytes = bytes_of(a, b, c);
    std::vector<u64> values;
    for (int k = 0; k < count; ++k) {
      values.push_back(element(bytes.data() + offset + k * type.bytes, type));
    }
    return mix(values);
  });
}
Row store_row(const Place& place, const std::string& modifiers, const Element& type, int count,
              int offset) {
  const bool exact = type.name[0] == 'f' && type.bytes == 4;
  std::string text = fill(place) +
                     "mov.u64 %T0, %C; mov.u64 %T1, %A; not.b64 %T2, %B; "
                     "xor.b64 %T3, %A, %C; ";
  for (int k = 0; exact && k < count; ++k) text += fmt::format("cvt.u32.u64 %t{0}, %T{0}; ", k);
  text += fmt::format("st{0}.{1}{2} [{3}+{4}], {5}; ", modifiers,
                      count == 1 ? "" : fmt::format("v{}.", count), type.name, place.at, offset,
                      list(exact ? "t" : "T", count));
  for (int k = 0; k < 4; ++k) {
    text += fmt::format("ld{}.b64 %T{}, [{}+{}]; ", place.space, k, place.at, 8 * k);
  }
  return row(text + mix_text(4), [=](u64 a, u64 b, u64 c) {
    auto bytes = bytes_of(a, b, c);
    const u64 values[] = {c, a, ~b, a ^ c};
    for (int k = 0; k < count; ++k) {
      std::memcpy(bytes.data() + offset + k * type.bytes, &values[k],
                  static_cast<std::size_t>(type.bytes));
    }
    std::vector<u64> words(4);
    std::memcpy(words.data(), bytes.data(), 32);
    return mix(words);
  });
}

class SemanticsSpaces : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, SemanticsSpaces, testing::Range<std::size_t>(0, std::size(kPlaces)));

TEST_P(SemanticsSpaces, LoadsAndStores) {
  const Place& place = kPlaces[GetParam()];
  std::vector<Row> rows;
  for (const Element& type : kElements) {
    for (const int count : {1, 2, 4}) {
      if (count * type.bytes > 16) continue;
      const int offset = 16 / (type.bytes * count) % 2 * 16 + (count == 1 ? type.bytes : 0);
      rows.push_back(load_row(place, place.space, type, count, offset % 32));
      rows.push_back(store_row(place, place.space, type, count, offset % 32));
    }
  }
  if (GetParam() == 0) {
    const std::string space = ".shared";
    for (const std::string order : {".volatile", ".relaxed.cta", ".relaxed.sys", ".acquire.gpu"}) {
      rows.push_back(load_row(place, order + space, kElements[4], 1, 2));
      rows.push_back(load_row(place, order + space, kElements[5], 1, 4));
    }
    for (const std::string order : {".volatile", ".relaxed.gpu", ".release.gpu"}) {
      rows.push_back(store_row(place, order + space, kElements[5], 1, 4));
      rows.push_back(store_row(place, order + space, kElements[8], 1, 8));
    }
  }
  check(rows, make_inputs(integer_edges(), 51), false);
}

/// Global loads with the hints a compiler emits, from the inputs themselves: those of a thread are
/// next to those of its neighbour, or all the same.
TEST(SemanticsMemory, HintsAndNeighbours) {
  std::vector<Row> rows;
  const char* hints[] = {"",
                         ".nc",
                         ".ca",
                         ".cg",
                         ".cs",
                         ".lu",
                         ".cv",
                         ".nc.L1::no_allocate",
                         ".L1::evict_first",
                         ".L1::evict_last",
                         ".L2::128B",
                         ".nc.L1::no_allocate.L2::256B"};
  for (const char* hint : hints) {
    const std::string text = fmt::format("ld.global{}", hint);
    rows.push_back(row(text + ".u64 %D, [%I];", [](u64 a) { return a; }));
    rows.push_back(row(text + ".s8 %d, [%I+3];",
                       [](u64 a) { return static_cast<i32>(static_cast<i8>(a >> 24)); }));
    rows.push_back(row(text + ".v4.u8 {%t0, %t1, %t2, %t3}, [%I+4]; mad.lo.u32 %d, %t0, 3, %t1;"
                              "mad.lo.u32 %d, %d, 5, %t2; mad.lo.u32 %d, %d, 7, %t3;",
                       [](u64 a) {
                         const auto byte = [&](int k) {
                           return static_cast<u32>(a >> (32 + 8 * k)) & 0xff;
                         };
                         return ((byte(0) * 3 + byte(1)) * 5 + byte(2)) * 7 + byte(3);
                       }));
    rows.push_back(row(text + ".v2.f32 {%t0, %t1}, [%I]; mov.b64 %D, {%t1, %t0};",
                       [](u64 a) { return a << 32 | a >> 32; }));
    rows.push_back(row(
        text + ".v4.b16 {%s0, %s1, %s2, %s3}, [%I]; mov.b64 %D, {%s3, %s2, %s1, %s0};",
        [](u64 a) { return a << 48 | (a & 0xffff0000) << 16 | (a >> 16 & 0xffff0000) | a >> 48; }));
  }
  check(rows, make_inputs(integer_edges(), 52));
}

/// The operation `op` of atom and red on integers.
u64 applied(const std::string& op, int bits, bool is_signed, u64 old, u64 a, u64 b) {
  const u64 mask = ~u64{0} >> (64 - bits);
  old &= mask;
  a &= mask;
  b &= mask;
  const auto below = [&](u64 x, u64 y) {
    return is_signed ? static_cast<i64>(x << (64 - bits)) < static_cast<i64>(y << (64 - bits))
                     : x < y;
  };
  if (op == "add") return (old + a) & mask;
  if (op == "min") return below(a, old) ? a : old;
  if (op == "max") return below(old, a) ? a : old;
  if (op == "and") return old & a;
  if (op == "or") return old | a;
  if (op == "xor") return old ^ a;
  if (op == "exch") return a;
  if (op == "cas") return old == a ? b : old;
  if (op == "inc") return old >= a ? 0 : old + 1;
  return old == 0 || old > a ? a : old - 1;
}

TEST(SemanticsMemory, Atomics) {
  std::vector<Row> rows;
  const Place& place = kPlaces[0];
  const std::pair<const char*, std::vector<const char*>> table[] = {
      {"add", {"u32", "s32", "u64"}},
      {"min", {"u32", "s32", "u64", "s64"}},
      {"max", {"u32", "s32", "u64", "s64"}},
      {"and", {"b32", "b64"}},
      {"or", {"b32", "b64"}},
      {"xor", {"b32", "b64"}},
      {"exch", {"b32", "b64"}},
      {"cas", {"b16", "b32", "b64"}},
      {"inc", {"u32"}},
      {"dec", {"u32"}}};
  for (const auto& [op_name, types] : table) {
    for (const std::string type : types) {
      const std::string op = op_name;
      const int bits = std::stoi(type.substr(1));
      const bool is_signed = type[0] == 's';
      // Often the old value is that compared with, or its neighbour.
      const std::string start =
          "and.b64 %T1, %C, 1; add.s64 %T1, %T1, %A; setp.lt.s64 %q0, %C, 0;"
          "selp.b64 %T1, %T1, %B, %q0; ";
      const auto old_of = [](u64 a, u64 b, u64 c) {
        return static_cast<i64>(c) < 0 ? a + (c & 1) : b;
      };
      const std::string wide = bits == 64 ? "T" : bits == 32 ? "t" : "s";
      const std::string operand = bits == 64 ? "%A" : bits == 32 ? "%a" : "%ha";
      const std::string third = bits == 64 ? "%C" : bits == 32 ? "%c" : "%hc";
      for (const bool returns : {true, false}) {
        if (!returns && (op == "exch" || op == "cas")) continue;
        const std::string text =
            std::string(place.setup) + start + fmt::format("st.shared.b64 [{}], %T1; ", place.at) +
            fmt::format("mov.b{} %{}2, {}; ", bits, wide, operand) +
            (returns ? fmt::format("atom.relaxed.gpu.shared.{}.{} %{}2, [{}], {}{}; ", op, type,
                                   wide, place.at, operand, op == "cas" ? ", " + third : "")
                     : fmt::format("red.shared.{}.{} [{}], {}; ", op, type, place.at, operand)) +
            fmt::format("ld.shared.b64 %T3, [{}]; cvt.u64.u{} %T2, %{}2; ", place.at, bits, wide) +
            "mad.lo.u64 %D, %T3, 0x100000001b3, %T2;";
        rows.push_back(row(text, [=](u64 a, u64 b, u64 c) {
          const u64 mask = ~u64{0} >> (64 - bits);
          const u64 old = old_of(a, b, c);
          const u64 fresh = (old & ~mask) | applied(op, bits, is_signed, old, a, c);
          return fresh * 0x100000001b3 + ((returns ? old : a) & mask);
        }));
      }
    }
  }
  check(rows, make_inputs(integer_edges(), 53), false);
}

TEST(SemanticsMemory, AtomicsOnFloats) {
  struct Case {
    const char* type;
    Format format;
    int bits;
  };
  for (const Case& c : {Case{"f32", kF32, 32}, Case{"f64", kF64, 64}, Case{"noftz.f16", kF16, 16},
                        Case{"noftz.f16x2", kF16, 32}, Case{"noftz.bf16", kBf16, 16},
                        Case{"noftz.bf16x2", kBf16, 32}}) {
    const std::string text =
        spell(fmt::format("st.shared.b{0} [%m], $a; atom.shared.add.{1} $x, [%m], $b;"
                          "ld.shared.b{0} $d, [%m];",
                          c.bits, c.type),
              c.bits, "");
    Row sum;
    sum.text = text;
    sum.bits = c.bits;
    sum.want = [c](const Inputs& in, std::size_t i) {
      u64 out = 0;
      for (int at = 0; at < c.bits; at += c.format.bits()) {
        const Number total =
            add(decode(c.format, in.a[i] >> at), decode(c.format, in.b[i] >> at), Mode::kNearest);
        out |= encode(c.format, total, Mode::kNearest) << at;
      }
      return out;
    };
    const Inputs inputs = make_inputs(float_edges(c.format), 54);
    check({sum.floats(c.format)}, c.bits == 2 * c.format.bits() ? pack_halves(inputs) : inputs,
          false);
  }
}

/// All lanes of the grid add to one cell, and no addition is lost.
TEST(SemanticsMemory, AtomicsOfAllThreads) {
  Bench bench = Bench::from_ptx(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .b32 %r<8>;
.reg .b64 %O;
.reg .pred %p;
ld.param.u64 %O, [out];
mov.u32 %r0, %tid.x;
and.b32 %r1, %r0, 3;
setp.ne.b32 %p, %r1, 0;
red.global.add.u32 [%O], %r1;
@%p atom.global.inc.u32 %r2, [%O+4], 99;
red.global.max.s32 [%O+8], %r0;
@!%p red.global.xor.b32 [%O+12], %r0;
ret;
}
)");
  const u64 out = bench.upload(std::vector<u32>(4));
  bench.run({8}, {96}, 0, out);
  u32 parity = 0;
  for (u32 t = 0; t < 96; t += 4) parity ^= t;
  EXPECT_EQ(bench.download<u32>(out, 4),
            (std::vector<u32>{8 * 96 / 4 * 6, 8 * 72 % 100, 95, 8 % 2 * parity}));
}

/// cp.async from the inputs: `size` bytes, of which the first some, the others zeros.
TEST(SemanticsMemory, AsyncCopies) {
  std::vector<Row> rows;
  const Place& place = kPlaces[0];
  for (const int size : {4, 8, 16}) {
    for (const std::string tail : {"", ", %t0", ", 3", ", %q0"}) {
      // %I is 8 bytes a thread: 16 aligned ones are those of a pair.
      const std::string text =
          fill(place) +
          fmt::format(
              "and.b64 %T5, %I, -16; and.b32 %t0, %b, 15; min.u32 %t0, %t0, {0};"
              "setp.lt.s32 %q0, %c, 0; cp.async.{1}.shared.global [%m], [%T5], {0}{2};"
              "cp.async.commit_group; cp.async.wait_group 0;"
              "ld.shared.v2.b64 {{%T0, %T1}}, [%m]; ",
              size, size == 16 ? "cg" : "ca", tail) +
          mix_text(2);
      Row copy;
      copy.text = text;
      copy.bits = 64;
      copy.want = [=](const Inputs& in, std::size_t i) {
        const std::size_t pair = i & ~std::size_t{1};
        const u64 from[] = {in.a[pair], in.a[pair + 1]};
        auto bytes = bytes_of(in.a[i], in.b[i], in.c[i]);
        std::size_t some = static_cast<std::size_t>(size);
        if (tail == ", %t0") some = std::min<std::size_t>(in.b[i] & 15, some);
        if (tail == ", 3") some = 3;
        if (tail == ", %q0" && static_cast<i32>(in.c[i]) < 0) some = 0;
        std::memset(bytes.data(), 0, static_cast<std::size_t>(size));
        std::memcpy(bytes.data(), from, some);
        std::vector<u64> words(2);
        std::memcpy(words.data(), bytes.data(), 16);
        return mix(words);
      };
      rows.push_back(copy);
    }
  }
  check(rows, make_inputs(integer_edges(), 55), false);
}

/// ldmatrix and stmatrix: thread l has two elements, (l / 4, 2 * (l % 4)) and the next, of each
/// matrix, whose row r is at the address of thread 8 * matrix + r.
TEST(SemanticsMemory, Matrices) {
  std::vector<Row> rows;
  for (const int count : {1, 2, 4}) {
    for (const bool exchanged : {false, true}) {
      const std::string form =
          fmt::format("sync.aligned.m8n8.x{}{}.shared.b16", count, exchanged ? ".trans" : "");
      // Rows in reverse, so that addresses are not in the order of the threads.
      const std::string memory =
          "mov.u32 %t7, M; mov.u32 %t6, %tid.x; and.b32 %t5, %t6, 32; mad.lo.u32 %t7, %t5, 16, %t7;"
          "and.b32 %t6, %t6, 31; mad.lo.u32 %t4, %t6, 16, %t7;"
          "xor.b32 %t6, %t6, 5; mad.lo.u32 %t7, %t6, 16, %t7; ";
      const auto element = [](const Warp& w, int matrix, int row, int column) {
        const int lane = (8 * matrix + row) ^ 5;
        const u64 words = column < 4 ? w.a_values[lane] : w.b_values[lane];
        return words >> (16 * (column % 4)) & 0xffff;
      };
      std::string widen;
      for (int k = 0; k < count; ++k) widen += fmt::format("cvt.u64.u32 %T{0}, %t{0}; ", k);
      rows.push_back(warp_row(
          memory + "st.shared.v2.b64 [%t4], {%A, %B}; bar.warp.sync -1;" +
              fmt::format("ldmatrix.{} {{{}}}, [%t7]; ", form,
                          std::string("%t0, %t1, %t2, %t3").substr(0, 5 * count - 2)) +
              widen + mix_text(count),
          [=](const Warp& w, int l) {
            std::vector<u64> values;
            for (int m = 0; m < count; ++m) {
              u64 value = 0;
              for (int k = 0; k < 2; ++k) {
                const int row = l / 4;
                const int column = 2 * (l % 4) + k;
                value |= (exchanged ? element(w, m, column, row) : element(w, m, row, column))
                         << (16 * k);
              }
              values.push_back(value);
            }
            return mix(values);
          }));
      // Back: thread l reads the 16 bytes at its own place.
      rows.push_back(
          warp_row(memory +
                       "st.shared.v2.b64 [%t4], {%A, %B}; bar.warp.sync -1;"
                       "mov.u32 %t0, %a; mov.u32 %t1, %b; mov.u32 %t2, %c; not.b32 %t3, %a;" +
                       fmt::format("stmatrix.{} [%t7], {{{}}}; bar.warp.sync -1;", form,
                                   std::string("%t0, %t1, %t2, %t3").substr(0, 5 * count - 2)) +
                       "ld.shared.v2.b64 {%T0, %T1}, [%t4]; " + mix_text(2),
                   [=](const Warp& w, int l) {
                     const int matrix = (l ^ 5) / 8;
                     if (matrix >= count) return mix({w.a_values[l], w.b_values[l]});
                     const int row = (l ^ 5) % 8;
                     u64 words[2] = {0, 0};
                     for (int column = 0; column < 8; ++column) {
                       const int r = exchanged ? column : row;
                       const int c = exchanged ? row : column;
                       const int lane = 4 * r + c / 2;
                       const u32 sources[] = {w.a(lane), w.b(lane), w.c(lane), ~w.a(lane)};
                       const u64 bits = sources[matrix] >> (16 * (c % 2)) & 0xffff;
                       words[column / 4] |= bits << (16 * (column % 4));
                     }
                     return mix({words[0], words[1]});
                   }));
    }
  }
  check(rows, make_inputs(integer_edges(), 56), false);
}

/// Special registers and address spaces, in blocks whose warps are full rows, and in others.
class SemanticsSpecial : public testing::TestWithParam<Dim3> {};
INSTANTIATE_TEST_SUITE_P(Blocks, SemanticsSpecial,
                         testing::Values(Dim3{64, 2, 1}, Dim3{5, 3, 4}, Dim3{33, 1, 2}));

TEST_P(SemanticsSpecial, Registers) {
  const char* registers[] = {"tid.x",
                             "tid.y",
                             "tid.z",
                             "ntid.x",
                             "ntid.y",
                             "ntid.z",
                             "ctaid.x",
                             "ctaid.y",
                             "ctaid.z",
                             "nctaid.x",
                             "nctaid.y",
                             "nctaid.z",
                             "laneid",
                             "warpid",
                             "nwarpid",
                             "lanemask_eq",
                             "lanemask_le",
                             "lanemask_lt",
                             "lanemask_ge",
                             "lanemask_gt",
                             "dynamic_smem_size",
                             "tid.w",
                             "ntid.w",
                             "envreg0",
                             "envreg31",
                             "pm7",
                             "clusterid.x",
                             "clusterid.y",
                             "nclusterid.z",
                             "cluster_ctaid.x",
                             "cluster_nctaid.y",
                             "cluster_ctarank",
                             "cluster_nctarank"};
  constexpr std::size_t kCount = std::size(registers) + 1;
  std::string body;
  for (std::size_t k = 0; k + 1 < kCount; ++k) {
    body += fmt::format("mov.u32 %r0, %{}; st.global.b32 [%O+{}], %r0;\n", registers[k], 4 * k);
  }
  // Tests whether a pointer is in its space: bits for shared, local, global and const, for each of
  // three.
  body +=
      "mov.u32 %r2, 0; mov.u32 %r0, s; cvt.u64.u32 %A, %r0; cvta.shared.u64 %A, %A;\n"
      "mov.u64 %B, l; cvta.local.u64 %B, %B;\n";
  int bit = 0;
  for (const char* pointer : {"%A", "%B", "%O"}) {
    for (const char* space : {"shared", "local", "global", "const"}) {
      body += fmt::format("isspacep.{} %p, {}; selp.b32 %r0, {}, 0, %p; or.b32 %r2, %r2, %r0;\n",
                          space, pointer, 1 << bit++);
    }
  }
  // Spaces that are the same as others, or are empty: nothing of it may count.
  body +=
      "isspacep.shared::cluster %p, %B; selp.b32 %r0, 0x10000, 0, %p; or.b32 %r2, %r2, %r0;\n"
      "isspacep.param %p, %A; selp.b32 %r0, 0x10000, 0, %p; or.b32 %r2, %r2, %r0;\n";
  body +=
      "mov.u64 %B, c; cvta.const.u64 %B, %B; isspacep.global %p, %B; selp.b32 %r0, 0x10000, 0, %p;"
      "or.b32 %r2, %r2, %r0; isspacep.const %p, %B; selp.b32 %r0, 0, 0x10000, %p;"
      "or.b32 %r2, %r2, %r0;\n";
  // A vector of them.
  body +=
      "mov.v4.u32 {%r1, %r3, %r4, %r5}, %nctaid; mad.lo.u32 %r1, %r3, 16, %r1;"
      "mad.lo.u32 %r1, %r4, 256, %r1; add.u32 %r1, %r1, %r5; setp.ne.u32 %p, %r1, 0x232;"
      "selp.b32 %r0, 0x20000, 0, %p; or.b32 %r2, %r2, %r0;\n";
  // Back and forth: cvta.to undoes cvta.
  body +=
      "cvta.to.shared.u64 %A, %A; cvt.u32.u64 %r1, %A; mov.u32 %r0, s;\n"
      "setp.eq.b32 %p, %r0, %r1; selp.b32 %r0, 0x1000, 0, %p; or.b32 %r2, %r2, %r0;\n";
  body += fmt::format("st.global.b32 [%O+{}], %r2;\n", 4 * (kCount - 1));
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.const .align 4 .u32 c[4];
.visible .entry k(.param .u64 out)
{{
.reg .b32 %r<8>;
.reg .b64 %O, %A, %B;
.reg .pred %p;
.shared .align 16 .b8 s[64];
.local .align 16 .b8 l[64];
ld.param.u64 %O, [out];
mov.u32 %r0, %ctaid.z;
mov.u32 %r1, %nctaid.y;
mov.u32 %r2, %ctaid.y;
mad.lo.u32 %r0, %r0, %r1, %r2;
mov.u32 %r1, %nctaid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r0, %r0, %r1, %r2;
mov.u32 %r1, %ntid.z;
mov.u32 %r2, %tid.z;
mad.lo.u32 %r0, %r0, %r1, %r2;
mov.u32 %r1, %ntid.y;
mov.u32 %r2, %tid.y;
mad.lo.u32 %r0, %r0, %r1, %r2;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r0, %r0, %r1, %r2;
mul.wide.u32 %A, %r0, {};
add.s64 %O, %O, %A;
{}ret;
}}
)",
                                            4 * kCount, body));
  const Dim3 grid{2, 3, 2};
  const Dim3 block = GetParam();
  const u32 threads = block.x * block.y * block.z;
  const std::size_t all = std::size_t{12} * threads;
  const u64 out = bench.upload(std::vector<u32>(all * kCount));
  bench.run(grid, block, 48, out);
  const auto got = bench.download<u32>(out, all * kCount);
  for (std::size_t i = 0; i < all; ++i) {
    const auto t = static_cast<u32>(i % threads);
    const auto c = static_cast<u32>(i / threads);
    const u32 lane = t % 32;
    const u32 below = (1U << lane) - 1;
    const std::vector<u32> want = {t % block.x,
                                   t / block.x % block.y,
                                   t / block.x / block.y,
                                   block.x,
                                   block.y,
                                   block.z,
                                   c % 2,
                                   c / 2 % 3,
                                   c / 6,
                                   2,
                                   3,
                                   2,
                                   lane,
                                   t / 32,
                                   (threads + 31) / 32,
                                   below + 1,
                                   2 * below + 1,
                                   below,
                                   ~below,
                                   ~(2 * below + 1),
                                   48,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   c % 2,
                                   c / 2 % 3,
                                   2,
                                   0,
                                   1,
                                   0,
                                   1,
                                   0x1421};
    ASSERT_EQ(want.size(), kCount);
    const std::vector<u32> seen(got.begin() + static_cast<std::ptrdiff_t>(i * kCount),
                                got.begin() + static_cast<std::ptrdiff_t>((i + 1) * kCount));
    ASSERT_EQ(seen, want) << "thread " << i;
  }
}

/// Cooperative groups keep tiles of several warps, 288 bytes, at %reserved_smem_offset_1.
TEST(SemanticsMemory, ReservedSharedMemoryIsNotTheKernels) {
  Bench bench = Bench::from_ptx(R"(.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 more[];
.visible .entry k(.param .u64 out) {
.reg .b32 %r<8>; .reg .b64 %o;
.shared .align 4 .b8 own[20];
ld.param.u64 %o, [out];
mov.u32 %r0, own; mov.u32 %r1, %reserved_smem_offset_begin; mov.u32 %r2, %reserved_smem_offset_1;
mov.u32 %r3, %reserved_smem_offset_end; mov.u32 %r4, %reserved_smem_offset_cap; mov.u32 %r5, more;
ld.shared.u32 %r7, [%r2]; st.shared.u32 [%r2+284], %r5; ld.shared.u32 %r6, [%r2+284];
st.global.u32 [%o], %r0; st.global.u32 [%o+4], %r1; st.global.u32 [%o+8], %r2;
st.global.u32 [%o+12], %r3; st.global.u32 [%o+16], %r4; st.global.u32 [%o+20], %r5;
st.global.u32 [%o+24], %r6; st.global.u32 [%o+28], %r7;
ret;
}
)");
  const u64 out = bench.upload(std::vector<u32>(8, 1));
  bench.run({1}, {1}, 64, out);
  const auto got = bench.download<u32>(out, 8);
  const u32 own = got[0], begin = got[1], groups = got[2], end = got[3], more = got[5];
  EXPECT_LE(own + 20, begin);
  EXPECT_LE(begin, groups);
  EXPECT_LE(groups + 288, end);
  EXPECT_EQ(end - begin, got[4]);
  EXPECT_LE(end, more);
  EXPECT_EQ(got[6], more);
  EXPECT_EQ(got[7], 0);
}

}  // namespace
}  // namespace braid::cpu_test
