// Instructions of whole warps, and mma, against the statements of the PTX manual.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// shfl as the manual states it: the result, and the predicate above it.
u64 shuffled(const std::string& mode, const Warp& warp, int lane, u32 b, u32 c) {
  const int segment = static_cast<int>(c >> 8 & 31);
  const int clamp = static_cast<int>(c & 31);
  const int distance = static_cast<int>(b & 31);
  const int most = (lane & segment) | (clamp & ~segment);
  const int least = lane & segment;
  int from = 0;
  if (mode == "up") from = lane - distance;
  if (mode == "down") from = lane + distance;
  if (mode == "bfly") from = lane ^ distance;
  if (mode == "idx") from = least | (distance & ~segment);
  const bool inside = mode == "up" ? from >= most : from <= most;
  return u64{inside} << 32 | warp.a(inside ? from : lane);
}

TEST(SemanticsWarp, Shuffles) {
  std::vector<Row> rows;
  const std::string tail = " selp.b32 %t0, 1, 0, %p; mov.b64 %D, {%d, %t0};";
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    rows.push_back(
        warp_row("shfl.sync." + mode + ".b32 %d|%p, %a, %b, %c, -1;" + tail,
                 [=](const Warp& w, int l) { return shuffled(mode, w, l, w.b(l), w.c(l)); }));
    for (const u32 c : {0x1fU, 0x0U, 0x181fU, 0x1c1cU, 0x1807U, 0x0a1fU}) {
      for (const u32 b : {1U, 5U, 16U, 33U}) {
        rows.push_back(
            warp_row(fmt::format("shfl.sync.{}.b32 %d|%p, %a, {}, {}, -1;", mode, b, c) + tail,
                     [=](const Warp& w, int l) { return shuffled(mode, w, l, b, c); }));
      }
    }
  }
  check(rows, make_inputs(integer_edges(), 41), false);
}

/// The lanes for which `holds`, out of `among`.
template <class F>
u32 lanes_where(u32 among, F holds) {
  u32 out = 0;
  for (int l = 0; l < 32; ++l) {
    if ((among >> l & 1) != 0 && holds(l)) out |= 1U << l;
  }
  return out;
}
/// Runs `text` once by the lanes whose a is odd and once by the others; %t7 are those.
std::string by_parity(const std::string& text) {
  return "and.b32 %t6, %a, 1; setp.ne.b32 %q3, %t6, 0; @%q3 bra odd; activemask.b32 %t7; " + text +
         " bra.uni done; odd: activemask.b32 %t7; " + text + " done:";
}
u32 same_parity(const Warp& w, int lane) {
  return lanes_where(~0U, [&](int l) { return (w.a(l) & 1) == (w.a(lane) & 1); });
}
/// Lanes with the same two low bits of b: groups with a mask each.
const std::string kGroups = "and.b32 %t6, %b, 3; match.any.sync.b32 %t7, %t6, -1; ";
u32 same_group(const Warp& w, int lane) {
  return lanes_where(~0U, [&](int l) { return (w.b(l) & 3) == (w.b(lane) & 3); });
}

struct Crowd {
  std::string (*around)(const std::string&);
  u32 (*members)(const Warp&, int);
};
const Crowd kCrowds[] = {
    {[](const std::string& text) { return "mov.u32 %t7, -1; " + text; },
     [](const Warp&, int) { return ~0U; }},
    {by_parity, same_parity},
    {[](const std::string& text) { return kGroups + text; }, same_group},
};

