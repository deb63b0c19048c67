// Vectors of atomics and clusters of blocks against the statements of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>

#include "braid/checks.h"
#include "braid/error.h"
#include "cpu/block_kernels.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;
using namespace block_kernels;
using testing::HasSubstr;

// --- Atomics on vectors ---

struct VectorAtomic {
  const char* type;
  int count;
  Format format;
  bool packed = false;
  [[nodiscard]] int bits() const { return (packed ? 2 : 1) * format.bits(); }
};
constexpr VectorAtomic kVectors[] = {
    {"f32", 2, kF32},           {"f32", 4, kF32},          {"f16", 2, kF16},
    {"f16", 4, kF16},           {"f16", 8, kF16},          {"bf16", 2, kBf16},
    {"bf16", 8, kBf16},         {"f16x2", 2, kF16, true},  {"f16x2", 4, kF16, true},
    {"bf16x2", 2, kBf16, true}, {"bf16x2", 4, kBf16, true}};

u64 combined(const VectorAtomic& v, const std::string& op, u64 a, u64 b) {
  const Format f = v.format;
  if (op == "add") {
    return encode(f, add(decode(f, a), decode(f, b), Mode::kNearest), Mode::kNearest);
  }
  if (f.is_nan(a) || f.is_nan(b)) return f.is_nan(a) ? (f.is_nan(b) ? f.sign() - 1 : b) : a;
  const int sign = order(decode(f, a), decode(f, b));
  return (op == "min") == (sign < 0) ? a : b;
}

/// Each thread has 16 bytes of its own at out, and 16 of in; the old values go behind them.
TEST(SemanticsVectorAtomic, CombineEachElement) {
  constexpr std::size_t kThreads = 512;
  for (const VectorAtomic& v : kVectors) {
    const bool half = v.format.bits() == 16;
    for (const std::string op : {"add", "min", "max"}) {
      if (op != "add" && !half) continue;
      std::string old = "{", source = "{";
      const char* name = v.bits() == 16 ? "%h" : "%r";
      for (int k = 0; k < v.count; ++k) {
        old += fmt::format("{}{}{}", k == 0 ? "" : ", ", name, v.bits() == 16 ? k : k + 8);
        source += fmt::format("{}{}{}", k == 0 ? "" : ", ", name, v.bits() == 16 ? k : k + 4);
      }
      const char* type = v.bits() == 16 ? "b16" : "b32";
      const std::string vector = fmt::format("v{}", v.count);
      const std::string form =
          fmt::format(".global.{}{}.{}.{}", op, half ? ".noftz" : "", vector, v.type);
      std::string load, keep;
      const int bytes = v.bits() * v.count / 8;
      for (int k = 0; k < v.count; ++k) {
        const int at = k * v.bits() / 8;
        load += fmt::format("ld.global.{} {}{}, [%d2+{}]; ", type, name, v.bits() == 16 ? k : k + 4,
                            at);
        keep += fmt::format("st.global.{} [%d1+{}], {}{}; ", type, 8192 + at, name,
                            v.bits() == 16 ? k : k + 8);
      }
      const std::string body =
          "mul.wide.u32 %d1, %g, 16; add.u64 %d2, %d1, %I; add.u64 %d1, %d1, %O;"
          "ld.global.v4.b32 {%r0,%r1,%r2,%r3}, [%d2+8192]; st.global.v4.b32 [%d1], "
          "{%r0,%r1,%r2,%r3};" +
          load + "atom" + form + " " + old + "}, [%d1], " + source + "};" + keep + load + "red" +
          form + " [%d1], " + source + "};";
      const Inputs edges = make_inputs(float_edges(v.format), 77);
      std::vector<u32> in(2 * kThreads * 4);
      std::size_t at = 0;
      for (u32& word : in) {
        const auto next = [&] { return edges.a[(at += 7) % edges.size()]; };
        word = half ? static_cast<u32>((next() & 0xffff) | next() << 16) : static_cast<u32>(next());
      }
      const Result result = run(text(body), {kThreads / 32}, {32}, in, 2 * kThreads * 4);
      const auto part = [&](const std::vector<u32>& words, std::size_t place, int k) {
        u64 value = 0;
        std::memcpy(&value,
                    reinterpret_cast<const u8*>(words.data()) + place + k * v.format.bits() / 8,
                    static_cast<std::size_t>(v.format.bits() / 8));
        return value;
      };
      for (std::size_t t = 0; t < kThreads; ++t) {
        for (int k = 0; k < bytes * 8 / v.format.bits(); ++k) {
          const u64 before = part(in, 8192 + 16 * t, k);
          const u64 by = part(in, 16 * t, k);
          const u64 once = combined(v, op, before, by);
          const u64 want = combined(v, op, once, by);
          const u64 got = part(result.out, 16 * t, k);
          ASSERT_EQ(part(result.out, 8192 + 16 * t, k), before) << form << " " << t << " " << k;
          const bool nans = v.format.is_nan(got) && v.format.is_nan(want);
          // The lesser of two zeros may be either.
          const bool zeros = op != "add" && ((got | want) & (v.format.sign() - 1)) == 0;
          ASSERT_TRUE(got == want || nans || zeros)
              << form << fmt::format(" {:#x} {:#x}: {:#x}, not {:#x}", before, by, got, want);
        }
      }
    }
  }
}

