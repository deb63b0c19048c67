#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "braid/error.h"
#include "cpu_harness.h"
#include "semantics.h"

// Function calls, barriers of a block, timers and the instructions that compute nothing, each
// beside a statement written from the PTX ISA.
namespace braid::cpu_test {
namespace {

using namespace semantics;
using testing::HasSubstr;

/// A kernel k(out, in) of `body` after `functions`. In the body: %i the index of the thread in its
/// block, %O and %I the addresses of its 8 bytes of out and in, %x its input; scratch %r<8> (.b32),
/// %d<8> (.b64), %p<4>.
Bench kernel(const std::string& functions, const std::string& body) {
  return Bench::from_ptx(fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
{}
.visible .entry k(.param .u64 out, .param .u64 in)
{{
.reg .b32 %i, %n, %r<8>;
.reg .b64 %O, %I, %T, %x, %d<8>;
.reg .pred %p<4>;
mov.u32 %i, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, %n, %i;
mul.wide.u32 %T, %r0, 8;
ld.param.u64 %O, [out]; ld.param.u64 %I, [in]; cvta.to.global.u64 %O, %O;
cvta.to.global.u64 %I, %I; add.s64 %O, %O, %T; add.s64 %I, %I, %T;
ld.global.u64 %x, [%I];
{}
ret;
}}
)",
                                     functions, body));
}

struct Launched {
  std::vector<u64> in, out;
};
/// Runs the kernel on `threads` threads of one block, on random inputs.
Launched run(const std::string& functions, const std::string& body, u32 threads, u64 seed) {
  Bench bench = kernel(functions, body);
  Random random(seed);
  Launched result;
  for (u32 t = 0; t < threads; ++t) result.in.push_back(random.next());
  const u64 out = bench.upload(std::vector<u64>(threads, 0xa5a5a5a5a5a5a5a5));
  bench.run({1}, {threads}, 0, out, bench.upload(result.in));
  result.out = bench.download<u64>(out, threads);
  return result;
}

/// The order in which a compiler writes a call: parameters into variables, the call, the result.
std::string call(const std::string& name, const std::string& argument, const std::string& result) {
  return fmt::format(
      "{{ .param .b64 p0; st.param.b64 [p0], {1}; .param .b64 r0;\n"
      "call (r0), {0}, (p0); ld.param.b64 {2}, [r0]; }}\n",
      name, argument, result);
}

constexpr const char* kMix = R"(
.func (.param .b64 r) mix(.param .b64 x)
{
.reg .b64 %a<4>;
.reg .pred %q;
ld.param.u64 %a0, [x];
shr.u64 %a1, %a0, 13; xor.b64 %a0, %a0, %a1;
and.b64 %a2, %a0, 1; setp.eq.u64 %q, %a2, 0;
@%q bra EVEN;
mul.lo.u64 %a0, %a0, 7;
st.param.b64 [r], %a0;
ret;
EVEN: add.u64 %a0, %a0, 5;
st.param.b64 [r], %a0;
ret;
}
)";
u64 mix_of(u64 x) {
  x ^= x >> 13;
  return (x & 1) != 0 ? x * 7 : x + 5;
}

TEST(SemanticsCall, ReturnsAValueToEachLane) {
  const Launched r = run(kMix, call("mix", "%x", "%d0") + "st.global.u64 [%O], %d0;", 96, 61);
  for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(r.out[i], mix_of(r.in[i])) << i;
}

TEST(SemanticsCall, InALoopInABranchAndTwice) {
  const std::string body =
      "and.b64 %d1, %x, 3; setp.eq.u64 %p0, %d1, 0; @%p0 bra DONE;\n"
      "LOOP: " +
      call("mix", "%x", "%x") + call("mix", "%x", "%x") +
      "add.s64 %d1, %d1, -1; setp.ne.u64 %p0, %d1, 0; @%p0 bra LOOP;\n"
      "DONE: st.global.u64 [%O], %x;";
  const Launched r = run(kMix, body, 64, 62);
  for (std::size_t i = 0; i < 64; ++i) {
    u64 want = r.in[i];
    for (u64 k = 2 * (r.in[i] & 3); k > 0; --k) want = mix_of(want);
    EXPECT_EQ(r.out[i], want) << i;
  }
}

