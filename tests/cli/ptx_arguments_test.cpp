// The forms of --arg of `braid ptx`, and its errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/process.h"
#include "runtime/safetensors.h"

namespace braid {
namespace {

using nlohmann::json;
using test::run_braid;
using testing::HasSubstr;
using testing::StartsWith;

class PtxArgumentsTest : public ::testing::Test {
 protected:
  test::ProcessResult run(const std::string& text, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& options = {}) {
    test::write_file(file_, text);
    std::vector<std::string> args = {"ptx", file_, "--entry", "k", "--out", directory_ / "out"};
    for (const std::string& argument : arguments) args.insert(args.end(), {"--arg", argument});
    args.insert(args.end(), options.begin(), options.end());
    return run_braid(args);
  }
  /// The elements of a buffer afterwards.
  template <class T>
  std::vector<T> elements(const std::string& buffer, const std::string& dtype) {
    const FileTensor tensor = output().read_as_is(buffer);
    EXPECT_EQ(tensor.dtype, dtype);
    std::vector<T> values(tensor.data.size() / sizeof(T));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }
  SafetensorsFile output() { return SafetensorsFile(directory_ / "out/buffers.safetensors"); }
  /// One line, and nothing is run.
  void refused(const std::string& text, const std::vector<std::string>& arguments,
               const std::string& why, const std::vector<std::string>& options = {}) {
    const auto result = run(text, arguments, options);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(result.err, "braid: error: " + why + "\n");
    EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
  }