TEST(SemanticsVectorAtomic, RefusesOtherForms) {
  for (const char* line :
       {"red.global.min.v2.f32 [%O], {%f0, %f1};", "red.global.add.v2.u32 [%O], {%r0, %r1};",
        "red.global.add.v8.f32 [%O], {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};",
        "red.global.add.v2.f64 [%O], {%d0, %d1};", "red.global.add.v2.f32 [%O], {%f0};",
        "atom.shared.add.v2.f32 {%f0, %f1}, [%m], {%f0, %f1};"}) {
    EXPECT_THAT(error_of([&] { run(text(line), {1}, {1}, {0}, 4); }), HasSubstr("ptx:")) << line;
  }
}

// --- Clusters ---

TEST(SemanticsCluster, Registers) {
  const char* registers[] = {"ctaid.x",          "ctaid.y",         "clusterid.x",
                             "clusterid.y",      "nclusterid.x",    "nclusterid.y",
                             "cluster_ctaid.x",  "cluster_ctaid.y", "cluster_nctaid.x",
                             "cluster_nctaid.y", "cluster_ctarank", "cluster_nctarank",
                             "nctaid.x",         "cluster_ctaid.z"};
  constexpr std::size_t kCount = std::size(registers) + 1;
  std::string body =
      "mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x;"
      "mad.lo.u32 %r5, %r2, %r3, %r4; ";
  body += fmt::format("mul.wide.u32 %d1, %r5, {}; add.u64 %d1, %d1, %O;\n", 4 * kCount);
  for (std::size_t k = 0; k + 1 < kCount; ++k) {
    body += fmt::format("mov.u32 %r2, %{}; st.global.u32 [%d1+{}], %r2;\n", registers[k], 4 * k);
  }
  body += fmt::format(
      "mov.pred %p0, %is_explicit_cluster; selp.u32 %r2, 1, 0, %p0;"
      "st.global.u32 [%d1+{}], %r2;",
      4 * (kCount - 1));
  const Dim3 grid{6, 4};
  for (const auto& [launched, directives] :
       {std::pair(Dim3{2, 2}, ""), std::pair(Dim3{}, ".reqnctapercluster 2, 2"),
        std::pair(Dim3{2, 2}, ".explicitcluster .maxclusterrank 4")}) {
    const Result result =
        run(text(body, directives), grid, {32}, {0}, std::size_t{24} * kCount, 0, launched);
    for (u32 b = 0; b < 24; ++b) {
      const u32 x = b % 6;
      const u32 y = b / 6;
      const std::vector<u32> want = {
          x, y, x / 2, y / 2, 3, 2, x % 2, y % 2, 2, 2, x % 2 + y % 2 * 2, 4, 6, 0, 1};
      const auto first = result.out.begin() + static_cast<std::ptrdiff_t>(b * kCount);
      EXPECT_EQ(std::vector<u32>(first, first + kCount), want) << b;
    }
  }
}