TEST(SemanticsCall, ByAnotherNameAndUnderAPredicate) {
  const std::string functions =
      ".func (.param .b64 r) other(.param .b64 x);\n" + std::string(kMix) + ".alias other, mix;\n";
  for (const bool negated : {false, true}) {
    const std::string body = fmt::format(
        "and.b32 %r1, %i, 1; setp.eq.u32 %p0, %r1, 0; mov.b64 %d0, %x;"
        "{{ .param .b64 p0; st.param.b64 [p0], %x; .param .b64 r0; st.param.b64 [r0], %x;"
        "@{}%p0 call (r0), other, (p0); ld.param.b64 %d0, [r0]; }} st.global.u64 [%O], %d0;",
        negated ? "!" : "");
    const Launched r = run("# 1 \"of a preprocessor\"\n" + functions, body, 64, 60);
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(r.out[i], (i % 2 == 0) != negated ? mix_of(r.in[i]) : r.in[i]) << i;
    }
  }
}

TEST(SemanticsCall, NestsAndIsDeclaredFirst) {
  const std::string functions = std::string(".func (.param .b64 r) twice(.param .b64 x);\n") +
                                kMix + R"(
.func (.param .b64 r) twice(.param .b64 x)
{
.reg .b64 %a;
ld.param.u64 %a, [x];
)" + call("mix", "%a", "%a") + call("mix", "%a", "%a") +
                                "st.param.b64 [r], %a; ret; }\n";
  const Launched r =
      run(functions, call("twice", "%x", "%d0") + "st.global.u64 [%O], %d0;", 64, 63);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(r.out[i], mix_of(mix_of(r.in[i]))) << i;
}

/// Parameters by value of several sizes, a structure, a pointer through which it writes; no result.
TEST(SemanticsCall, TakesStructuresAndPointers) {
  const char* functions = R"(
.func put(.param .align 8 .b8 s[16], .param .b16 h, .param .f32 f, .param .b64 to)
{
.reg .b16 %h;
.reg .b32 %w<4>;
.reg .f32 %f;
.reg .b64 %a<4>;
ld.param.b64 %a0, [s]; ld.param.b32 %w0, [s+8]; ld.param.b32 %w1, [s+12];
ld.param.b16 %h, [h]; ld.param.f32 %f, [f]; ld.param.b64 %a1, [to];
cvt.u32.u16 %w2, %h; cvt.rzi.u32.f32 %w3, %f;
xor.b32 %w0, %w0, %w2; add.u32 %w1, %w1, %w3;
mov.b64 %a2, {%w0, %w1}; xor.b64 %a0, %a0, %a2;
st.global.b64 [%a1], %a0;
ret;
}
)";
  const char* body = R"(
{
.param .align 8 .b8 s0[16]; .param .b16 h0; .param .f32 f0; .param .b64 t0;
mov.b64 {%r1, %r2}, %x;
st.param.b64 [s0], %x; st.param.b32 [s0+8], %r2; st.param.b32 [s0+12], %r1;
st.param.b16 [h0], 0x1234; st.param.f32 [f0], 0f42F60000; st.param.b64 [t0], %O;
call.uni put, (s0, h0, f0, t0);
}
)";
  const Launched r = run(functions, body, 64, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    const auto low = static_cast<u32>(r.in[i]), high = static_cast<u32>(r.in[i] >> 32);
    const u64 pair = u64{low + 123} << 32 | (high ^ 0x1234);
    EXPECT_EQ(r.out[i], r.in[i] ^ pair) << i;
  }
}