  test::TemporaryDirectory directory_;
  std::string file_ = directory_ / "k.ptx";
};

std::string kernel(const std::string& parameters, const std::string& body = "") {
  return ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n" + parameters +
         ") {\n.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f64 %fd<9>; .reg .b16 %h<9>;\n" + body +
         "ret;\n}\n";
}

// struct { char a; double b; int* c; short d; } of 32 bytes: its layout is C's.
TEST_F(PtxArgumentsTest, AStructIsLaidOutAsInC) {
  const std::string text = kernel(".param .u64 out,\n.param .align 8 .b8 s[32]", R"(
ld.param.u64 %rd1, [out];
ld.param.s8 %r1, [s];
ld.param.f64 %fd1, [s+8];
ld.param.u64 %rd2, [s+16];
ld.param.s16 %r2, [s+24];
ld.global.s32 %r3, [%rd2+4];
cvt.rn.f64.s32 %fd2, %r1;
cvt.rn.f64.s32 %fd3, %r2;
cvt.rn.f64.s32 %fd4, %r3;
st.global.f64 [%rd1], %fd2;
st.global.f64 [%rd1+8], %fd1;
st.global.f64 [%rd1+16], %fd4;
st.global.f64 [%rd1+24], %fd3;
)");
  const auto result =
      run(text, {"zero:f64:4", "struct:i8:-7,f64:0.1,random:i32:2,i16:-300"}, {"--sanitize"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const auto held = elements<std::int32_t>("arg1.2", "I32");
  EXPECT_EQ(elements<double>("arg0", "F64"),
            (std::vector<double>{-7, 0.1, static_cast<double>(held[1]), -300}));
}

TEST_F(PtxArgumentsTest, BytesAreAsTheyStand) {
  const std::string text = kernel(".param .u64 out,\n.param .align 4 .b8 s[12]", R"(
ld.param.u64 %rd1, [out];
ld.param.b32 %r1, [s+8];
st.global.b32 [%rd1], %r1;
)");
  ASSERT_EQ(run(text, {"zero:u32:1", "bytes:000000000000000078563412"}).exit_code, 0);
  EXPECT_EQ(elements<std::uint32_t>("arg0", "U32"), std::vector<std::uint32_t>{0x12345678});
}

TEST_F(PtxArgumentsTest, ATableHoldsTheAddressesOfItsBuffers) {
  const std::string text = kernel(".param .u64 table", R"(
ld.param.u64 %rd1, [table];
ld.global.u64 %rd2, [%rd1];
ld.global.u64 %rd3, [%rd1+8];
ld.global.u16 %h1, [%rd2+2];
st.global.u16 [%rd3], %h1;
)");
  const auto result = run(text, {"table:random:u16:2,zero:u16:1"}, {"--sanitize"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(elements<std::uint16_t>("arg0.1", "U16")[0],
            elements<std::uint16_t>("arg0.0", "U16")[1]);
  EXPECT_EQ(output().entries().size(), 2U) << "addresses are no output";
  // Out of the table, and out of a buffer of it.
  const auto past = [&](const std::string& entries) {
    return json::parse(
        run(text, {"table:" + entries}, {"--sanitize", "--json"}).out)["findings"][0]["buffer"];
  };
  EXPECT_EQ(past("random:u16:2"), "arg0");
  EXPECT_EQ(past("random:u16:1,zero:u16:1"), "arg0.0");
}

TEST_F(PtxArgumentsTest, OneBufferServesSeveralArguments) {
  const std::string text = kernel(".param .u64 x, .param .u64 y, .param .u64 table", R"(
ld.param.u64 %rd1, [x];
ld.global.u16 %h1, [%rd1];
ld.param.u64 %rd2, [y];
st.global.u16 [%rd2], %h1;
ld.param.u64 %rd1, [table];
ld.global.u64 %rd2, [%rd1];
st.global.u16 [%rd2+2], %h1;
)");
  const auto result = run(text, {"random:u16:4", "arg0+2", "table:arg0+4"}, {"--sanitize"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const auto elements_of_x = elements<std::uint16_t>("arg0", "U16");
  EXPECT_EQ(elements_of_x[1], elements_of_x[0]);
  EXPECT_EQ(elements_of_x[3], elements_of_x[0]);
  EXPECT_EQ(output().entries().size(), 1U);
}

TEST_F(PtxArgumentsTest, APlaceInABufferIsThere) {
  const auto bad = [&](const std::string& argument, const std::string& why) {
    refused(kernel(""), {"zero:u16:4", argument}, "--arg \"" + argument + "\": " + why);
  };
  bad("arg1", "found \"arg1\"; expected a buffer of an argument before this one");
  bad("arg0+8", "found an offset of \"8\"; expected less than the 8 bytes of arg0");
  bad("arg0+", "found an offset of \"\"; expected less than the 8 bytes of arg0");
  bad("arg0+-2", "found an offset of \"-2\"; expected less than the 8 bytes of arg0");
  refused(kernel(""), {"zero:u16:16", "tensormap:arg0+2:8::8:none"},
          "--arg \"tensormap:arg0+2:8::8:none\": found an offset of 2; expected a multiple of 16");
}

/// Thread 0 loads a box of 8 x 4 floats at (4, 2), or what `copy` does, by the tensor map at %rd1;
/// each thread stores one.
std::string box_kernel(const std::string& parameter, const std::string& map,
                       const std::string& copy =
                           "2d.shared::cta.global.mbarrier::complete_tx::bytes "
                           "[tile], [%rd1, {4, 2}], [full]") {
  return kernel(parameter + ",\n.param .u64 out", R"(
.shared .align 128 .b8 tile[128]; .shared .align 8 .b64 full; .reg .pred %p<3>;
mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;
mbarrier.init.shared.b64 [full], 32; fence.proxy.async.shared::cta;
)" + map + R"(
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 128;
cp.async.bulk.tensor.)" + copy + R"(;
WAIT: bar.sync 0; mbarrier.arrive.shared.b64 %rd5, [full];
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [full], 0; @!%p2 bra AGAIN;
mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2; ld.shared.u32 %r3, [%r2];
ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3;
st.global.u32 [%rd2], %r3;
)");
}

TEST_F(PtxArgumentsTest, ATensorMapIsPassedByValueOrByAddress) {
  const std::string by_value =
      box_kernel(".param .align 64 .b8 m[128]", "mov.b64 %rd4, m; cvta.param.u64 %rd1, %rd4;");
  const std::string by_address = box_kernel(".param .u64 m", "ld.param.u64 %rd1, [m];");
  for (const std::string& text : {by_value, by_address}) {
    for (const std::string strides : {"64", ""}) {
      const auto result =
          run(text, {"tensormap:random:i32:256:16x16:" + strides + ":8x4:none", "zero:i32:32"},
              {"--block", "32", "--sanitize"});
      ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
      const auto from = elements<std::int32_t>("arg0", "I32");
      const auto box = elements<std::int32_t>("arg1", "I32");
      for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(box[i], from[(2 + i / 8) * 16 + 4 + i % 8]);
    }
  }
  // For a buffer that another argument has.
  const std::string twice = box_kernel(".param .u64 x,\n.param .u64 m", "ld.param.u64 %rd1, [m];");
  EXPECT_EQ(run(twice, {"zero:f32:256", "tensormap:arg0:16x16:64:8x4:none:nan", "zero:i32:32"},
                {"--block", "32"})
                .exit_code,
            0);
}

// As in CUTLASS; cuda.h aligns maps to 64 bytes up to CUDA 12, and to 128 since.
TEST_F(PtxArgumentsTest, AStructMayHoldATensorMap) {
  for (const auto& [bytes, at] : {std::pair(256, 64), std::pair(384, 128)}) {
    const std::string parameter =
        ".param .align " + std::to_string(at) + " .b8 s[" + std::to_string(bytes) + "]";
    const std::string text =
        box_kernel(parameter, "mov.b64 %rd4, s; cvta.param.u64 %rd1, %rd4; add.u64 %rd1, %rd1, " +
                                  std::to_string(at) + ";");
    const auto result = run(
        text, {"struct:i32:1,tensormap:random:i32:256:16x16::8x4:none,zero:f32:4", "zero:i32:32"},
        {"--block", "32", "--sanitize"});
    ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
    const auto from = elements<std::int32_t>("arg0.1", "I32");
    const auto box = elements<std::int32_t>("arg1", "I32");
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(box[i], from[(2 + i / 8) * 16 + 4 + i % 8]);
  }
  std::filesystem::remove_all(directory_ / "out");
  refused(kernel(".param .b64 t"), {"table:tensormap:zero:i32:256:16x16::8x4:none"},
          "--arg \"table:tensormap:zero:i32:256:16x16::8x4:none\": found "
          "\"tensormap:zero:i32:256:16x16::8x4:none\" in a table; expected buffers");
}

// 2 images of 4 x 4 pixels with 4 channels; 8 pixels from (0, 1) on, leaving one to the right and
// below.
TEST_F(PtxArgumentsTest, ATensorMapMayBeOneOfColumns) {
  const std::string text = box_kernel(
      ".param .u64 m", "ld.param.u64 %rd1, [m];",
      "4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [tile], [%rd1, {0, 0, 1, 0}], "
      "[full], {0, 0}");
  const auto result =
      run(text, {"im2col:random:i32:128:4x4x4x2::4x8:0x0:-1x-1:none", "zero:i32:32"},
          {"--block", "32", "--sanitize"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const auto from = elements<std::int32_t>("arg0", "I32");
  const auto column = elements<std::int32_t>("arg1", "I32");
  constexpr std::size_t kPixels[] = {4, 5, 6, 8, 9, 10, 16, 17};
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(column[i], from[kPixels[i / 4] * 4 + i % 4]);
  std::filesystem::remove_all(directory_ / "out");
  const auto bad = [&](const std::string& rest, const std::string& why) {
    const std::string argument = "im2col:zero:f32:128:" + rest;
    refused(text, {argument, "zero:i32:32"}, "--arg \"" + argument + "\": " + why);
  };
  bad("4x4x4x2::4:0x0:0x0:none",
      "found a column \"4\"; expected its channels and pixels, as 64x32");
  bad("4x4x4x2::4x8:0x0:0:none", "found corners of 2 and 1 dims; expected as many");
  bad("4x4x4x2::4x8:0:0:none", "found 3 strides and corners of 1 for 4 dims; expected 3 and 2");
  bad("4x32::4x8:0:0:none", "found 1 strides and corners of 1 for 2 dims; expected 1 and 0");
  bad("4x4x4x2::4x8:0x0:-4x0:none", "no pixel of dim 1 is between the corners");
}

TEST_F(PtxArgumentsTest, ATensorMapThatDoesNotFitIsRefused) {
  const std::string text = kernel(".param .align 64 .b8 m[128]");
  const auto bad = [&](const std::string& rest, const std::string& why) {
    const std::string argument = "tensormap:" + rest;
    refused(text, {argument}, "--arg \"" + argument + "\": " + why);
  };
  bad("zero:f32:64:16x8:64:8x4:none",
      "the tensor has 512 bytes; expected at most the buffer's 256");
  bad("zero:u8:16:9x4294967296:1099511627760:16x1:none",
      "the tensor has 18446744073709551615 bytes; expected at most the buffer's 16");
  bad("zero:f32:64:8x8:36:8x4:none",
      "dim 1 has a stride of 36 bytes; expected a multiple of 16 bytes below 2^40");
  bad("zero:f32:64:8x8:32:8x4:16B", "found swizzle \"16B\"; expected none, 32B, 64B or 128B");
  bad("zero:f32:64:8x8:32:8:none", "found 1 strides and a box of 1 for 2 dims; expected 1 and 2");
  bad("zero:f32:64:8y8:32:8x4:none", "found dims \"8y8\"; expected 1 to 5 numbers with x between");
  bad("zero:f32:64:8x8:32:8x4:none:inf",
      "found \"inf\" behind the swizzle; expected nan or nothing");
  bad("zero:bool:64:8x8:16:8x4:none", "found a buffer of bool; no tensor map has such elements");
  bad("arg1:8x8:32:8x4:none", "found \"arg1\"; expected a buffer of an argument before this one");
  bad("struct:i32:1:8x8", "found \"struct:i32:1\"; expected a buffer");
  refused(
      kernel(".param .b32 m"), {"tensormap:zero:f32:64:8x8:32:8x4:none"},
      "--arg 0: a tensor map has 128 bytes; parameter 0 of 'k' has 4 (.b32 m, " + file_ + ":5)");
}

TEST_F(PtxArgumentsTest, EveryElementTypeFillsABuffer) {
  const std::string text = kernel(".param .u64 a,\n.param .u64 b,\n.param .u64 c");
  struct Type {
    const char *name, *file_name;
    std::size_t bytes;
  };
  for (const Type& type :
       {Type{"f32", "F32", 4}, Type{"f16", "F16", 2}, Type{"bf16", "BF16", 2},
        Type{"f64", "F64", 8}, Type{"f8e4m3", "F8_E4M3", 1}, Type{"f8e5m2", "F8_E5M2", 1},
        Type{"i8", "I8", 1}, Type{"i16", "I16", 2}, Type{"i32", "I32", 4}, Type{"i64", "I64", 8},
        Type{"u8", "U8", 1}, Type{"u16", "U16", 2}, Type{"u32", "U32", 4}, Type{"u64", "U64", 8},
        Type{"bool", "BOOL", 1}}) {
    SCOPED_TRACE(type.name);
    const std::string rest = std::string(":") + type.name + ":40";
    ASSERT_EQ(run(text, {"zero" + rest, "poison" + rest, "random" + rest}).exit_code, 0);
    // 1's in every bit are no bool, which a file may hold all the same.
    const std::size_t bytes = 40 * type.bytes;
    EXPECT_EQ(output().read_as_is("arg0").data, std::vector<std::byte>(bytes));
    EXPECT_EQ(output().entries().at("arg1").dtype, type.file_name);
    const FileTensor random = output().read_as_is("arg2");
    EXPECT_EQ(random.data.size(), bytes);
    EXPECT_EQ(random.shape, std::vector<std::int64_t>{40});
    EXPECT_NE(random.data, std::vector<std::byte>(bytes));
  }
}

TEST_F(PtxArgumentsTest, AFileMayHoldAnyElementType) {
  std::map<std::string, FileTensor, std::less<>> tensors;
  const double value = 1e-300;
  tensors["x"] = {"F64", {1}, std::vector<std::byte>(8)};
  std::memcpy(tensors["x"].data.data(), &value, 8);
  const std::string in = directory_ / "in.safetensors";
  write_safetensors(in, tensors);
  ASSERT_EQ(run(kernel(".param .u64 x"), {in + ":x"}).exit_code, 0);
  EXPECT_EQ(elements<double>("arg0", "F64"), std::vector<double>{value});
}

TEST_F(PtxArgumentsTest, WhatDoesNotFitAParameterNamesItAndItsLine) {
  const std::string text =
      kernel(".param .u64 .ptr .global .align 16 x,\n.param .f32 f,\n.param .align 4 .b8 s[12]");
  const auto at = [&](int line) { return ", " + file_ + ":" + std::to_string(line) + ")"; };
  refused(text, {"i32:1"}, "--arg 0: i32 has 4 bytes; parameter 0 of 'k' has 8 (.u64 x" + at(5));
  refused(text, {"f64:1"}, "--arg 0: found f64; parameter 0 of 'k' is an integer (.u64 x" + at(5));
  refused(text, {"zero:f32:1", "i32:1"},
          "--arg 1: found i32; parameter 1 of 'k' is a float (.f32 f" + at(6));
  refused(text, {"zero:f32:1", "f32:1", "struct:i32:1,i32:2"},
          "--arg 2: a struct has 8 bytes; parameter 2 of 'k' has 12 (.b8[12] s" + at(7));
  refused(text, {"zero:f32:1", "f32:1", "bytes:00"},
          "--arg 2: bytes have 1 byte; parameter 2 of 'k' has 12 (.b8[12] s" + at(7));
  refused(text, {"zero:f32:1"},
          "--arg: 'k' takes 3 parameters, not 1; parameter 1 is missing (.f32 f" + at(6));
  refused(text, {"zero:f32:1", "f32:1", "struct:i32:1,i32:2,i32:3", "i32:1"},
          "--arg: 'k' takes 3 parameters, not 4");
  refused(kernel(""), {"i32:1"}, "--arg: 'k' takes 0 parameters, not 1");
}

TEST_F(PtxArgumentsTest, WhatCannotBeReadIsOneLine) {
  const std::string text = kernel(".param .u64 x");
  const auto bad = [&](const std::string& argument, const std::string& why) {
    refused(text, {argument}, "--arg \"" + argument + "\": " + why);
  };
  bad("bytes:123", "found 3 hex digits; expected two for each byte");
  bad("bytes:", "found 0 hex digits; expected two for each byte");
  bad("bytes:12x4", "found \"x4\" at digit 2; expected hex digits");
  bad("zero:f32:-1", "found \"-1\" elements; expected 1 to 2^32");
  bad("zero:f32:", "found \"\" elements; expected 1 to 2^32");
  bad("zero:f32:99999999999999999999",
      "found \"99999999999999999999\" elements; expected 1 to 2^32");
  bad("i8:128", "found \"128\"; expected -128 to 127");
  bad("u64:18446744073709551616",
      "found \"18446744073709551616\"; expected 0 to 18446744073709551615");
  bad("i64:-9223372036854775809",
      "found \"-9223372036854775809\"; expected -9223372036854775808 to 9223372036854775807");
  bad("u16:-1", "found \"-1\"; expected 0 to 65535");
  bad("f64:1.5.2", "found \"1.5.2\"; expected a number");
  bad("table:i64:1", "found \"i64:1\" in a table; expected buffers");
  bad("table:table:zero:f32:1",
      "found \"table\" inside of another argument; expected a scalar or a buffer");
  for (const char* form : {"", "i32", "struct:", "struct:i32:1,", "table:", "table:,zero:f32:1"}) {
    const auto result = run(text, {form});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("; expected i32:7, f32:0.5, zero:f32:1024")) << form;
  }
  for (const char* dtype : {"zero:f33:4", "x32:1", "struct:i32:1,q:2", "zero:F32:1"}) {
    const auto result = run(text, {dtype});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("; expected one of f32, f16, bf16, f64, f8e4m3")) << dtype;
  }
  const auto large = run(text, {"zero:f64:4294967296", "zero:f64:4294967296", "zero:f64:4294967296",
                                "zero:f64:4294967296"});
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_THAT(large.err, HasSubstr("half of this machine's memory"));
}

TEST_F(PtxArgumentsTest, AClusterDividesTheGrid) {
  const std::string text = kernel("");
  refused(text, {}, "--cluster: found 3 along x; expected a divisor of the grid's 4",
          {"--grid", "4", "--cluster", "3"});
  refused(text, {}, "--cluster: found 0 along y; expected a divisor of the grid's 1",
          {"--cluster", "1,0"});
  refused(text, {}, "--cluster: found \"2x\"; expected X, X,Y or X,Y,Z", {"--cluster", "2x"});
  EXPECT_EQ(run(text, {}, {"--cluster", "1,1,1"}).exit_code, 0);
}

TEST_F(PtxArgumentsTest, EachLaunchStartsFromTheSameBuffers) {
  const std::string text = kernel(".param .u64 x", R"(
ld.param.u64 %rd1, [x];
ld.global.u32 %r1, [%rd1];
add.u32 %r1, %r1, 1;
st.global.u32 [%rd1], %r1;
)");
  const auto timed = run(text, {"zero:u32:1"}, {"--repeat", "5", "--time", "--json"});
  ASSERT_EQ(timed.exit_code, 0) << timed.err;
  EXPECT_EQ(elements<std::uint32_t>("arg0", "U32")[0], 1U);
  const json report = json::parse(timed.out);
  EXPECT_EQ(report["launches"], 5);
  EXPECT_GT(report["launch_ms_min"], 0);
  EXPECT_GE(report["launch_ms_median"], report["launch_ms_min"]);
  EXPECT_GE(report["run_ms"], report["launch_ms_min"].get<double>() * 5);
  EXPECT_THAT(run(text, {"zero:u32:1"}, {"--time"}).out, HasSubstr("in the median of 1\n"));
  std::filesystem::remove_all(std::filesystem::path(directory_ / "out"));
  refused(text, {"zero:u32:1"}, "--time: --schedule all says how often the kernel runs",
          {"--time", "--sanitize", "--schedule", "all"});
  for (const char* repeat : {"0", "-1", "x", "1000001"}) {
    const auto result = run(text, {"zero:u32:1"}, {"--repeat", repeat});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, StartsWith("braid: error: --repeat"));
  }
}

}  // namespace
}  // namespace braid