TEST(SemanticsWarp, VotesAndMatches) {
  std::vector<Row> rows;
  for (const Crowd& crowd : kCrowds) {
    const auto members = crowd.members;
    const auto ballot = [=](const Warp& w, int l) {
      return lanes_where(members(w, l), [&](int k) { return static_cast<i32>(w.c(k)) < 0; });
    };
    const auto vote = [&](const std::string& how, const char* to) {
      return crowd.around("setp.lt.s32 %q0, %c, 0; vote.sync." + how + " " + to + ", %q0, %t7;");
    };
    rows.push_back(warp_row(vote("ballot.b32", "%d"), ballot));
    rows.push_back(warp_row(vote("all.pred", "%p"),
                            [=](const Warp& w, int l) { return ballot(w, l) == members(w, l); }));
    rows.push_back(
        warp_row(vote("any.pred", "%p"), [=](const Warp& w, int l) { return ballot(w, l) != 0; }));
    rows.push_back(warp_row(vote("uni.pred", "%p"), [=](const Warp& w, int l) {
      return ballot(w, l) == 0 || ballot(w, l) == members(w, l);
    }));
    rows.push_back(
        warp_row(crowd.around("setp.lt.s32 %q0, %c, 0; vote.sync.ballot.b32 %d, !%q0, %t7;"),
                 [=](const Warp& w, int l) { return members(w, l) & ~ballot(w, l); }));
    rows.push_back(warp_row(crowd.around("and.b32 %t5, %c, 3; match.any.sync.b32 %d, %t5, %t7;"),
                            [=](const Warp& w, int l) {
                              return lanes_where(members(w, l), [&](int k) {
                                return (w.c(k) & 3) == (w.c(l) & 3);
                              });
                            }));
    rows.push_back(
        warp_row(crowd.around("match.any.sync.b64 %d, %C, %t7;"), [=](const Warp& w, int l) {
          return lanes_where(members(w, l), [&](int k) { return w.c_values[k] == w.c_values[l]; });
        }));
    rows.push_back(warp_row(crowd.around("shr.u32 %t5, %a, 31; match.all.sync.b32 %t0|%p, %t5, %t7;"
                                         "selp.b32 %t1, 1, 0, %p; mov.b64 %D, {%t0, %t1};"),
                            [=](const Warp& w, int l) {
                              const u32 all = members(w, l);
                              const bool same = lanes_where(all, [&](int k) {
                                                  return w.a(k) >> 31 == w.a(l) >> 31;
                                                }) == all;
                              return same ? u64{1} << 32 | all : u64{0};
                            }));
  }
  // Plain ones, without a mask of members.
  rows.push_back(warp_row(by_parity("mov.u32 %d, %t7;"), same_parity));
  check(rows, make_inputs(integer_edges(), 42), false);
  // Few values, so that all lanes of a crowd often agree.
  check(rows, make_inputs({0, 1, 0xffffffffffffffff}, 43), false);
}

template <class T>
T reduced(const std::string& op, const Warp& w, u32 members) {
  bool first = true;
  T out = 0;
  for (int l = 0; l < 32; ++l) {
    if ((members >> l & 1) == 0) continue;
    const auto x = static_cast<T>(w.c(l));
    if (first)
      out = x;
    else if (op == "add")
      out = static_cast<T>(static_cast<u32>(out) + static_cast<u32>(x));
    else if (op == "min")
      out = std::min(out, x);
    else if (op == "max")
      out = std::max(out, x);
    else if (op == "and")
      out &= x;
    else if (op == "or")
      out |= x;
    else
      out ^= x;
    first = false;
  }
  return out;
}

TEST(SemanticsWarp, Reductions) {
  std::vector<Row> rows;
  for (const Crowd& crowd : kCrowds) {
    for (const std::string op : {"add", "min", "max"}) {
      rows.push_back(warp_row(
          crowd.around("redux.sync." + op + ".u32 %d, %c, %t7;"),
          [=, in = crowd.members](const Warp& w, int l) { return reduced<u32>(op, w, in(w, l)); }));
      rows.push_back(warp_row(
          crowd.around("redux.sync." + op + ".s32 %d, %c, %t7;"),
          [=, in = crowd.members](const Warp& w, int l) { return reduced<i32>(op, w, in(w, l)); }));
    }
    for (const std::string op : {"and", "or", "xor"}) {
      rows.push_back(warp_row(
          crowd.around("redux.sync." + op + ".b32 %d, %c, %t7;"),
          [=, in = crowd.members](const Warp& w, int l) { return reduced<u32>(op, w, in(w, l)); }));
    }
  }
  check(rows, make_inputs(integer_edges(), 44), false);
}

