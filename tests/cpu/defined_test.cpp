// Registers that a thread reads before it wrote them, where that reaches an address, a branch or a
// store.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/checks.h"
#include "cpu/cpu_harness.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using testing::HasSubstr;

constexpr CpuOptions kOptions{.threads = 1, .checks = kCheckInit};

/// Runs 32 threads. The body finds its lane in %r0, the address of its own word in %rd0 (with
/// `n` in front of the buffer's words), and n in %r1.
std::vector<Finding> findings_of(const std::string& body, std::uint32_t n = 0) {
  Bench bench = Bench::from_ptx(fmt::format(R"(.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) {{
.reg .pred %p<4>;
.reg .b16 %h<4>;
.reg .b32 %r<16>;
.reg .f32 %f<16>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd2, %r0, 4;
add.u64 %rd0, %rd1, %rd2;
{}
ret;
}}
)",
                                            body),
                                kOptions);
  const std::uint64_t p = bench.upload(std::vector<std::uint32_t>(64));
  try {
    bench.run({1}, {32}, 0, p, n);
  } catch (const std::exception&) {
    // An undefined address may lead anywhere.
  }
  return found_by(bench.device());
}

/// The body's one finding: its message, which thread's it is, and in which line of the body.
void expect_finding(const std::string& body, const std::string& message, unsigned thread,
                    const std::string& line, std::uint32_t n = 0) {
  SCOPED_TRACE(body);
  const std::vector<Finding> findings = findings_of(body, n);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "uninitialized");
  EXPECT_EQ(findings[0].message, message);
  EXPECT_EQ(findings[0].thread.x, thread);
  const std::string before = body.substr(0, body.find(line));
  EXPECT_EQ(findings[0].ptx_line, 15 + std::count(before.begin(), before.end(), '\n'));
}

void expect_none(const std::string& body, std::uint32_t n = 0) {
  SCOPED_TRACE(body);
  for (const Finding& finding : findings_of(body, n)) ADD_FAILURE() << finding.message;
}

constexpr const char* kOwn = ", which the thread did not write";
constexpr const char* kDerived =
    ", which comes from a register that the thread did not write, or from a lane outside of a "
    "shuffle";

TEST(Defined, StraightLine) {
  expect_finding("st.global.u32 [%rd0], %r2;", std::string("write of %r2") + kOwn, 0, "st");
  expect_finding("add.u64 %rd3, %rd3, 0;\nld.global.u32 %r2, [%rd3];",
                 std::string("address from %rd3") + kOwn, 0, "ld");
  expect_finding("@%p1 bra L;\nst.global.u32 [%rd0], %r0;\nL:", std::string("branch on %p1") + kOwn,
                 0, "@%p1");
  expect_finding("@!%p1 st.global.u32 [%rd0], %r0;", std::string("branch on %p1") + kOwn, 0, "@");
  expect_finding(
      "st.global.u32 [%rd0], 0;\natom.global.add.u32 %r3, [%rd0], %r2;\nst.global.u32 [%rd0], %r3;",
      std::string("write of %r2") + kOwn, 0, "atom");
  expect_finding("st.global.v2.u32 [%rd1], {%r0, %r2};", std::string("write of %r2") + kOwn, 0,
                 "st");
  expect_none("mov.u32 %r2, 1;\nst.global.u32 [%rd0], %r2;");
  expect_none("add.u32 %r3, %r2, 1;\nmul.lo.u32 %r4, %r3, %r3;");  // never used
}

TEST(Defined, IsPassedOn) {
  const std::string store = "st.global.u32 [%rd0], %r3;";
  const std::string derived = std::string("write of %r3") + kDerived;
  for (const char* how : {"mov.u32 %r3, %r2;", "add.u32 %r3, %r0, %r2;", "or.b32 %r3, %r0, %r2;",
                          "cvt.u32.u16 %r3, %h1;", "selp.u32 %r3, %r2, %r2, %p2;",
                          "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;", "mov.b32 %r3, {%h1, %h2};"}) {
    expect_finding(std::string("setp.eq.u32 %p2, %r0, 40;\n") + how + "\n" + store, derived, 0,
                   "st");
  }
  expect_finding("setp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\nst.global.u32 [%rd0], %r0;\nL:",
                 std::string("branch on %p1") + kDerived, 0, "@%p1");
  // Not from what does not count.
  const std::string half = "setp.lt.u32 %p2, %r0, 16;\n@%p2 mov.u32 %r2, 5;\n";
  expect_none(half + "selp.u32 %r3, %r2, 7, %p2;\n" + store);
  expect_finding(half + "selp.u32 %r3, 7, %r2, %p2;\n" + store, derived, 16, "st");
  expect_none("and.b32 %r3, %r2, 0;\n" + store);
  expect_none("or.b32 %r3, %r2, -1;\n" + store);
  expect_none("cvt.u16.u32 %h2, %r0;\nmov.b32 %r3, {%h2, %h1};\n" + store);
  // Once all have it, all have it.
  expect_none("mov.u32 %r4, %r2;\nmov.u32 %r4, 3;\nmov.u32 %r3, %r4;\n" + store);
}