/// Every block writes its own memory; then each thread reads that of the next block of the cluster.
std::string neighbours(const std::string& meet, const std::string& read) {
  return text(
      "mul.wide.u32 %d1, %g, 4; add.u64 %d2, %d1, %I; add.u64 %d1, %d1, %O;"
      "ld.global.u32 %r2, [%d2]; mad.lo.u32 %r3, %i, 4, %m; st.shared.u32 [%r3], %r2;" +
      meet +
      "mov.u32 %r4, %cluster_ctarank; mov.u32 %r5, %cluster_nctarank; add.u32 %r4, %r4, 1;"
      "rem.u32 %r4, %r4, %r5;" +
      read + "st.global.u32 [%d1], %r6; barrier.cluster.arrive; barrier.cluster.wait;");
}
constexpr const char* kMeet =
    "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";

TEST(SemanticsCluster, BlocksReachEachOther) {
  const std::vector<u32> in = numbers(12 * 64, 9);
  for (
      const std::string read :
      {"mapa.shared::cluster.u32 %r7, %r3, %r4; ld.shared::cluster.u32 %r6, [%r7];",
       "mapa.shared::cluster.u32 %r7, %m, %r4; mad.lo.u32 %r7, %i, 4, %r7;"
       "ld.relaxed.cluster.shared::cluster.u32 %r6, [%r7];",
       "mapa.shared::cluster.u32 %r7, %m, %r4; ld.shared::cluster.v2.u32 {%r6, %r8}, [%r7];"
       "getctarank.shared::cluster.u32 %r8, %r7; sub.u32 %r8, %r8, %r4; mad.lo.u32 %r7, %i, 4, %r7;"
       "mad.lo.u32 %r7, %r8, 4, %r7; ld.shared::cluster.u32 %r6, [%r7];",
       "cvt.u64.u32 %d3, %r3; cvta.shared.u64 %d3, %d3; mapa.u64 %d3, %d3, %r4; ld.u32 %r6, [%d3];",
       "cvt.u64.u32 %d3, %r3; cvta.shared.u64 %d3, %d3; mapa.u64 %d3, %d3, %r4;"
       "getctarank.u64 %r8, %d3; sub.u32 %r8, %r8, %r4; ld.u32 %r6, [%d3]; add.u32 %r6, %r6, %r8;",
       "mapa.shared::cluster.u32 %r7, %r3, %r4; atom.shared::cluster.or.b32 %r6, [%r7], 0;"}) {
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const Result result = run(neighbours(kMeet, read), {12}, {64}, in, in.size(), checks, {4});
      for (std::size_t k = 0; k < in.size(); ++k) {
        const std::size_t block = k / 64;
        const std::size_t next = block / 4 * 4 + (block + 1) % 4;
        ASSERT_EQ(result.out[k], in[next * 64 + k % 64]) << read << k;
      }
      EXPECT_TRUE(result.findings.empty()) << read << result.findings[0].message;
    }
  }
}