/// A function's local variables are each call's own; its shared ones are the block's.
TEST(SemanticsCall, KeepsLocalAndSharedVariables) {
  const char* functions = R"(
.func (.param .b64 r) next(.param .b64 x)
{
.local .b64 own;
.shared .b32 calls;
.reg .b64 %a<2>;
.reg .b32 %w;
ld.param.u64 %a0, [x];
st.local.u64 [own], %a0;
atom.shared.add.u32 %w, [calls], 1;
ld.local.u64 %a1, [own];
add.u64 %a1, %a1, 1;
st.param.b64 [r], %a1;
ret;
}
.func (.param .b64 r) read()
{
.reg .b64 %a;
mov.u64 %a, 0;
st.param.b64 [r], %a;
ret;
}
)";
  const std::string body = call("next", "%x", "%d0") + call("next", "%d0", "%d0") +
                           "{ .param .b64 r1; call (r1), read, (); ld.param.b64 %d1, [r1]; }\n"
                           "add.u64 %d0, %d0, %d1; st.global.u64 [%O], %d0;";
  const Launched r = run(functions, body, 64, 65);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(r.out[i], r.in[i] + 2) << i;
}

/// Registers of a function, which the ABI does not have, and registers and constants for what it
/// has.
TEST(SemanticsCall, RegistersAndConstantsAreParameters) {
  const std::string functions = R"(
.func (.reg .b64 %r, .reg .b32 %low) split(.reg .b64 %a, .param .b32 times, .reg .u16 %h)
{
.reg .pred %p; .reg .b32 %n; .reg .b64 %w;
ld.param.u32 %n, [times]; cvt.u64.u32 %w, %n; mul.lo.u64 %r, %a, %w;
cvt.u32.u64 %low, %r; setp.lt.s32 %p, %low, 0; @%p ret; cvt.u64.u16 %w, %h; add.u64 %r, %r, %w;
}
)";
  const std::string body =
      "and.b32 %r1, %i, 1; setp.eq.u32 %p0, %r1, 0; mov.b64 %d0, 11; mov.b32 %r2, 22;"
      "@%p0 call (%d0, %r2), split, (%x, 3, 1000);"
      "@!%p0 call (%d0, _), split, (%d0, %r2, 5);"
      "cvt.u64.u32 %d1, %r2; add.u64 %d0, %d0, %d1; st.global.u64 [%O], %d0;";
  const Launched r = run(functions, body, 64, 71);
  const auto split = [](u64 a, u32 times, u16 h) {
    const u64 product = a * times;
    return std::pair(static_cast<i32>(product) < 0 ? product : product + h,
                     static_cast<u32>(product));
  };
  for (std::size_t i = 0; i < 64; ++i) {
    const auto [wide, low] = i % 2 == 0 ? split(r.in[i], 3, 1000) : split(11, 22, 5);
    EXPECT_EQ(r.out[i], wide + (i % 2 == 0 ? low : 22)) << i;
  }
}

constexpr const char* kChoices = R"(
.func (.param .b64 r) twice(.param .b64 x)
{ .reg .b64 %a; ld.param.b64 %a, [x]; add.u64 %a, %a, %a; st.param.b64 [r], %a; ret; }
.func (.param .b64 r) inverse(.param .b64 x)
{ .reg .b64 %a; ld.param.b64 %a, [x]; not.b64 %a, %a; st.param.b64 [r], %a; ret; }
.func (.param .b64 r) next(.param .b64 x)
{ .reg .b64 %a; ld.param.b64 %a, [x]; add.u64 %a, %a, 1; st.param.b64 [r], %a; ret; }
.func (.param .b32 r) other(.param .b64 x) { ret; }
)";