/// The least or greatest of f32: -0 is below +0, NaN gives way or, with .NaN, wins.
u32 reduced_float(const Warp& w, u32 members, bool minimum, bool absolute, bool propagate) {
  u32 best = 0x7fffffff;
  for (int l = 0; l < 32; ++l) {
    if ((members >> l & 1) == 0) continue;
    const u32 x = absolute ? w.c(l) & 0x7fffffffU : w.c(l);
    if (kF32.is_nan(x)) {
      if (propagate) return 0x7fffffff;
      continue;
    }
    const int side = kF32.is_nan(best) ? -1 : order(decode(kF32, x), decode(kF32, best));
    const bool negative_zero = side == 0 && (x >> 31) != 0;
    const bool less = side < 0 || negative_zero;
    if (kF32.is_nan(best) || (minimum ? less : !less)) best = x;
  }
  return best;
}

TEST(SemanticsWarp, ReductionsOfFloats) {
  std::vector<Row> rows;
  for (const Crowd& crowd : kCrowds) {
    for (const bool minimum : {true, false}) {
      for (const bool absolute : {false, true}) {
        for (const bool propagate : {false, true}) {
          const std::string text =
              fmt::format("redux.sync.{}{}{}.f32 %d, %c, %t7;", minimum ? "min" : "max",
                          absolute ? ".abs" : "", propagate ? ".NaN" : "");
          rows.push_back(
              warp_row(crowd.around(text), [=, in = crowd.members](const Warp& w, int l) {
                return reduced_float(w, in(w, l), minimum, absolute, propagate);
              }));
        }
      }
    }
  }
  check(rows, make_inputs(float_edges(kF32), 46), false);
  // Crowds of zeros alone, and of NaN alone.
  check(rows, make_inputs({0, 0x80000000}, 47), false);
  check(rows, make_inputs({0xffc00000, 0x7f800001}, 48), false);
}

TEST(SemanticsWarp, ElectsTheFirstMember) {
  std::vector<Row> rows;
  for (const Crowd& crowd : kCrowds) {
    const auto first = [in = crowd.members](const Warp& w, int l) {
      return static_cast<u32>(__builtin_ctz(in(w, l)));
    };
    rows.push_back(warp_row(crowd.around("elect.sync %d|%q0, %t7;"), first));
    rows.push_back(warp_row(crowd.around("elect.sync _|%p, %t7;"), [=](const Warp& w, int l) {
      return first(w, l) == static_cast<u32>(l);
    }));
  }
  check(rows, make_inputs(integer_edges(), 49), false);
}

TEST(SemanticsWarp, MatrixRowsAndColumns) {
  // Thread l holds elements (l / 4, 2 * (l % 4)) and the next: after the exchange (c, r).
  const auto element = [](const Warp& w, int row, int column) {
    return static_cast<u16>(w.a(4 * row + column / 2) >> (16 * (column % 2)));
  };
  check({warp_row("movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;",
                  [=](const Warp& w, int l) {
                    const int row = l / 4;
                    const int column = 2 * (l % 4);
                    return u32{element(w, column, row)} | u32{element(w, column + 1, row)} << 16;
                  })},
        make_inputs(integer_edges(), 45), false);
}