TEST(SemanticsCluster, MistakesAreFound) {
  const std::vector<u32> in = numbers(4 * 64, 10);
  const std::string read =
      "mapa.shared::cluster.u32 %r7, %r3, %r4; ld.shared::cluster.u32 %r6, [%r7];";
  const auto findings = [&](const std::string& meet) {
    Bench bench = Bench::from_ptx(neighbours(meet, read), {.threads = 1, .checks = kCheckAll});
    const u64 out = copied(bench, std::vector<u32>(in.size()));
    const u64 from = copied(bench, in);
    const void* args[] = {&out, &from};
    std::set<std::string> kinds;
    const std::string error = error_of([&] {
      bench.stream().launch(bench.function(), {{4}, {64}, 0, {.cluster = {4}}}, args);
      bench.stream().synchronize();
    });
    for (const Finding& finding : found_by(bench.device())) kinds.insert(finding.kind);
    return kinds;
  };
  EXPECT_THAT(findings(kMeet), testing::IsEmpty());
  EXPECT_THAT(findings("bar.sync 0;"), testing::Not(testing::IsEmpty())) << "only the block waits";
  EXPECT_THAT(findings("barrier.cluster.arrive.relaxed; barrier.cluster.wait;"),
              testing::Contains("race"));
  EXPECT_THAT(findings("setp.lt.u32 %p1, %i, 32; @%p1 bra X; barrier.cluster.arrive; X: "
                       "barrier.cluster.arrive; barrier.cluster.wait;"),
              testing::Contains("barrier"))
      << "twice";
}

/// A block that arrives at another's mbarrier, and stores there with its bytes counted.
TEST(SemanticsCluster, ArrivesAndStoresElsewhere) {
  const std::vector<u32> in = numbers(4 * 32, 11);
  const std::string body =
      "setp.ne.u32 %p0, %i, 0; @%p0 bra READY; mbarrier.init.shared::cta.b64 [%M], 33;"
      "mbarrier.arrive.expect_tx.shared::cta.b64 %d4, [%M], 128; "
      "fence.mbarrier_init.release.cluster;"
      "READY: barrier.cluster.arrive; barrier.cluster.wait;"
      "mul.wide.u32 %d1, %g, 4; add.u64 %d2, %d1, %I; add.u64 %d1, %d1, %O; ld.global.u32 %r2, "
      "[%d2];"
      "mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1; mad.lo.u32 %r3, %i, 4, %m;"
      "mapa.shared::cluster.u32 %r5, %r3, %r4; mapa.shared::cluster.u32 %r6, %M, %r4;"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r2, [%r6];"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];"
      "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%M], 0; @!%p1 bra WAIT;"
      "ld.shared.u32 %r7, [%r3]; st.global.u32 [%d1], %r7; barrier.cluster.arrive;"
      "barrier.cluster.wait;";
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(text(body), {4}, {32}, in, in.size(), checks, {2});
    for (std::size_t k = 0; k < in.size(); ++k) ASSERT_EQ(result.out[k], in[k ^ 32]) << k;
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
  }
}