/// Each lane calls what its pointer says: made by selects, from a table, and from the body's
/// targets.
TEST(SemanticsCall, ByAddress) {
  const auto chosen = [](u64 x, std::size_t which) {
    return which == 0 ? x + x : which == 1 ? ~x : x + 1;
  };
  const std::string table = std::string(kChoices) +
                            ".global .u64 table[3] = {twice, inverse, next};\n"
                            ".global .u64 unlike = other;";
  const std::string select =
      "mov.u64 %d1, twice; mov.u64 %d2, inverse; mov.b64 %d3, next; rem.u32 %r1, %i, 3;"
      "setp.eq.u32 %p0, %r1, 1; setp.eq.u32 %p1, %r1, 2; selp.b64 %d1, %d2, %d1, %p0;"
      "selp.b64 %d1, %d3, %d1, %p1;";
  const std::string load =
      "rem.u32 %r1, %i, 3; mul.wide.u32 %d2, %r1, 8; mov.u64 %d3, table; add.u64 %d3, %d3, %d2;"
      "ld.global.u64 %d1, [%d3];";
  const std::string prototype = "pr: .callprototype (.param .b64 _) _ (.param .b64 _);";
  const std::string targets = "ts: .calltargets inverse, next, twice;";
  const std::string variables =
      "{ .param .b64 a; .param .b64 b; st.param.b64 [a], %x; call (b), %d1, (a), pr;"
      "ld.param.b64 %d0, [b]; }";
  struct Case {
    std::string functions, body;
  };
  const Case cases[] = {{kChoices, select + prototype + variables},
                        {kChoices, select + targets + "call (%d0), %d1, (%x), ts;"},
                        {table, load + prototype + variables},
                        {table, load + prototype + "call.uni (%d0), %d1, (%x), pr;"}};
  for (const Case& c : cases) {
    const Launched r = run(c.functions, c.body + "st.global.u64 [%O], %d0;", 96, 72);
    for (std::size_t i = 0; i < 96; ++i) {
      ASSERT_EQ(r.out[i], chosen(r.in[i], i % 3)) << c.body << i;
    }
  }
  // Without results and parameters, under a guard, in functions that are called.
  const std::string nested = std::string(kChoices) + R"(
.shared .b32 count;
.func up() { .reg .b32 %o; atom.shared.add.u32 %o, [count], 1; ret; }
.func outer(.param .b64 f)
{ .reg .b64 %f; ld.param.b64 %f, [f]; pr: .callprototype _ (); call %f, pr; call %f, (), pr; ret; }
)";
  const std::string body =
      "st.shared.u32 [count], 0; bar.sync 0; mov.u64 %d1, up; setp.lt.u32 %p0, %i, 5;"
      "@%p0 call outer, (%d1); bar.sync 0; ld.shared.u32 %r1, [count]; cvt.u64.u32 %d0, %r1;"
      "st.global.u64 [%O], %d0;";
  const Launched r = run(nested, body, 64, 73);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(r.out[i], 10U) << i;
  // An address that is none of these functions stops the kernel.
  EXPECT_THROW(
      run(kChoices, "mov.b64 %d1, 7; mov.b64 %d2, next;" + prototype + "call (%d0), %d1, (%x), pr;",
          32, 74),
      Error);
}

TEST(SemanticsCall, RefusesWhatItCannotDo) {
  struct Case {
    const char* functions;
    std::string body;
    const char* why;
  };
  const Case cases[] = {
      {".func (.param .b64 r) f(.param .b64 x);", call("f", "%x", "%d0"), "has no body"},
      {".func (.param .b64 r) f(.param .b64 x) { call.uni (r), f, (x); ret; }",
       call("f", "%x", "%d0"), "recursive"},
      {kMix, "{ .param .b64 a; call.uni mix, (a); }", "wrong number of parameters"},
      {kMix, "{ .param .b32 a; .param .b64 b; call.uni (b), mix, (a); }", "does not fit"},
      {kMix, "call.uni (%d0), %d1, (%x);", "no function that it may call"},
      {kMix, "pr: .callprototype (.param .b64 _) _ (.param .b64 _); call (%d0), %d1, (%x), pr;",
       "no function that it may call"},
      {"", "call.uni %d1, (%x), 7;", "expected a prototype"},
      {".func f(.param .align 8 .b8 x[16]) { ret; }", "call f, (%x);", "must be a variable"},
  };
  for (const Case& c : cases) {
    try {
      kernel(c.functions, c.body);
      ADD_FAILURE() << "expected: " << c.why;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(c.why));
      EXPECT_THAT(error.what(), HasSubstr("ptx:"));
    }
  }
}

