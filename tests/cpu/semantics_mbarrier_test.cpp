// mbarrier objects and bulk copies against the statements of the PTX manual.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// --- mbarrier ---

/// The object as the manual describes it, with the phase as a number.
struct Model {
  u32 expected = 0, pending = 0;
  i64 bytes = 0;
  u32 phase = 0;
  void settle() {
    if (pending != 0 || bytes != 0) return;
    ++phase;
    pending = expected;
  }
};

/// Random operations of one thread that are all allowed; every result is stored.
TEST(SemanticsMbarrier, CountsArrivalsAndBytes) {
  for (u64 seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    Model model{5, 5, 0, 0};
    std::string body = "mbarrier.init.shared::cta.b64 [%M+8], 5;";
    std::vector<u32> want;
    u32 token_phase = 0;
    bool token = false;
    const auto store = [&](u32 value) {
      body += fmt::format(" st.global.u32 [%O+{}], %r2;\n", 4 * want.size());
      want.push_back(value);
    };
    const auto counted = [&](const std::string& form, const std::string& count) {
      body += form + " %d1, [%M+8]" + count + "; mbarrier.pending_count.b64 %r2, %d1;";
      token = true;
      token_phase = model.phase;
      store(model.pending);
    };
    for (int step = 0; step < 60; ++step) {
      const u32 count = 1 + static_cast<u32>(random.next() % 2);
      const std::string counts = count == 1 ? "" : ", 2";
      const bool room = model.pending >= count;
      switch (random.next() % 8) {
        case 0:
        case 1:
          if (!room) continue;
          counted("mbarrier.arrive.shared.b64", counts);
          model.pending -= count;
          break;
        case 2:
          if (model.pending <= count) continue;
          counted("mbarrier.arrive.noComplete.release.cta.shared::cta.b64",
                  ", " + std::to_string(count));
          model.pending -= count;
          break;
        case 3:
          if (model.expected <= 2 || model.pending == 0) continue;
          counted("mbarrier.arrive_drop.shared::cta.b64", "");
          --model.expected;
          --model.pending;
          break;
        case 4:
          if (model.pending == 0) continue;
          counted("mbarrier.arrive.expect_tx.shared::cta.b64", ", 48");
          model.bytes += 48;
          --model.pending;
          break;
        case 5:
          if (model.pending == 0) continue;
          body += "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%M+8], 16;\n";
          model.bytes += 16;
          continue;
        default:
          if (model.bytes == 0) continue;
          body += fmt::format("mbarrier.complete_tx.shared::cta.b64 [%M+8], {};\n", model.bytes);
          model.bytes = 0;
          break;
      }
      model.settle();
      // The phase of either parity, by its value and by a register; and that of a token, which is
      // the present or the one before it.
      body += fmt::format(
          "mov.u32 %r3, 1; mbarrier.test_wait.parity.shared.b64 %p0, [%M+8], 0;"
          "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%M+8], %r3, 100;"
          "selp.u32 %r2, 1, 0, %p0; selp.u32 %r4, 2, 0, %p1; or.b32 %r2, %r2, %r4;");
      store(model.phase % 2 == 0 ? 2 : 1);
      if (token && model.phase - token_phase <= 1) {
        body += "mbarrier.test_wait.shared::cta.b64 %p2, [%M+8], %d1; selp.u32 %r2, 1, 0, %p2;";
        store(model.phase != token_phase ? 1 : 0);
      }
    }
    const Result result = run(text(body), {1}, {1}, {0}, want.size(), kCheckAll);
    EXPECT_EQ(result.out, want) << seed;
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
    EXPECT_GT(model.phase, 2U) << "the test does too little";
  }
}

/// One warp fills a buffer of two, the other two read it and hand it back; the phases follow.
std::string ring(const std::string& wait, const std::string& arrive) {
  return text(R"(
setp.ne.u32 %p0, %i, 0; @%p0 bra READY;
mbarrier.init.shared::cta.b64 [%M], 32; mbarrier.init.shared::cta.b64 [%M+8], 32;
mbarrier.init.shared::cta.b64 [%M+16], 64; mbarrier.init.shared::cta.b64 [%M+24], 64;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0; shr.u32 %r9, %i, 5; setp.ne.u32 %p1, %r9, 0; and.b32 %r10, %i, 31;
mov.u32 %r8, 0;
LOOP: and.b32 %r2, %r8, 1; shr.u32 %r3, %r8, 1; and.b32 %r3, %r3, 1;
mad.lo.u32 %r4, %r2, 8, %M; mad.lo.u32 %r5, %r2, 128, %m; mad.lo.u32 %r5, %r10, 4, %r5;
@%p1 bra TAKE;
xor.b32 %r6, %r3, 1;
FREE: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4+16], %r6; @!%p2 bra FREE;
mad.lo.u32 %r7, %r8, 32, %r10; mul.wide.u32 %d2, %r7, 4; add.u64 %d2, %d2, %I;
ld.global.u32 %r7, [%d2]; st.shared.u32 [%r5], %r7;
)" + arrive + R"(
bra NEXT;
TAKE:
)" + wait + R"(
ld.shared.u32 %r7, [%r5]; mad.lo.u32 %r6, %r8, 64, %i; sub.u32 %r6, %r6, 32;
mul.wide.u32 %d2, %r6, 4; add.u64 %d2, %d2, %O; st.global.u32 [%d2], %r7;
mbarrier.arrive.shared::cta.b64 _, [%r4+16];
NEXT: add.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 6; @%p3 bra LOOP;
)");
}
constexpr const char* kWait =
    "FULL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], %r3; @!%p2 bra FULL;";