// %p1 is false in all threads.
TEST(Defined, OnePredicateDecidesOfTwo) {
  const std::string read =
      ".shared .u32 s[1];\nld.shared.u32 %r2, [s];\nsetp.eq.u32 %p0, %r2, 7;\n"
      "setp.gt.u32 %p1, %r0, 99;\nsetp.ne.u32 %p2, %r0, %r0;\n";
  const std::string store = "\nselp.u32 %r3, 1, 2, %p2;\nst.global.u32 [%rd0], %r3;";
  for (const char* line :
       {"and.pred %p2, %p0, %p1;", "and.pred %p2, %p1, %p0;", "or.pred %p2, %p0, !%p1;"}) {
    expect_none(read + line + store);
  }
  for (const char* line : {"and.pred %p2, %p0, !%p1;", "or.pred %p2, %p1, %p0;",
                           "and.pred %p2, %p0, %p0;", "@%p0 and.pred %p2, %p1, %p1;"}) {
    expect_finding(read + line + store, "read of bytes that nobody wrote", 0, "ld.shared");
  }
}

TEST(Defined, OneSideOfABranch) {
  const auto body = [](const char* compare) {
    return fmt::format(
        "setp.{} %p1, %r0, %r1;\n@%p1 bra L;\nmov.u32 %r2, 1;\nL:\n"
        "st.global.u32 [%rd0], %r2;",
        compare);
  };
  // The lanes from 7 on jump over the write; then none, then all.
  expect_finding(body("ge.u32"), std::string("write of %r2") + kOwn, 7, "st", 7);
  expect_none(body("ge.u32"), 32);
  expect_finding(body("ge.u32"), std::string("write of %r2") + kOwn, 0, "st", 0);
  // Used on the same side only.
  expect_none(
      "setp.ge.u32 %p1, %r0, 7;\n@%p1 bra L;\nmov.u32 %r2, 1;\nL:\n@%p1 bra M;\n"
      "st.global.u32 [%rd0], %r2;\nM:");
}

TEST(Defined, AroundALoop) {
  // Written at the end of each turn, read at the start: undefined in the first.
  const auto body = [](const char* before) {
    return fmt::format(
        "mov.u32 %r3, 0;\n{}L:\nsetp.ge.u32 %p1, %r3, 3;\n@%p1 bra D;\n"
        "add.u32 %r4, %r4, %r3;\nst.global.u32 [%rd0], %r4;\nadd.u32 %r3, %r3, 1;\n"
        "bra L;\nD:",
        before);
  };
  expect_finding(body(""), std::string("write of %r4") + kOwn, 0, "st");
  expect_none(body("mov.u32 %r4, 0;\n"));
  expect_none(
      "mov.u32 %r3, 0;\nL:\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra F;\nst.global.u32 [%rd0], %r4;\nF:\n"
      "mov.u32 %r4, %r3;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 3;\n@%p1 bra L;");
}

TEST(Defined, GuardedWrites) {
  const std::string guard = "setp.lt.u32 %p1, %r0, %r1;\n";
  const std::string store = "st.global.u32 [%rd0], %r2;";
  const std::string message = std::string("write of %r2") + kOwn;
  expect_finding(guard + "@%p1 mov.u32 %r2, 1;\n" + store, message, 20, "st", 20);
  expect_none(guard + "@%p1 mov.u32 %r2, 1;\n@!%p1 mov.u32 %r2, 2;\n" + store, 20);
  expect_none(guard + "@%p1 mov.u32 %r2, 1;\n@%p1 " + store, 20);
  // A guard that is the same for all lanes.
  const std::string uniform = "setp.ne.u32 %p1, %r1, 0;\n@%p1 ld.param.u32 %r2, [n];\n";
  expect_finding(uniform + store, message, 0, "st.", 0);
  expect_none(uniform + store, 1);
}