/// Threads of a block that write, wait at a barrier and read what the thread 37 places on wrote.
TEST(SemanticsBarrier, EveryFormWaitsForAll) {
  for (const char* form : {"bar.sync 0;", "bar.sync 3;", "bar.cta.sync 0, 96;", "barrier.sync 1;",
                           "barrier.sync.aligned 1, 96;", "barrier.cta.sync.aligned 2;",
                           // With a number that is equal in all lanes but unknown at compile time.
                           "shfl.sync.idx.b32 %r3, %i, 7, 31, -1; and.b32 %r3, %r3, 7;"
                           "mul.lo.u32 %r4, %r3, 13; add.u32 %r4, %r4, 5; bar.sync %r3, %r4;"}) {
    const std::string body = fmt::format(
        "mul.wide.u32 %d1, %i, 8; mov.u64 %d2, tile; add.u64 %d1, %d1, %d2;\n"
        "st.shared.u64 [%d1], %x;\n{}\n"
        "add.u32 %r1, %i, 37; rem.u32 %r1, %r1, 96; mul.wide.u32 %d1, %r1, 8;\n"
        "add.u64 %d1, %d1, %d2; ld.shared.u64 %d0, [%d1]; st.global.u64 [%O], %d0;",
        form);
    const Launched r = run(".shared .align 8 .b8 tile[768];", body, 96, 66);
    for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(r.out[i], r.in[(i + 37) % 96]) << form << i;
  }
}

TEST(SemanticsBarrier, ReducesAPredicate) {
  // All threads, the first warp and one more, none, all.
  for (const u32 limit : {96U, 33U, 0U}) {
    const std::string body = fmt::format(
        "setp.lt.u32 %p0, %i, {0};\n"
        "bar.red.popc.u32 %r1, 0, %p0; barrier.cta.red.and.pred %p1, 0, %p0;\n"
        "bar.red.or.pred %p2, 0, 96, %p0; barrier.red.popc.aligned.u32 %r2, 1, !%p0;\n"
        "selp.b32 %r3, 0x10000, 0, %p1; selp.b32 %r4, 0x20000, 0, %p2; or.b32 %r1, %r1, %r3;\n"
        "or.b32 %r1, %r1, %r4; mov.b64 %d0, {{%r1, %r2}}; st.global.u64 [%O], %d0;",
        limit);
    const Launched r = run("", body, 96, 67);
    const u64 want =
        u64{96 - limit} << 32 | limit | (limit == 96 ? 0x10000U : 0U) | (limit > 0 ? 0x20000U : 0U);
    for (std::size_t i = 0; i < 96; ++i) EXPECT_EQ(r.out[i], want) << limit << " " << i;
  }
}

/// The second warp hands its values to the first and does not wait itself.
TEST(SemanticsBarrier, ArriveDoesNotWait) {
  for (const char* arrive : {"bar.arrive 1, 64;", "barrier.cta.arrive.aligned 1, 64;"}) {
    const std::string body = fmt::format(
        "and.b32 %r1, %i, 31; mul.wide.u32 %d1, %r1, 8; mov.u64 %d2, tile;\n"
        "add.u64 %d1, %d1, %d2; setp.lt.u32 %p0, %i, 32; @%p0 bra TAKE;\n"
        "st.shared.u64 [%d1], %x; {} st.global.u64 [%O], 0; ret;\n"
        "TAKE: bar.sync 1, 64; ld.shared.u64 %d0, [%d1]; st.global.u64 [%O], %d0;",
        arrive);
    const Launched r = run(".shared .align 8 .b8 tile[256];", body, 64, 68);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(r.out[i], i < 32 ? r.in[i + 32] : 0) << i;
  }
}