constexpr const char* kArrive = "mbarrier.arrive.shared::cta.b64 %d3, [%r4];";

TEST(SemanticsMbarrier, HandsABufferOn) {
  const std::vector<u32> in = numbers(6 * 32, 3);
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(ring(kWait, kArrive), {1}, {96}, in, std::size_t{6} * 64, checks);
    for (std::size_t k = 0; k < result.out.size(); ++k) {
      ASSERT_EQ(result.out[k], in[k / 64 * 32 + k % 32]) << k;
    }
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
  }
}

TEST(SemanticsMbarrier, MistakesAreFound) {
  const std::vector<u32> in = numbers(6 * 32, 4);
  const auto kinds = [&](const std::string& ptx) {
    std::set<std::string> found;
    Bench bench = Bench::from_ptx(ptx, {.threads = 1, .checks = kCheckAll});
    const u64 out = copied(bench, std::vector<u32>(6 * 64));
    const u64 from = copied(bench, in);
    (void)error_of([&] { bench.run({1}, {96}, 0, out, from); });
    for (const Finding& finding : found_by(bench.device())) found.insert(finding.kind);
    return found;
  };
  EXPECT_THAT(kinds(ring("", kArrive)), testing::Contains("race")) << "no wait";
  EXPECT_THAT(kinds(ring("mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r4], %r3;", kArrive)),
              testing::Contains(testing::AnyOf("race", "uninitialized")))
      << "a wait whose result is not looked at";
  EXPECT_THAT(kinds(ring("FULL: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [%r4], "
                         "%r3; @!%p2 bra FULL;",
                         kArrive)),
              testing::Contains("race"))
      << "a wait without order";
  EXPECT_THAT(kinds(ring(kWait, "mbarrier.arrive.relaxed.cta.shared::cta.b64 %d3, [%r4];")),
              testing::Contains("race"))
      << "an arrival without order";
  EXPECT_THAT(kinds(ring(kWait, "")), testing::Contains("deadlock")) << "no arrival";
  EXPECT_THAT(kinds(ring(kWait, std::string(kArrive) + kArrive)), testing::Contains("deadlock"))
      << "too many arrivals: the phases run ahead";
}

TEST(SemanticsMbarrier, RefusesWhatIsUndefined) {
  const auto error = [](const std::string& body) {
    return error_of([&] { run(text(body), {1}, {1}, {0}, 1); });
  };
  const std::string init = "mbarrier.init.shared.b64 [%M], 2; ";
  EXPECT_THAT(error("mbarrier.init.shared.b64 [%M], 0;"), HasSubstr("1 to 1048575 arrivals"));
  EXPECT_THAT(error(init + "mbarrier.arrive.shared.b64 %d1, [%M], 3;"),
              HasSubstr("more arrivals than the mbarrier's phase expects (ptx:"));
  EXPECT_THAT(error(init + "mbarrier.arrive.noComplete.shared.b64 %d1, [%M], 2;"),
              HasSubstr(".noComplete completes"));
  EXPECT_THAT(error(init + "mbarrier.arrive_drop.shared.b64 %d1, [%M], 3;"),
              HasSubstr("more arrivals are dropped"));
  EXPECT_THAT(error(init + "mbarrier.expect_tx.shared::cta.b64 [%M], 1048576;"),
              HasSubstr("tx-count"));
  EXPECT_THAT(error(init + "mbarrier.inval.shared.b64 [%M]; mbarrier.arrive.shared.b64 %d1, [%M];"),
              HasSubstr("there is no mbarrier object"));
}