TEST(Defined, FirstAddendOfAMatrixProduct) {
  const auto body = [](const char* before) {
    return fmt::format(
        "mov.u32 %r2, 0;\n{}"
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%f0, %f1, %f2, %f3}}, "
        "{{%r2, %r2, %r2, %r2}}, {{%r2, %r2}}, {{%f0, %f1, %f2, %f3}};\n"
        "st.global.f32 [%rd0], %f2;",
        before);
  };
  const std::string some = "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\n";
  expect_finding(body((some + "mov.f32 %f3, %f0;\n").c_str()), std::string("write of %f2") + kOwn,
                 0, "st");
  expect_none(body((some + "mov.f32 %f2, %f0;\n").c_str()));
}

/// Behind the addend are operands of which some lanes' alone count.
TEST(Defined, AddendsOfSparseAndScaledProducts) {
  for (const std::string product :
       {"mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r2, %r2}, "
        "{%r2, %r2}, {%f0, %f1, %f2, %f3}, %r3, 1;\n",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0 "
        "{%f0, %f1, %f2, %f3}, {%r2, %r2, %r2, %r2}, {%r2, %r2}, {%f0, %f1, %f2, %f3}, %r3, {0, "
        "0}, "
        "%r3, {0, 0};\n"}) {
    const std::string before =
        "mov.u32 %r2, 0;\nand.b32 %r4, %r0, 3;\nsetp.lt.u32 %p1, %r4, 2;\n@%p1 mov.u32 %r3, 0;\n"
        "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\n";
    const std::string store = product + "st.global.f32 [%rd0], %f2;";
    expect_finding(before + "mov.f32 %f3, %f0;\n" + store, std::string("write of %f2") + kOwn, 0,
                   "st");
    expect_none(before + "mov.f32 %f2, %f0;\n" + store);
  }
}

TEST(Defined, ShufflesMoveIt) {
  // Lanes from 30 on have nothing; lane l reads lane l + 2.
  expect_finding(
      "setp.lt.u32 %p1, %r0, 30;\n@%p1 mov.u32 %r2, 1;\n"
      "shfl.sync.down.b32 %r3, %r2, 2, 31, -1;\nst.global.u32 [%rd0], %r3;",
      std::string("write of %r3") + kDerived, 28, "st");
  expect_none(
      "setp.lt.u32 %p1, %r0, 30;\n@%p1 mov.u32 %r2, 1;\n"
      "shfl.sync.idx.b32 %r3, %r2, 4, 31, -1;\nst.global.u32 [%rd0], %r3;");
}

TEST(Defined, InCuda) {
  const auto run = [](const std::string& initial) {
    Bench bench(fmt::format(R"(extern "C" __global__ void k(const float* x, float* out, int n) {{
  float v{};
  if (threadIdx.x < n) v = x[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  out[threadIdx.x] = v;
}})",
                            initial),
                kOptions);
    const std::vector<float> ones(32, 1.0F);
    const std::uint64_t x = bench.upload(ones);
    bench.stream().copy_from_host(x, ones.data(), 128);
    const std::uint64_t out = bench.upload(std::vector<float>(32));
    const int n = 20;
    bench.run({1}, {32}, 0, x, out, n);
    return found_by(bench.device());
  };
  EXPECT_TRUE(run(" = 0").empty());
  const std::vector<Finding> findings = run("");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, "uninitialized");
  EXPECT_THAT(findings[0].message, HasSubstr("write of %"));
}

TEST(Defined, OnlyWhenAskedFor) {
  for (const unsigned checks : {kCheckRace + 0U, kCheckInit + 0U}) {
    Bench bench = Bench::from_ptx(R"(.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b32 %r<2>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [p];
st.global.u32 [%rd1], %r1;
ret;
}
)",
                                  {.threads = 1, .checks = checks});
    const std::uint64_t p = bench.upload(std::vector<int>(1));
    bench.run({1}, {1}, 0, p);
    EXPECT_EQ(found_by(bench.device()).size(), checks == kCheckInit ? 1U : 0U);
  }
}

}  // namespace
}  // namespace braid::cpu_test