/// Predicates that outlive their block, read alone and together. LLVM's selection for AVX-512 went
/// round in circles where they were words cast to lanes.
TEST(SemanticsPredicates, AreReadApartAndTogetherInALoop) {
  for (const char* op : {"or", "xor", "and"}) {
    const std::string body = fmt::format(
        "and.b32 %r1, %i, 2; setp.ne.u32 %p0, %r1, 0; rem.u32 %r2, %i, 3; setp.eq.u32 %p1, %r2, 0;"
        "mov.u32 %r6, 0; AGAIN: bar.sync 0; {}.pred %p2, %p0, %p1; selp.b32 %r3, 0, 8, %p0;"
        "selp.b32 %r4, 0, 8, %p2; selp.b32 %r5, 0, 8, %p1; shl.b32 %r4, %r4, 4;"
        "shl.b32 %r5, %r5, 8; or.b32 %r3, %r3, %r4; or.b32 %r3, %r3, %r5; cvt.u64.u32 %d0, %r3;"
        "st.global.u64 [%O], %d0; add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 2; @%p3 bra AGAIN;",
        op);
    const Launched r = run("", body, 96, 69);
    for (std::size_t i = 0; i < 96; ++i) {
      const bool p = (i & 2) != 0;
      const bool q = i % 3 == 0;
      const bool both = op[0] == 'o' ? p || q : op[0] == 'x' ? p != q : p && q;
      EXPECT_EQ(r.out[i], (p ? 0 : 8) + (both ? 0 : 0x80) + (q ? 0 : 0x800)) << op << i;
    }
  }
}

/// Like CUDA's grid.sync(): %envreg1 and 2 are the address of a word that is zero at launch.
TEST(SemanticsBarrier, BlocksMeetInTheWorkspaceOfTheirGrid) {
  const std::string body =
      "mov.b32 %r1, %envreg1; mov.b32 %r2, %envreg2; mov.b64 %d1, {%r2, %r1};"
      "st.global.u64 [%O], %x; mov.u32 %r3, %nctaid.x; bar.sync 0;"
      "setp.ne.u32 %p0, %i, 0; @%p0 bra MET; red.release.gpu.global.add.u32 [%d1+4], 1;"
      "WAIT: ld.acquire.gpu.global.u32 %r4, [%d1+4]; setp.lt.u32 %p1, %r4, %r3; @%p1 bra WAIT;"
      "MET: bar.sync 0; mov.u32 %r5, %ctaid.x; add.u32 %r5, %r5, 1; setp.eq.u32 %p2, %r5, %r3;"
      "selp.b32 %r6, 0, 32, %p2; mad.lo.u32 %r6, %r6, 8, 0; cvt.u64.u32 %d2, %r6;"
      "add.u64 %d2, %d2, %O; ld.relaxed.gpu.global.u64 %d3, [%d2]; st.global.u64 [%O+1024], %d3;";
  Bench bench = kernel("", body);
  std::vector<u64> in(128);
  for (u64 i = 0; i < in.size(); ++i) in[i] = i * 0x100000001;
  const u64 out = bench.upload(std::vector<u64>(256));
  const u64 values = bench.upload(in);
  for (int launch = 0; launch < 2; ++launch) bench.run({4}, {32}, 0, out, values);
  const auto got = bench.download<u64>(out, 256);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(got[128 + i], in[i < 96 ? i + 32 : i]) << i;
}