/// One mma: the element types, the sizes, and where elements lie in the fragments.
struct Mma {
  const char* shape;
  const char* types;
  int depth;
  int bits;    ///< of an element of A and B
  Format a{};  ///< of floats; none of integers
  Format b{};
  bool signed_a = false;
  bool signed_b = false;
  int sum_bits = 32;
  bool saturate = false;
};
constexpr Format kE4m3{4, 3};
constexpr Format kE5m2{5, 2};
const Mma kMmas[] = {
    {"m16n8k16", "f32.f16.f16.f32", 16, 16, kF16, kF16},
    {"m16n8k8", "f32.f16.f16.f32", 8, 16, kF16, kF16},
    {"m16n8k16", "f16.f16.f16.f16", 16, 16, kF16, kF16, false, false, 16},
    {"m16n8k8", "f16.f16.f16.f16", 8, 16, kF16, kF16, false, false, 16},
    {"m16n8k16", "f32.bf16.bf16.f32", 16, 16, kBf16, kBf16},
    {"m16n8k8", "f32.bf16.bf16.f32", 8, 16, kBf16, kBf16},
    {"m16n8k8", "f32.tf32.tf32.f32", 8, 32, kF32, kF32},
    {"m16n8k4", "f32.tf32.tf32.f32", 4, 32, kF32, kF32},
    {"m16n8k32", "f32.e4m3.e4m3.f32", 32, 8, kE4m3, kE4m3},
    {"m16n8k32", "f32.e5m2.e5m2.f32", 32, 8, kE5m2, kE5m2},
    {"m16n8k32", "f32.e4m3.e5m2.f32", 32, 8, kE4m3, kE5m2},
    {"m16n8k32", "f32.e5m2.e4m3.f32", 32, 8, kE5m2, kE4m3},
    {"m16n8k32", "s32.s8.s8.s32", 32, 8, {}, {}, true, true},
    {"m16n8k32", "s32.u8.s8.s32", 32, 8, {}, {}, false, true},
    {"m16n8k16", "s32.s8.u8.s32", 16, 8, {}, {}, true, false},
    {"m16n8k16", "s32.u8.u8.s32", 16, 8, {}, {}, false, false},
    {"m16n8k32", "satfinite.s32.s8.s8.s32", 32, 8, {}, {}, true, true, 32, true},
};

class SemanticsMma : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(All, SemanticsMma, testing::Range<std::size_t>(0, std::size(kMmas)));

