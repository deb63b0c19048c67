// Registers that are loaded and stored together. Each body runs three ways: with wide loads and
// stores, and with one or the other word by word, which no arrangement of words can hide in.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "cpu/cpu_harness.h"

namespace braid::cpu_test {
namespace {

/// Words that say something as f32, as two bf16, and as two f16: many NaNs, infinities, zeros and
/// subnormal numbers among them.
std::vector<unsigned> words(std::size_t count, std::uint64_t seed) {
  constexpr unsigned kSpecial[] = {0x7f800001, 0x7fc01234, 0xff800000, 0x7f800000,
                                   0x80000000, 0,          0x00000001, 0x807fffff,
                                   0x00012345, 0x3f80ffff, 0x7f7fffff, 0x7fff8000,
                                   0x0001fe00, 0x3c00bc00, 0x3f808000, 0x3f818000};
  Random random(seed);
  std::vector<unsigned> result(count);
  for (unsigned& word : result) {
    const std::uint64_t r = random.next();
    word = r % 5 == 0 ? kSpecial[r / 5 % std::size(kSpecial)] : static_cast<unsigned>(r >> 32U);
  }
  return result;
}

/// Which lanes of the warps load, or store: all, or some of one warp and none of another.
enum class Guarded { kNothing, kLoads, kStores, kBoth };
enum class Way { kBoth, kWideLoads, kWideStores };

/// `body` computes %y0 to %y3 from %x0 to %x3 and %w0 to %w3.
std::string kernel(const std::string& body, Way way, Guarded guarded, bool barrier) {
  const auto access = [&](bool wide, const char* what, char name, const char* at, bool store) {
    const bool some =
        guarded == Guarded::kBoth || guarded == (store ? Guarded::kStores : Guarded::kLoads);
    const char* const guard = some ? "@%p0 " : "";
    const auto list = fmt::format("{{%{0}0, %{0}1, %{0}2, %{0}3}}", name);
    if (wide) {
      return store ? fmt::format("{}{}.v4.b32 [{}], {};\n", guard, what, at, list)
                   : fmt::format("{}{}.v4.b32 {}, [{}];\n", guard, what, list, at);
    }
    std::string text;
    for (int k = 0; k < 4; ++k) {
      text += store ? fmt::format("{}{}.b32 [{}+{}], %{}{};\n", guard, what, at, 4 * k, name, k)
                    : fmt::format("{}{}.b32 %{}{}, [{}+{}];\n", guard, what, name, k, at, 4 * k);
    }
    return text;
  };
  const bool loads = way != Way::kWideStores, stores = way != Way::kWideLoads;
  std::string text = R"(
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 x, .param .u64 w, .param .u64 y, .param .u32 n, .param .f32 s) {
      .reg .pred %p<9>; .reg .b16 %h<17>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<40>;
      .reg .b32 %x<4>, %w<4>, %y<4>;
      ld.param.u64 %rd6, [x]; ld.param.u64 %rd7, [w]; ld.param.u64 %rd8, [y];
      ld.param.u32 %r1, [n]; ld.param.f32 %f1, [s];
      mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;
      setp.lt.u32 %p0, %r2, %r1;
      mul.wide.u32 %rd0, %r3, 1536; mul.wide.u32 %rd5, %r2, 16;
      add.u64 %rd4, %rd0, %rd5;
      add.u64 %rd1, %rd6, %rd4; add.u64 %rd2, %rd7, %rd5; add.u64 %rd3, %rd8, %rd4;
      add.u32 %r6, %r2, 17;
)";
  if (guarded == Guarded::kLoads || guarded == Guarded::kBoth) {
    for (const char name : {'x', 'w'}) {
      for (int k = 0; k < 4; ++k) text += fmt::format("mov.b32 %{}{}, {};\n", name, k, 7 * k + 1);
    }
    text += "mov.b32 %x2, %r6;\n";  // what is not loaded is another thing in each lane
  }
  text += access(loads, "ld.global.nc", 'x', "%rd1", false);
  if (barrier) text += "bar.sync 0;\n";
  text += access(loads, "ld.global", 'w', "%rd2", false);
  return text + body + access(stores, "st.global", 'y', "%rd3", true) + "ret; }";
}

std::vector<unsigned> outcome(const std::string& text, float scale) {
  constexpr unsigned kBlocks = 5, kThreads = 96, kLanes = 45;
  Bench bench = Bench::from_ptx(text);
  const std::uint64_t x = bench.upload(words(std::size_t{kBlocks} * kThreads * 4, 1));
  const std::uint64_t w = bench.upload(words(std::size_t{kThreads} * 4, 2));
  std::vector<unsigned> y(std::size_t{kBlocks} * kThreads * 4, 0xdeadbeef);
  const std::uint64_t out = bench.upload(y);
  bench.run({kBlocks}, {kThreads}, 0, x, w, out, kLanes, scale);
  return bench.download<unsigned>(out, y.size());
}

/// The text once for each word, {} its number.
std::string for_each_word(fmt::string_view text) {
  std::string all;
  for (int k = 0; k < 4; ++k) all += fmt::vformat(text, fmt::make_format_args(k));
  return all;
}

std::string rounded(const char* type, const char* low, const char* high) {
  return for_each_word(fmt::format(R"(
    shl.b32 %r7, %x{{0}}, 16; and.b32 %r8, %x{{0}}, 0xffff0000;
    shl.b32 %r9, %w{{0}}, 16; and.b32 %r10, %w{{0}}, -65536;
    mov.b32 %f2, %r7; mov.b32 %f3, %r8; mov.b32 %f4, %r9; mov.b32 %f5, %r10;
    mul.f32 %f2, %f1, %f2; mul.f32 %f3, %f1, %f3; mul.f32 %f2, %f2, %f4; fma.rn.f32 %f3, %f3, %f5, %f1;
    cvt.rn.{0}.f32 %h1, %f2; cvt.rn.{0}.f32 %h2, %f3;
    mov.b32 %y{{0}}, {{{{{1}, {2}}}}};)",
                                   type, low, high));
}