TEST(SemanticsTimer, NeverRunsBackwards) {
  struct Timer {
    const char *whole, *low, *high;
  };
  for (const Timer& timer : {Timer{"%clock64", "%clock", "%clock_hi"},
                             Timer{"%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}}) {
    // Whole before, its halves, whole after a pause. The halves are two readings: the low one may
    // wrap in between, so that only the high one has a place between the wholes.
    const std::string body = fmt::format(
        "mov.u64 %d0, {0}; mov.u32 %r1, {1}; mov.u32 %r2, {2}; nanosleep.u32 1000;\n"
        "mov.u64 %d1, {0}; shr.u64 %d2, %d0, 32; shr.u64 %d3, %d1, 32; cvt.u64.u32 %d4, %r2;\n"
        "setp.le.u64 %p0, %d0, %d1; setp.le.and.u64 %p0, %d2, %d4, %p0;\n"
        "setp.le.and.u64 %p0, %d4, %d3, %p0;\n"
        // The low half: not later than `after`, counted from `before` modulo 2^32.
        "cvt.u32.u64 %r3, %d0; cvt.u32.u64 %r4, %d1; sub.u32 %r1, %r1, %r3;\n"
        "sub.u32 %r4, %r4, %r3; setp.le.and.u32 %p0, %r1, %r4, %p0;\n"
        "selp.b64 %d5, 1, 0, %p0; st.global.u64 [%O], %d5;",
        timer.whole, timer.low, timer.high);
    const Launched r = run("", body, 64, 69);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(r.out[i], 1) << timer.whole << " " << i;
  }
}

/// Hints, policies and markers leave registers and memory as they are.
TEST(SemanticsHints, ComputeNothing) {
  for (const std::string hint :
       {"prefetch.global.L1 [%I];",
        "prefetch.global.L2 [%I];",
        "prefetch.L2 [%I];",
        "prefetch.global.L2::evict_last [%I];",
        "prefetchu.L1 [%I];",
        "pmevent 3;",
        "brkpt;",
        "nanosleep.u32 20;",
        "applypriority.global.L2::evict_normal [%I], 128;",
        "createpolicy.fractional.L2::evict_last.b64 %d1, 0f3F800000;"
        "ld.global.L2::cache_hint.u64 %x, [%I], %d1;",
        "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %d1, 0f3F000000;"
        "st.global.L2::cache_hint.u64 [%O], %x, %d1;",
        "discard.global.L2 [%O], 128;",
        "ldu.global.u64 %x, [%I];",
        "ldu.global.v2.u32 {%r1, %r2}, [%I]; mov.b64 %x, {%r1, %r2};",
        "fence.acq_rel.cta;",
        "fence.sc.gpu;",
        "fence.acq_rel.sys;",
        "membar.cta;",
        "membar.gl;",
        "membar.sys;",
        "fence.proxy.alias;",
        "fence.proxy.async;",
        "fence.proxy.async.shared::cta;",
        "fence.proxy.async.global;",
        "fence.proxy.tensormap::generic.release.gpu;",
        "fence.proxy.tensormap::generic.acquire.sys [%I], 128;",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.mbarrier_init.release.cluster;",
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.release.sync_restrict::shared::cta.cluster;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        "setmaxnreg.dec.sync.aligned.u32 24;",
        "griddepcontrol.wait;",
        "bar.warp.sync 0xffffffff;"}) {
    const Launched r = run("", hint + " st.global.u64 [%O], %x;", 64, 70);
    EXPECT_EQ(r.out, r.in) << hint;
  }
}

/// Four warps give registers back until they have `less`, of the other eight each thread takes up
/// to `more`.
std::string error_of_registers(const std::string& directives, int less, int more,
                               const CpuOptions& options = {.threads = 2}, Dim3 block = {384}) {
  Bench bench = Bench::from_ptx(
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k()" +
          directives +
          " {\n"
          ".reg .pred %p; .reg .b32 %w;\n"
          "mov.u32 %w, %tid.x; setp.ge.u32 %p, %w, 128;\n"
          "@%p bra takes;\n"
          "setmaxnreg.dec.sync.aligned.u32 " +
          std::to_string(less) +
          ";\n"
          "ret;\n"
          "takes:\n"
          "setmaxnreg.inc.sync.aligned.u32 " +
          std::to_string(more) +
          ";\n"
          "ret;\n}\n",
      options);
  return cpu_test::error_of([&] { bench.run({1}, block, 0); });
}

TEST(SemanticsRegisters, AreThoseOfTheBlock) {
  // 168 at the start, of 65,536 for 384 threads.
  EXPECT_EQ(error_of_registers("", 40, 232), "");
  EXPECT_THAT(error_of_registers("", 40, 240),
              HasSubstr("waits for registers that its block does not have"));
  for (const unsigned seed : {0U, 7U}) {
    CpuOptions checked{.checks = kCheckAll};
    if (seed != 0) checked.schedule = {Schedule::Kind::kRandom, seed};
    EXPECT_EQ(error_of_registers("", 40, 232, checked), "");
    EXPECT_THAT(error_of_registers("", 40, 240, checked),
                HasSubstr("waits for registers that its block does not have, k.ptx:"));
  }
  EXPECT_EQ(error_of_registers(".maxnreg 128", 24, 176), "");
  EXPECT_THAT(error_of_registers(".maxnreg 128", 24, 184), HasSubstr("waits for registers"));
  EXPECT_THAT(error_of_registers(".maxntid 384 .minnctapersm 2", 24, 112),
              HasSubstr("waits for registers"));
  // A thread may use 255, which are 256.
  for (const char* declared : {"", ".maxnreg 255", ".maxnreg 256"}) {
    EXPECT_EQ(error_of_registers(declared, 256, 256, {.threads = 2}, {256}), "") << declared;
  }
}

TEST(SemanticsTrap, EndsTheKernel) {
  for (const char* body : {"setp.eq.u32 %p0, %i, 40; @%p0 trap;\n st.global.u64 [%O], %x;",
                           // As a failed assertion does, before other lanes come to a barrier.
                           "setp.eq.u32 %p0, %i, 40; @%p0 bra fails;\n bar.sync 0;\n"
                           "st.global.u64 [%O], %x; ret;\n fails: trap;"}) {
    Bench bench = kernel("", body);
    const std::vector<u64> values(64);
    const u64 out = bench.upload(values), in = bench.upload(values);
    try {
      bench.run({1}, {64}, 0, out, in);
      ADD_FAILURE() << body;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("trap"));
    }
  }
}

// Warps with roles, told apart by the numbers of threads: lanes of one that part, some of them for
// longer, meet again before its barrier.
TEST(SemanticsBarrier, LanesMeetInARoleOfWarps) {
  for (const char* is_other :
       {"setp.ge.u32 %p0, %i, 64;", "setp.gt.s32 %p0, %i, 63;", "setp.hi.u32 %p0, %i, 63;",
        "setp.lt.u32 %p3, %i, 64; not.pred %p0, %p3;"}) {
    const std::string body = std::string(is_other) + R"(
@%p0 bra OTHER;
and.b32 %r1, %i, 7; mov.u32 %r2, 0;
setp.eq.u32 %p1, %r1, 0; @%p1 bra MET;
LOOP: ld.volatile.global.u32 %r3, [%I]; add.u32 %r2, %r2, %r3; add.u32 %r1, %r1, -1;
setp.ne.u32 %p1, %r1, 0; @%p1 bra LOOP;
MET: setp.eq.u32 %p1, %r2, 0;
bar.red.or.pred %p2, 1, 64, %p1;
selp.u64 %d0, 1, 2, %p2;
st.global.u64 [%O], %d0;
bra.uni DONE;
OTHER: st.global.u64 [%O], %x;
DONE:
)";
    const Launched r = run("", body, 128, 71);
    for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(r.out[i], i < 64 ? 1 : r.in[i]) << i;
  }
}

}  // namespace
}  // namespace braid::cpu_test
