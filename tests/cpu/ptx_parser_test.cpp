#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "runtime/cpu/cpu_device.h"

namespace braid::cpu_test {
namespace {

using testing::HasSubstr;

std::string wrap(const std::string& body) {
  return ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" +
         body + "\n}\n";
}

/// The message of the error that loading `ptx` throws, "" when it loads.
std::string load_error(const std::string& ptx) {
  static const auto kDevice = create_cpu_device({.threads = 1});
  try {
    (void)kDevice->load(0, {"k", ptx, {}});
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
}

TEST(PtxParser, EmptyKernelLoads) { EXPECT_EQ(load_error(wrap("ret;")), ""); }

TEST(PtxParser, NamesTheLineOfAnUnknownOpcode) {
  EXPECT_EQ(load_error(wrap(".reg .b32 %r<3>;\nfoo.bar %r1, %r2;\nret;")),
            "ptx:7: unknown opcode 'foo.bar'");
}

TEST(PtxParser, NamesTheLineOfAnUnknownModifier) {
  EXPECT_THAT(load_error(wrap(".reg .b32 %r<3>;\nadd.weird.s32 %r1, %r2, %r2;\nret;")),
              HasSubstr("ptx:7: unknown modifier '.weird'"));
  EXPECT_THAT(load_error(wrap(".reg .b32 %r<3>;\nld.global.v3.b32 %r1, [%r2];\nret;")),
              HasSubstr("ptx:7:"));
}

TEST(PtxParser, RejectsMalformedText) {
  for (const char* body :
       {"add.s32 %r1, %r2, %r3;", "bra NOWHERE;", ".reg .b32 %r<4>; add.s32 %r1, %r2;",
        ".reg .b32 %r<4>; add.s32 %r1, {%r2, %r3}, %r1;", ".reg .b32 %r<4>; mov.u32 %r1, [%r2];",
        ".reg .b32 %r<9999999999>;", ".reg .b32 %r; .reg .b32 %r;", "@%p bra L; L: ret;",
        ".reg .pred %p; @%p", "{ { {", "\"", "/* open", ".reg .b32 %r<2>; mov.b32 %r1, 0fXYZ;",
        ".reg .b32 %r<3>; ld.global.u32 %r1, [%r2];",
        ".reg .b32 %r<2>; st.global.v4.u32 [%r1], %r0;", ".reg .b32 %r<2>; mov.b32 5, %r1;",
        "call foo, (1);", ".local .b8 x[99999999999];"}) {
    EXPECT_THAT(load_error(wrap(body)), HasSubstr("ptx:")) << body;
  }
  EXPECT_THAT(load_error("garbage"), HasSubstr("ptx:1:"));
  // Nesting of any depth.
  EXPECT_EQ(load_error(wrap(".reg .b32 %r; mov.u32 %r, " + std::string(2'000'000, '!') + "%r;")),
            "ptx:6: expected a predicate, found '!'");
}

/// A module with a kernel of every kind of defect. Asked for, each says its line; the others run.
TEST(PtxParser, ABrokenKernelRefusesItselfOnly) {
  const std::string text = R"(.version 9.0
.target sm_80
.address_size 64
.extern .global .b32 elsewhere;
.global .b32 here = 7;
.func broken() { .reg .b32 %r<2>; mov.u32 %r1, %envreg32; ret; }
.visible .entry first() { ret; }
.visible .entry opcode() {
  .reg .b32 %r<2>;
  frobnicate.u32 %r1, 1;
  ret; }
.visible .entry special() { .reg .b32 %r<2>;
  mov.u32 %r1, %envreg32; ret; }
.visible .entry caller() {
  call.uni broken;
  ret; }
.visible .entry character() {
  @\x01;
  ret; }
.visible .entry number() { .reg .b32 %r<2>;
  mov.b32 %r1, 0f12;
  ret; }
.visible .entry header(.param .texref t) { ret; }
.visible .entry variable() { .reg .b32 %r<2>;
  ld.global.b32 %r1, [elsewhere]; ret; }
.visible .entry large() { .local .b8 x[99999999]; ret; }
.visible .entry shared_bytes() { .shared .b8 s[40000]; frobnicate; }
.visible .entry open() { {
.visible .entry last() { .reg .b32 %r<2>; .shared .b8 t[16000]; .shared .b8 u[32000];
  ld.global.b32 %r1, [here]; ret; }
.global .b32 cut =
.visible .entry behind() { ret; }
)";
  const auto device = create_cpu_device({.threads = 1});
  const auto module = device->load(0, {"", text, {}});
  const auto error_of = [&](const char* entry) -> std::string {
    try {
      (void)module->function(entry);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
  };
  EXPECT_EQ(error_of("first"), "");
  EXPECT_EQ(error_of("last"), "");
  EXPECT_EQ(error_of("behind"), "");
  EXPECT_EQ(error_of("opcode"), "ptx:10: unknown opcode 'frobnicate.u32'");
  EXPECT_EQ(error_of("special"), "ptx:13: unknown register '%envreg32'");
  EXPECT_EQ(error_of("caller"), "ptx:6: unknown register '%envreg32'");
  EXPECT_EQ(error_of("character"), "ptx:18: unexpected character with code 92");
  EXPECT_EQ(error_of("number"), "ptx:21: bad floating-point literal");
  EXPECT_EQ(error_of("header"), "ptx:23: unknown directive '.texref'");
  EXPECT_EQ(error_of("variable"), "ptx:4: external variable 'elsewhere' is not supported");
  EXPECT_EQ(error_of("large"), "large: too much local or shared memory");
  EXPECT_EQ(error_of("shared_bytes"), "ptx:27: unknown opcode 'frobnicate'");
  EXPECT_THAT(error_of("open"), HasSubstr("ptx:29: "));
  EXPECT_THAT(error_of("none"), HasSubstr("no such entry"));
  // A launch of the last one needs all of the 48 KB that a block may have; it has no others' part.
  const auto stream = device->create_stream(0);
  stream->launch(module->function("last"), {{1}, {32}}, {});
  stream->synchronize();
  // Loaded for the sake of a broken kernel, the module is refused at once.
  EXPECT_THROW((void)device->load(0, {"opcode", text, {}}), Error);
}

/// The content of a broken kernel is skipped: a modifier of that name begins no declaration.
TEST(PtxParser, AWeakAccessBeginsNoFunction) {
  const std::string text = R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 p) { .reg .b32 %r<3>; .reg .b64 %rd<2>;
  mov.u32 %r2, %envreg32;
  ld.weak.global.u32 %r1, [%rd1];
  ret; }.visible .entry good() { ret; }
.visible .entry open() { frobnicate; {
.weak .entry last() { ret; }
)";
  const auto device = create_cpu_device({.threads = 1});
  const auto module = device->load(0, {"", text, {}});
  EXPECT_NO_THROW((void)module->function("good"));
  EXPECT_NO_THROW((void)module->function("last"));
  try {
    (void)module->function("bad");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "ptx:5: unknown register '%envreg32'");
  }
}

/// Fewer operands than needed: the analyses come before the translator counts them.
TEST(PtxParser, CountsOperands) {
  const std::pair<const char*, int> opcodes[] = {
      {"mad.lo.s32", 4}, {"add.s32", 3},  {"sub.s32", 3},           {"mul.lo.s32", 3},
      {"shl.b32", 3},    {"shr.s32", 3},  {"and.b32", 3},           {"or.b32", 3},
      {"xor.b32", 3},    {"mov.b32", 2},  {"cvt.s32.s32", 2},       {"fma.rn.f32", 4},
      {"selp.b32", 4},   {"lop3.b32", 5}, {"shfl.sync.idx.b32", 5}, {"vote.sync.ballot.b32", 3}};
  for (const auto& [opcode, needed] : opcodes) {
    std::string operands = "%r0";
    for (int count = 1; count < needed; ++count, operands += ", 7") {
      EXPECT_THAT(
          load_error(wrap(std::string(".reg .b32 %r0; ") + opcode + " " + operands + ";\nret;")),
          HasSubstr("ptx:6"))
          << opcode << " " << operands;
    }
  }
}

/// A register that nothing writes may hold anything, and so may addresses computed from it.
TEST(PtxParser, KnowsNothingOfUnwrittenRegisters) {
  EXPECT_EQ(load_error(wrap(R"(
    .reg .b16 %h; .reg .b32 %a; .reg .b64 %d, %o;
    ld.param.u64 %o, [p]; mul.wide.u32 %d, %h, 8; add.s64 %o, %o, %d; ld.global.b32 %a, [%o];
    ret;)")),
            "");
}

TEST(PtxParser, ScopesHideNames) {
  EXPECT_EQ(load_error(wrap(R"(
    .reg .b32 %r<3>;
    { .reg .pred p; setp.eq.u32 p, %r1, 0; @p bra L; mov.u32 %r2, 1; L: }
    { .reg .pred p; setp.eq.u32 p, %r1, 1; @p bra L; mov.u32 %r2, 2; L: }
    ret;)")),
            "");
}

TEST(PtxParser, SurvivesMutations) {
  const std::string good = wrap(R"(
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
    .shared .align 4 .b8 s[64];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mad.lo.s32 %r2, %r1, 4, 7;
    setp.lt.s32 %p1, %r2, 12;
    @%p1 bra $L1;
    mul.wide.s32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3+16];
    add.f32 %f1, %f2, 0f3F800000;
    shfl.sync.bfly.b32 %r7|%p2, %r3, 1, 31, -1;
    $L1: bar.sync 0;
    st.shared.u32 [s+4], %r2;
    ret;)");
  ASSERT_EQ(load_error(good), "");
  static const auto kDevice = create_cpu_device({.threads = 1});
  Random random(7);
  const std::string alphabet = "%rp.,;[]{}()<>@!|+-0159xfbus\n $_:\"/*";
  for (int round = 0; round < 1500; ++round) {
    std::string text = good;
    const int edits = 1 + static_cast<int>(random.next() % 4);
    for (int e = 0; e < edits; ++e) {
      const std::size_t at = random.next() % text.size();
      switch (random.next() % 4) {
        case 0:
          text[at] = alphabet[random.next() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1 + random.next() % 8);
          break;
        case 2:
          text.insert(at, 1, static_cast<char>(random.next() % 256));
          break;
        default:
          text.insert(at, text.substr(random.next() % text.size(), random.next() % 40));
          break;
      }
    }
    // Whether it loads does not matter; it is an error of ours or none at all.
    try {
      (void)kDevice->load(0, {"k", text, {}});
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what() << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