/// The same by generic addresses, and with reductions: the other block adds to what the store
/// brings, or adds twice, and the mbarrier counts the bytes of all.
TEST(SemanticsCluster, AsyncStoresAndReductionsReachOtherBlocks) {
  std::vector<u32> in(64);
  for (u32 k = 0; k < in.size(); ++k) in[k] = 0x9e3779b9U * (k + 1);
  const auto text_of = [](const std::string& steps) {
    return text(
        "setp.ne.u32 %p0, %i, 0; @%p0 bra READY; mbarrier.init.shared.b64 [%M], 32;"
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%M], 256; fence.mbarrier_init.release."
        "cluster; READY: mul.wide.u32 %d1, %g, 4; add.u64 %d2, %d1, %I; add.u64 %d1, %d1, %O;"
        "ld.global.u32 %r2, [%d2]; mad.lo.u32 %r3, %i, 4, %m; st.shared.u32 [%r3], 5;"
        "barrier.cluster.arrive; barrier.cluster.wait;"
        "mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1;"
        "mapa.shared::cluster.u32 %r5, %r3, %r4; mapa.shared::cluster.u32 %r6, %M, %r4;"
        "cvt.u64.u32 %d3, %r3; cvta.shared.u64 %d3, %d3; mapa.u64 %d3, %d3, %r4;"
        "cvt.u64.u32 %d4, %M; cvta.shared.u64 %d4, %d4; mapa.u64 %d4, %d4, %r4;" +
        steps +
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];"
        "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%M], 0; @!%p1 bra "
        "WAIT; ld.shared.u32 %r7, [%r3]; st.global.u32 [%d1], %r7; barrier.cluster.arrive;"
        "barrier.cluster.wait;");
  };
  struct Case {
    const char* steps;
    std::function<u32(u32)> want;
  };
  const Case cases[] = {
      {"st.async.mbarrier::complete_tx::bytes.u32 [%d3], %r2, [%d4];"
       "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r5], 7, "
       "[%r6];",
       [](u32 x) { return x + 7; }},
      {"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.xor.b32 [%r5], %r2, "
       "[%r6];"
       "red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.s32 [%d3], -3, [%d4];",
       [](u32 x) { return (x ^ 5) - 3; }},
      {"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.max.u32 [%d3], %r2, [%d4];"
       "red.async.mbarrier::complete_tx::bytes.inc.u32 [%d3], 0xffffffff, [%d4];",
       [](u32 x) { return std::max(x, 5U) == ~0U ? 0 : std::max(x, 5U) + 1; }},
      {"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u64 [%d3], 0, [%d4];",
       [](u32) { return 5U; }}};
  for (const Case& c : cases) {
    // 64 bits of every second lane would not be aligned; those take part with what is theirs.
    std::string steps = c.steps;
    if (steps.find("u64 [%d3]") != std::string::npos) {
      steps = "shl.b32 %r8, %i, 2; cvt.u64.u32 %d5, %r8; add.u64 %d3, %d3, %d5;" + steps;
    }
    const Result result = run(text_of(steps), {2}, {32}, in, in.size(), 0, {2});
    for (std::size_t k = 0; k < in.size(); ++k) {
      ASSERT_EQ(result.out[k], c.want(in[k ^ 32])) << c.steps << " " << k;
    }
  }
}

/// Stores and reductions that nobody waits for are seen by who acquires what comes behind them.
TEST(SemanticsAtomic, AsyncReleases) {
  std::vector<u32> in(32);
  for (u32 k = 0; k < in.size(); ++k) in[k] = 0x85ebca6bU * (k + 1);
  const std::string body =
      "mul.wide.u32 %d1, %i, 8; add.u64 %d2, %d1, %O; mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, "
      "%I;"
      "ld.global.u32 %r2, [%d1]; st.async.mmio.release.sys.global.u32 [%d2], %r2;"
      "st.async.release.gpu.u32 [%d2+4], 9; red.async.release.gpu.global.add.u32 [%d2], 3;"
      "red.async.mmio.release.sys.global.add.u32 [%d2+4], %r2;";
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(text(body), {1}, {32}, in, 64, checks);
    for (std::size_t k = 0; k < in.size(); ++k) {
      ASSERT_EQ(result.out[2 * k], in[k] + 3) << k;
      ASSERT_EQ(result.out[2 * k + 1], in[k] + 9) << k;
    }
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
  }
}

/// A thread that acquires the word written by such a store or reduction sees earlier stores.
TEST(SemanticsAtomic, AsyncReleasesWhatWasBefore) {
  struct Case {
    const char* signal;
    bool releases;
  };
  const Case cases[] = {
      {"st.async.release.gpu.global.u32 [%O+4], 1;", true},
      {"st.async.mmio.release.sys.u32 [%O+4], 1;", true},
      {"red.async.release.gpu.global.add.u32 [%O+4], 0x21524112;", true},
      {"st.relaxed.gpu.global.u32 [%O+4], 1;", false},
      {"red.relaxed.gpu.global.add.u32 [%O+4], 0x21524112;", false},
  };
  for (const Case& c : cases) {
    const std::string body = fmt::format(
        "setp.ge.u32 %p0, %i, 32; @%p0 bra READER; setp.ne.u32 %p1, %i, 0; @%p1 bra END;"
        "st.global.u32 [%O], 42; {} bra END;"
        "READER: ld.acquire.gpu.global.u32 %r3, [%O+4]; setp.ne.u32 %p2, %r3, 1; @%p2 bra READER;"
        "ld.global.u32 %r4, [%O]; mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, %O;"
        "st.global.u32 [%d1], %r4; END:",
        c.signal);
    const Result result = run(text(body), {1}, {64}, {0}, 64, kCheckAll);
    EXPECT_EQ(result.findings.empty(), c.releases) << c.signal;
    if (c.releases) {
      EXPECT_EQ(result.out[32], 42U) << c.signal;
    }
  }
}