/// cp.async arrives for its own thread, counted beforehand (.noinc) or not.
TEST(SemanticsMbarrier, CopiesArrive) {
  const std::vector<u32> in = numbers(64, 5);
  for (const bool counted : {true, false}) {
    const std::string body = fmt::format(
        "setp.ne.u32 %p0, %i, 0; @%p0 bra READY; mbarrier.init.shared.b64 [%M], {};"
        "READY: bar.sync 0; mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, %I;"
        "mad.lo.u32 %r2, %i, 4, %m; cp.async.ca.shared.global [%r2], [%d1], 4;"
        "cp.async.mbarrier.arrive{}.shared.b64 [%M]; {}"
        "WAIT: mbarrier.test_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;"
        "xor.b32 %r3, %i, 63; mad.lo.u32 %r3, %r3, 4, %m; ld.shared.u32 %r4, [%r3];"
        "mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, %O; st.global.u32 [%d1], %r4;",
        64, counted ? ".noinc" : "", counted ? "" : "mbarrier.arrive.shared.b64 %d2, [%M];");
    const Result result = run(text(body), {1}, {64}, in, 64, kCheckAll);
    for (std::size_t k = 0; k < 64; ++k) EXPECT_EQ(result.out[k], in[k ^ 63]) << k;
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
  }
}

// --- Bulk copies ---

/// In: by an mbarrier; through shared memory; out: by a group, plain or reduced.
std::string bulk(const std::string& out, const std::string& wait) {
  return text(
      "setp.ne.u32 %p0, %i, 0; @%p0 bra MET; mbarrier.init.shared.b64 [%M], 1;"
      "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;"
      "mbarrier.arrive.expect_tx.shared::cta.b64 %d1, [%M], 1024;"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%m], [%I], 512, [%M];"
      "mov.u32 %r2, 512;"
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%m+512], [%I+512], %r2, [%M];"
      "MET: bar.sync 0; " +
      wait +
      "mad.lo.u32 %r3, %i, 4, %m; ld.shared.u32 %r4, [%r3]; not.b32 %r4, %r4;"
      "bar.sync 0; st.shared.u32 [%r3], %r4; fence.proxy.async.shared::cta; bar.sync 0;"
      "@%p0 bra DONE; " +
      out +
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;"
      "DONE:");
}
constexpr const char* kBulkWait =
    "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT; ";

TEST(SemanticsBulk, CopiesInAndOut) {
  const std::vector<u32> in = numbers(256, 6);
  const std::string out = "cp.async.bulk.global.shared::cta.bulk_group [%O], [%m], 1024;";
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(bulk(out, kBulkWait), {1}, {256}, in, 256, checks);
    for (std::size_t k = 0; k < 256; ++k) ASSERT_EQ(result.out[k], ~in[k]) << k;
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
  }
}

TEST(SemanticsBulk, Reduces) {
  std::vector<u32> in = numbers(256, 7);
  const auto reduce = [&](const std::string& how, auto operation) {
    const std::string out =
        fmt::format("cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%O], [%m], 1024;", how);
    const Result result = run(bulk(out, kBulkWait), {1}, {256}, in, 256);
    for (std::size_t k = 0; k < 256; ++k) {
      ASSERT_EQ(result.out[k], operation(0xdeadbeef, ~in[k])) << how << " " << k;
    }
  };
  reduce("add.u32", [](u32 a, u32 b) { return a + b; });
  reduce("min.s32", [](u32 a, u32 b) {
    return static_cast<u32>(std::min(static_cast<i32>(a), static_cast<i32>(b)));
  });
  reduce("max.u32", [](u32 a, u32 b) { return std::max(a, b); });
  reduce("xor.b32", [](u32 a, u32 b) { return a ^ b; });
  reduce("inc.u32", [](u32 a, u32 b) { return a >= b ? 0 : a + 1; });
  const auto halves = [](Format f) {
    return [f](u32 a, u32 b) {
      u32 out = 0;
      for (int at = 0; at < 32; at += 16) {
        const Number sum =
            add(decode(f, a >> at & 0xffff), decode(f, b >> at & 0xffff), Mode::kNearest);
        out |= static_cast<u32>(encode(f, sum, Mode::kNearest)) << at;
      }
      return out;
    };
  };
  reduce("add.noftz.f16", halves(kF16));
  reduce("add.noftz.bf16", halves(kBf16));
}

TEST(SemanticsBulk, RefusesParts) {
  const auto error = [](const std::string& out) {
    return error_of([&] { run(bulk(out, kBulkWait), {1}, {256}, numbers(256, 8), 256); });
  };
  EXPECT_THAT(error("cp.async.bulk.global.shared::cta.bulk_group [%O], [%m], 24;"),
              HasSubstr("no whole 16 bytes"));
  EXPECT_THAT(error("cp.async.bulk.global.shared::cta.bulk_group [%O+8], [%m], 16;"),
              HasSubstr("not aligned"));
  EXPECT_THAT(error("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%O], [%m], 16;"),
              HasSubstr("unsupported combination"));
}