class WideValues : public testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(WideValues, AreThoseOfSingleWords) {
  const std::string& body = GetParam().second;
  constexpr float kScale = 0x1p-120F;  // to subnormal numbers
  for (const Guarded guarded :
       {Guarded::kNothing, Guarded::kLoads, Guarded::kStores, Guarded::kBoth}) {
    const bool barrier = guarded != Guarded::kLoads;
    SCOPED_TRACE(fmt::format("guarded {}", static_cast<int>(guarded)));
    const auto way = [&](Way w) { return outcome(kernel(body, w, guarded, barrier), kScale); };
    const std::vector<unsigned> both = way(Way::kBoth);
    EXPECT_EQ(both, way(Way::kWideLoads));
    EXPECT_EQ(both, way(Way::kWideStores));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, WideValues,
    testing::Values(std::pair("Copy", for_each_word("mov.b32 %y{0}, %x{0};")),
                    std::pair("InAnotherOrder", std::string("mov.b32 %y0, %x1; mov.b32 %y1, %x0;"
                                                            "mov.b32 %y2, %x3; mov.b32 %y3, %x2;")),
                    std::pair("OfTwoLoads", std::string("mov.b32 %y0, %x0; mov.b32 %y1, %w1;"
                                                        "mov.b32 %y2, %x2; mov.b32 %y3, %w3;")),
                    std::pair("OneOfThemOtherwise", for_each_word("add.u32 %y{0}, %x{0}, %w{0};") +
                                                        "sub.u32 %y2, %x2, %w2;"),
                    std::pair("OtherNumbers", for_each_word("mul.lo.u32 %y{0}, %x{0}, 1{0}3;")),
                    std::pair("ANumber", for_each_word("mad.lo.u32 %y{0}, %x{0}, 77, %w{0};")),
                    std::pair("OfTheLane", for_each_word("add.u32 %y{0}, %x{0}, %r6;")),
                    std::pair("OfTheBlock", for_each_word("xor.b32 %y{0}, %x{0}, %r3;")),
                    std::pair("TheSumToo", for_each_word("add.u32 %y{0}, %x{0}, 5;") +
                                               "add.u32 %r7, %y0, %y1; add.u32 %y3, %r7, %y3;"),
                    std::pair("Arithmetic", for_each_word(R"(
            mov.b32 %f2, %x{0}; mov.b32 %f3, %w{0};
            sub.f32 %f4, %f2, %f1; abs.f32 %f5, %f3; sqrt.rn.f32 %f5, %f5; neg.f32 %f6, %f4;
            fma.rn.f32 %f7, %f4, %f5, %f6; div.rn.f32 %f7, %f7, %f1; mov.b32 %y{0}, %f7;)")),
                    std::pair("Choices", for_each_word(R"(
            mov.b32 %f2, %x{0}; mov.b32 %f3, %w{0};
            max.f32 %f4, %f2, %f3; setp.lt.f32 %p1, %f4, %f1; selp.f32 %f5, %f4, %f1, %p1;
            add.ftz.f32 %f6, %f5, %f2; mov.b32 %y{0}, %f6;)")),
                    std::pair("Guarded",
                              for_each_word("mov.b32 %y{0}, %w{0}; @%p0 add.u32 %y{0}, %x{0}, 9;")),
                    std::pair("Bf16", rounded("bf16", "%h1", "%h2")),
                    std::pair("Bf16Swapped", rounded("bf16", "%h2", "%h1")),
                    std::pair("Bf16Twice", rounded("bf16", "%h1", "%h1")),
                    std::pair("F16", rounded("f16", "%h1", "%h2")),
                    std::pair("Bf16Pairs", for_each_word(R"(
            mov.b32 {{%h1, %h2}}, %x{0}; cvt.f32.bf16 %f2, %h1; cvt.f32.bf16 %f3, %h2;
            mul.f32 %f2, %f2, %f1; mul.f32 %f3, %f3, %f1;
            cvt.rn.bf16x2.f32 %y{0}, %f3, %f2;)"))),
    [](const auto& info) { return info.param.first; });

// Memory read by ld may be overwritten, unlike that of ld.global.nc, so its values are kept over
// the barrier.
TEST(WideValuesOverABarrier, AreAsTheyWere) {
  Bench bench(R"(
    extern "C" __global__ void k(uint4* x) {
      const int next = (threadIdx.x + 32) % blockDim.x;
      uint4 v = x[threadIdx.x];
      __syncthreads();
      v.x += 1, v.y += 1, v.z += 1, v.w += 1;
      x[next] = v;
    })");
  const std::vector<unsigned> in = words(512, 3);
  std::vector<unsigned> want(in.size());
  for (std::size_t e = 0; e < in.size(); ++e) want[(e + 128) % 512] = in[e] + 1;
  const std::uint64_t x = bench.upload(in);
  bench.run({1}, {128}, 0, x);
  EXPECT_EQ(bench.download<unsigned>(x, in.size()), want);
}

// Rows that end anywhere, in a loop with sums, two guards of which the first is used behind it,
// too: some warps load and store with all lanes, some with one guard alone, some with a part.
std::string loop_kernel(bool wide) {
  const auto access = [&](const char* guard, const char* what, char name, const char* at) {
    const bool store = what[0] == 's';
    std::string text;
    if (wide) {
      const auto list = fmt::format("{{%{0}0, %{0}1, %{0}2, %{0}3}}", name);
      text = store ? fmt::format("@{} {}.v4.b32 [{}], {};\n", guard, what, at, list)
                   : fmt::format("@{} {}.v4.b32 {}, [{}];\n", guard, what, list, at);
    }
    for (int k = 0; k < 4 && !wide; ++k) {
      text += store ? fmt::format("@{} {}.b32 [{}+{}], %{}{};\n", guard, what, at, 4 * k, name, k)
                    : fmt::format("@{} {}.b32 %{}{}, [{}+{}];\n", guard, what, name, k, at, 4 * k);
    }
    return text;
  };
  const auto sums = [](char of) {
    std::string text;
    for (int k = 0; k < 4; ++k)
      text += fmt::format("mad.lo.u32 %s{0}, %s{0}, 3, %{1}{0};\n", k, of);
    return text;
  };
  std::string text = R"(
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
      .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>;
      .reg .b32 %x<4>, %w<4>, %s<4>;
      ld.param.u64 %rd6, [x]; ld.param.u64 %rd7, [y]; ld.param.u32 %r1, [n];
      mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2;
      mov.u32 %s0, 0; mov.u32 %s1, 0; mov.u32 %s2, 0; mov.u32 %s3, 0;
      mov.u32 %r4, 0;
    again:
      add.u32 %r5, %r3, %r4; add.u32 %r6, %r5, 384;
      setp.lt.u32 %p1, %r5, %r1; setp.lt.u32 %p0, %r6, %r1;
      mul.wide.u32 %rd1, %r5, 4; add.u64 %rd2, %rd6, %rd1; add.u64 %rd3, %rd2, 1536;
      add.u64 %rd4, %rd7, %rd1; add.u64 %rd5, %rd4, 1536;
)";
  for (int k = 0; k < 4; ++k) text += fmt::format("mov.b32 %x{0}, {0}; mov.b32 %w{0}, %r5;\n", k);
  text += access("%p1", "ld.global", 'x', "%rd2") + access("%p0", "ld.global", 'w', "%rd3");
  text += sums('x') + sums('w');
  text += access("%p1", "st.global", 'w', "%rd4") + access("%p0", "st.global", 'x', "%rd5");
  text += R"(
      add.u32 %r4, %r4, 768; setp.lt.u32 %p2, %r4, %r1;
      @%p2 bra again;
      add.u64 %rd4, %rd4, 16384; add.u64 %rd5, %rd5, 24576;
)";
  return text + access("%p0", "st.global", 's', "%rd4") + access("!%p0", "st.global", 's', "%rd5") +
         "ret; }";
}

TEST(GuardedRows, AreThoseOfSingleWords) {
  constexpr unsigned kThreads = 96, kWords = 16384;
  for (const unsigned n : {768U, 1536U, 1152U, 500U, 4U, 2000U}) {
    SCOPED_TRACE(n);
    const auto outcome = [&](bool wide) {
      Bench bench = Bench::from_ptx(loop_kernel(wide));
      const std::uint64_t x = bench.upload(words(4096, 5));
      const std::uint64_t y = bench.upload(std::vector<unsigned>(kWords, 0xdeadbeef));
      bench.run({1}, {kThreads}, 0, x, y, n);
      return bench.download<unsigned>(y, kWords);
    };
    EXPECT_EQ(outcome(true), outcome(false));
  }
}

}  // namespace
}  // namespace braid::cpu_test