TEST_P(SemanticsMma, IsATripleLoop) {
  const Mma& mma = kMmas[GetParam()];
  const int per_register = 32 / mma.bits;
  const int a_count = 16 * mma.depth / 32 / per_register;
  const int b_count = a_count / 2;
  const int c_count = mma.sum_bits == 16 ? 2 : 4;
  const bool is_float = mma.a.exponent_bits != 0;
  const auto list = [](const char* name, int first, int count) {
    std::string out = "{";
    for (int i = 0; i < count; ++i)
      out += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, first + i);
    return out + "}";
  };
  // Two of them with one A, as they come in real kernels; the second leaves its sums in its own C,
  // last first.
  std::string body;
  const int words = a_count + 2 * b_count + 2 * c_count;
  for (int i = 0; i < words; ++i) body += fmt::format("ld.global.b32 %r{}, [%I+{}];\n", i, 128 * i);
  const int last = words - 1;
  std::string backwards;
  for (int i = 0; i < c_count; ++i) {
    backwards += fmt::format("{}%r{}", i == 0 ? "{" : ", ", last - i);
  }
  backwards += "}";
  for (int g = 0; g < 2; ++g) {
    const int c = a_count + 2 * b_count + g * c_count;
    body += fmt::format("mma.sync.aligned.{}.row.col.{} {}, {}, {}, {};\n", mma.shape, mma.types,
                        g == 0 ? list("d", 0, c_count) : backwards, list("r", 0, a_count),
                        list("r", a_count + g * b_count, b_count), list("r", c, c_count));
  }
  for (int g = 0; g < 2; ++g) {
    for (int i = 0; i < c_count; ++i) {
      body += fmt::format("st.global.b32 [%O+{}], %{};\n", 128 * (g * c_count + i),
                          g == 0 ? fmt::format("d{}", i) : fmt::format("r{}", last - i));
    }
  }
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b32 %r<32>, %d<8>, %i;
.reg .b64 %I, %O, %w;
ld.param.u64 %O, [out];
ld.param.u64 %I, [in];
mov.u32 %i, %laneid;
mul.wide.u32 %w, %i, 4;
add.s64 %I, %I, %w;
add.s64 %O, %O, %w;
{}ret;
}}
)",
                                            body));
  Random random(100 + GetParam());
  // Floats of a few exponents around 1 (some subnormal or zero); bytes of all kinds.
  const auto some = [&](Format f) {
    const u64 r = random.next();
    const u64 fraction = r >> 8 & ((u64{1} << f.fraction_bits) - 1);
    const u64 field = r % 16 == 0 ? 0 : (f.one() >> f.fraction_bits) - 2 + r % 4;
    u64 bits = fraction | field << f.fraction_bits | (r >> 7 & 1) << (f.bits() - 1);
    if (mma.bits == 32) bits &= ~u64{0x1fff};
    return bits;
  };
  std::vector<u32> memory(32 * static_cast<std::size_t>(words));
  for (int i = 0; i < words; ++i) {
    for (int l = 0; l < 32; ++l) {
      u32 word = static_cast<u32>(random.next() >> 32);
      const bool sum = i >= a_count + 2 * b_count;
      if (is_float) {
        const Format f = sum ? (mma.sum_bits == 16 ? kF16 : kF32) : i < a_count ? mma.a : mma.b;
        word = 0;
        for (int at = 0; at < 32; at += f.bits()) word |= static_cast<u32>(some(f)) << at;
      } else if (sum && mma.saturate) {
        word = (word & 1) != 0 ? 0x7fffff00 : 0x800000ff;
      }
      memory[static_cast<std::size_t>(32 * i + l)] = word;
    }
  }
  const u64 out = bench.upload(std::vector<u32>(32 * 8));
  bench.run({1}, {32}, 0, out, bench.upload(memory));
  const auto got = bench.download<u32>(out, 32 * 8);
  const auto field = [&](const std::vector<u32>& from, int reg, int lane, int bits, int at) {
    const u64 word = from[static_cast<std::size_t>(32 * reg + lane)];
    return word >> (bits * at) & (~u64{0} >> (64 - bits));
  };
  const auto value = [&](Format f, bool is_signed, u64 bits) {
    if (is_float) {
      const bool nan4 = f.exponent_bits == 4 && (bits & 0x7f) == 0x7f;
      // The top exponent of e4m3 holds numbers.
      if (f.exponent_bits == 4 && !nan4) {
        const double size = to_double(Format{5, 3}, bits & 0x7f) * 256;
        return (bits & 0x80) != 0 ? -size : size;
      }
      return nan4 ? NAN : to_double(f, bits);
    }
    return static_cast<double>(is_signed ? i64{static_cast<i8>(bits)} : static_cast<i64>(bits));
  };
  // The manual's fragments: with g = lane / 4 and t = lane % 4, registers of A go over rows g and
  // g + 8, then to the next part of k; its elements are consecutive k from t * per_register on.
  const int part = 4 * per_register;
  for (int g = 0; g < 2; ++g) {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        const int lane = 4 * (row % 8) + column / 2;
        const auto sum_bits = [&](const std::vector<u32>& from, int first) {
          return mma.sum_bits == 16 ? field(from, first + row / 8, lane, 16, column % 2)
                                    : field(from, first + 2 * (row / 8) + column % 2, lane, 32, 0);
        };
        const Format sum_format = mma.sum_bits == 16 ? kF16 : kF32;
        const u64 start = sum_bits(memory, a_count + 2 * b_count + g * c_count);
        double sum =
            is_float ? to_double(sum_format, start) : static_cast<double>(static_cast<i32>(start));
        double sizes = std::fabs(sum);
        for (int k = 0; k < mma.depth; ++k) {
          const int t = k % part / per_register;
          const u64 x = field(memory, row / 8 + 2 * (k / part), 4 * (row % 8) + t, mma.bits,
                              k % per_register);
          const u64 y = field(memory, a_count + g * b_count + k / part, 4 * column + t, mma.bits,
                              k % per_register);
          const double product = value(mma.a, mma.signed_a, x) * value(mma.b, mma.signed_b, y);
          sum += product;
          sizes += std::fabs(product);
        }
        const u64 result = sum_bits(got, g * c_count);
        if (!is_float) {
          i64 whole = static_cast<i64>(sum);
          if (mma.saturate) whole = std::clamp<i64>(whole, INT32_MIN, INT32_MAX);
          ASSERT_EQ(static_cast<u32>(result), static_cast<u32>(whole)) << row << " " << column;
        } else {
          const double error = sizes * 1e-6 + (mma.sum_bits == 16 ? std::fabs(sum) * 0x1p-10 : 0);
          const double seen = to_double(sum_format, result);
          ASSERT_TRUE(std::fabs(seen - sum) <= error || (std::isnan(seen) && std::isnan(sum)))
              << mma.types << " " << row << " " << column << ": " << seen << " " << sum;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