/// In each 16 bytes those are written whose bit is in the mask.
TEST(SemanticsBulk, StoresBytesOfAMask) {
  std::vector<u32> in(64);
  for (u32 k = 0; k < in.size(); ++k) in[k] = 0xc2b2ae35U * (k + 1);
  for (const u32 mask : {0x1U, 0x8000U, 0xffffU, 0U, 0x5af3U, 0x7ffeU}) {
    const std::string body = fmt::format(
        "mul.wide.u32 %d1, %i, 8; add.u64 %d1, %d1, %I; ld.global.u64 %d2, [%d1];"
        "mad.lo.u32 %r2, %i, 8, %m; st.shared.u64 [%r2], %d2; fence.proxy.async.shared::cta;"
        "bar.sync 0; setp.ne.u32 %p0, %i, 0; @%p0 bra END; mov.u16 %h0, {};"
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%O], [%m], 256, %h0;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:",
        mask);
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const Result result = run(text(body), {1}, {32}, in, 64, checks);
      for (u32 byte = 0; byte < 256; ++byte) {
        const auto of = [&](const std::vector<u32>& words) {
          return words[byte / 4] >> (8 * (byte % 4)) & 0xff;
        };
        const bool written = (mask >> (byte % 16) & 1) != 0;
        ASSERT_EQ(of(result.out), written ? of(in) : of({std::vector<u32>(64, 0xdeadbeef)}))
            << mask << " " << byte;
      }
      EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
    }
  }
}

TEST(SemanticsBulk, StoresZeros) {
  const auto body = [](const std::string& stores) {
    return text(
        "shl.b32 %r2, %i, 5; add.u32 %r2, %r2, %m; mov.u32 %r3, 0x12345678; mov.u64 %d2, 16;"
        "st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};"
        "st.shared.v4.b32 [%r2+16], {%r3, %r3, %r3, %r3};"
        "cvt.u64.u32 %d1, %r2; cvta.shared.u64 %d1, %d1; setp.lt.u32 %p0, %i, 16;" +
        stores +
        "mul.wide.u32 %d3, %i, 32; add.u64 %d3, %d3, %O;"
        "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];"
        "st.global.v4.b32 [%d3], {%r4, %r5, %r6, %r7};"
        "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2+16];"
        "st.global.v4.b32 [%d3+16], {%r4, %r5, %r6, %r7};");
  };
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(body("st.bulk.weak.shared::cta [%r2+8], %d2, 0;"
                                   "@%p0 st.bulk [%d1+24], 8, 0; st.bulk [%d1], 0, 0;"),
                              {1}, {32}, {0}, 256, checks);
    for (u32 k = 0; k < 256; ++k) {
      const u32 word = k % 8;
      const bool zero = (word >= 2 && word < 6) || (word >= 6 && k / 8 < 16);
      ASSERT_EQ(result.out[k], zero ? 0 : 0x12345678) << k;
    }
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].message;
    const auto error = [&](const char* stores) {
      return error_of([&] { run(body(stores), {1}, {32}, {0}, 256, checks); });
    };
    EXPECT_THAT(error("st.bulk.shared::cta [%r2+4], 8, 0;"), HasSubstr("not aligned"));
    EXPECT_THAT(error("st.bulk.shared::cta [%r2], 12, 0;"), HasSubstr("no whole 8 bytes"));
    EXPECT_THAT(error("st.bulk.shared::cta [%m+4088], 80, 0;"), HasSubstr("leaves the block's"));
    EXPECT_THAT(error("st.bulk [%d1], -8, 0;"), HasSubstr("leaves the block's"));
    EXPECT_THAT(error("st.bulk [%O], 8, 0;"), HasSubstr("leaves the block's"));
  }
  EXPECT_THAT(error_of([&] { run(body("st.bulk [%d1], 8, 1;"), {1}, {32}, {0}, 256); }),
              HasSubstr("the value must be 0"));
  // The copy's bytes count as written: another warp must wait.
  const Result race = run(text("setp.ge.u32 %p0, %i, 32; @%p0 bra READER; setp.ne.u32 %p1, %i, 0;"
                               "@%p1 bra END; st.bulk.shared::cta [%m], 64, 0; bra END;"
                               "READER: ld.shared.u32 %r2, [%m]; st.global.u32 [%O], %r2; END:"),
                          {1}, {64}, {0}, 1, kCheckAll);
  EXPECT_FALSE(race.findings.empty());
}

}  // namespace
}  // namespace braid::cpu_test