/// No launch is canceled, and each block that asks is told so, or all of a cluster.
TEST(SemanticsCluster, CancelsNoLaunch) {
  for (const bool all : {false, true}) {
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const std::string ask = fmt::format(
          "{}clusterlaunchcontrol.try_cancel.async{}.mbarrier::complete_tx::bytes{}.b128 [{}], "
          "[{}];",
          all ? "mov.u32 %r6, %cluster_ctarank; setp.ne.u32 %p3, %r6, 0; @!%p3 " : "",
          all ? ".shared::cta" : "", all ? ".multicast::cluster::all" : "", all ? "%m" : "%d3",
          all ? "%M" : "%d4");
      const Result result = run(
          text("setp.ne.u32 %p0, %i, 0; cvt.u64.u32 %d3, %m; cvta.shared.u64 %d3, %d3;"
               "cvt.u64.u32 %d4, %M; cvta.shared.u64 %d4, %d4; mov.u32 %r2, -1; @%p0 bra MET;"
               "st.shared.v4.b32 [%m], {%r2, %r2, %r2, %r2}; mbarrier.init.shared.b64 [%M], 1;"
               "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
               "mbarrier.arrive.expect_tx.shared::cta.b64 %d1, [%M], 16;"
               "MET: barrier.cluster.arrive; barrier.cluster.wait; @%p0 bra WAIT;" +
               ask +
               "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;"
               "{ .reg .b128 %q; ld.shared.b128 %q, [%m];"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;"
               "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, %r4, %r5, _}, "
               "%q; clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r7, %q; }"
               "selp.u32 %r2, 5, 7, %p2; mul.wide.u32 %d2, %g, 4; add.u64 %d2, %d2, %O;"
               "st.global.u32 [%d2], %r2; barrier.cluster.arrive; barrier.cluster.wait;"),
          {4}, {32}, {0}, 128, checks, {2});
      EXPECT_THAT(result.out, testing::Each(7U));
      EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
    }
  }
}

TEST(SemanticsCluster, RefusesWhatDoesNotFit) {
  const auto error = [](Dim3 grid, Dim3 cluster, const std::string& directives = "") {
    return error_of([&] { run(text("", directives), grid, {32}, {0}, 1, 0, cluster); });
  };
  EXPECT_EQ(error({6}, {4}),
            "k: a grid of 6 x 1 x 1 blocks is launched in clusters of 4 x 1 x 1; expected whole "
            "clusters");
  EXPECT_EQ(error({32}, {32}), "k: a cluster has 1 to 16 blocks, not 32 x 1 x 1");
  EXPECT_EQ(error({8}, {4}, ".maxclusterrank 2"), "k: a cluster has 1 to 2 blocks, not 4 x 1 x 1");
  EXPECT_EQ(error({8}, {4}, ".reqnctapercluster 2"),
            "k: needs clusters of 2 x 1 x 1 blocks (.reqnctapercluster), not 4 x 1 x 1");
  EXPECT_THAT(error({8}, {}, ".reqnctapercluster 2, 0"), HasSubstr("bad cluster extent"));
}

}  // namespace
}  // namespace braid::cpu_test
