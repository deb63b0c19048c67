// `braid ptx` on CUDA and PTX files of its user's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
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
using testing::Not;
using testing::StartsWith;

constexpr const char* kScaleKernel =
    R"(extern "C" __global__ void scale(const float* x, float* y, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}
)";

TEST(Ptx, AFileWithoutAnEndIsRefused) {
  const auto result = run_braid({"ptx", "/dev/zero", "--entry", "e"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "braid: error: /dev/zero: more than 67108864 bytes; expected at most 67108864\n");
}

/// A kernel of one pointer, %p, that goes `around` as long as its predicate %q holds.
std::string loop(const std::string& around) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %p;
  .reg .b32 %r;
  .reg .pred %q;
  ld.param.u64 %p, [p];
  mov.u32 %r, 0;
again:
)" + around +
         "@%q bra again;\nret;\n}";
}

TEST(Ptx, AKernelThatDoesNotEndIsGivenUp) {
  const std::string endless =
      loop("add.u32 %r, %r, 2;\nst.global.u32 [%p], %r;\nsetp.ne.u32 %q, %r, 1;\n");
  for (const char* how : {"--json", "--sanitize", "--time", "--count"}) {
    const auto result = run_braid(
        {"ptx", "-", "--entry", "k", "--arg", "zero:i32:1", "--timeout", "0.5", how}, endless);
    EXPECT_EQ(result.exit_code, 1) << how;
    EXPECT_EQ(result.err, "braid: error: stdin: did not end within the 0.5 s of --timeout\n");
  }
}

// The limit is no thread, which might be what the block waits for.
TEST(Ptx, ABlockThatWaitsForNobodyIsADeadlockAlsoWithATimeLimit) {
  const std::string waits = loop("ld.volatile.global.u32 %r, [%p];\nsetp.eq.u32 %q, %r, 0;\n");
  const auto result =
      run_braid({"ptx", "-", "--entry", "k", "--arg", "zero:i32:1", "--timeout", "60"}, waits);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("deadlock"));
}

TEST(Ptx, ACudaFileIsCompiledForTheTarget) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "arch.cu", R"(extern "C" __global__ void k() {
#if __CUDA_ARCH__ != 900
  not_for_this_one();
#endif
}
)");
  const auto run = [&](const std::vector<std::string>& options) {
    std::vector<std::string> args = {"ptx", directory / "arch.cu", "--entry", "k", "--sanitize"};
    args.insert(args.end(), options.begin(), options.end());
    return run_braid(args);
  };
  EXPECT_EQ(run({"--target", "sm_90a"}).exit_code, 0);
  EXPECT_EQ(run({"--target", "H200"}).exit_code, 0);
  EXPECT_THAT(run({}).err, HasSubstr("\"not_for_this_one\" is undefined"));
  const auto unknown = run({"--target", "none"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("braid: error: --target: "));
}

TEST(Ptx, RunsACudaFileAndItsPtx) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "scale.cu", kScaleKernel);
  std::map<std::string, HostTensor, std::less<>> tensors;
  tensors.emplace("x", HostTensor::from_doubles(DType::kF32, {3}, {1, 2, 3}));
  write_safetensors(directory / "in.safetensors", tensors);
  const auto run = [&](const std::string& file, const std::string& x, const std::string& n) {
    return run_braid({"ptx", file, "--entry", "scale", "--block", "32", "--arg", x, "--arg",
                      "poison:f32:3", "--arg", "f32:0.5", "--arg", "i32:" + n, "--sanitize",
                      "--out", directory / "out", "--json"});
  };
  const std::string x = std::string(directory / "in.safetensors") + ":x";
  const auto good = run(directory / "scale.cu", x, "3");
  ASSERT_EQ(good.exit_code, 0) << good.err << good.out;
  const SafetensorsFile out(directory / "out/buffers.safetensors");
  EXPECT_EQ(out.read("arg1").to_doubles(), (std::vector<double>{0.5, 1, 1.5}));

  // One element too many: found, with the line of the file and the buffer.
  const auto bad = run(directory / "scale.cu", x, "4");
  EXPECT_EQ(bad.exit_code, 1);
  const json finding = json::parse(bad.out)["findings"][0];
  EXPECT_EQ(finding["kind"], "bounds");
  EXPECT_EQ(finding["cuda_line"], 3);
  EXPECT_EQ(finding["buffer"], "arg0");
  EXPECT_EQ(finding["offset"], 12);
  EXPECT_EQ(finding["thread"], json({3, 0, 0}));

  // Three lanes ask for four bytes each of one sector, twice.
  const auto counted =
      run_braid({"ptx", directory / "scale.cu", "--entry", "scale", "--block", "32", "--arg", x,
                 "--arg", "zero:f32:3", "--arg", "f32:0.5", "--arg", "i32:3", "--count", "--json"});
  ASSERT_EQ(counted.exit_code, 0) << counted.err;
  const json counts = json::parse(counted.out)["counts"][0];
  EXPECT_EQ(counts["counts"]["global_bytes"], 24);
  EXPECT_EQ(counts["counts"]["global_sectors"], 2);
  EXPECT_EQ(counts["minimum_bytes"], 24);
  EXPECT_EQ(counts["estimate"]["memory_bytes"], 64);
  const json lines = counts["lines"];
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const json& line) {
    return line["cuda_line"] == 3 && line["counts"]["global_requests"] == 1;
  }));

  // A buffer that nobody wrote.
  const auto poisoned = run(directory / "scale.cu", "poison:f32:3", "3");
  EXPECT_EQ(poisoned.exit_code, 1);
  EXPECT_EQ(json::parse(poisoned.out)["findings"][0]["kind"], "uninitialized");
}

TEST(Ptx, ACudaFileIsCompiledAsNvccDoes) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "k.cu", R"(extern "C" __global__ void k(float* x, float a) {
  x[0] = a * a - 1.00048828125F;
}
)");
  const auto result = run_braid({"ptx", directory / "k.cu", "--entry", "k", "--arg", "zero:f32:1",
                                 "--arg", "f32:1.000244140625", "--out", directory / "out"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const SafetensorsFile out(directory / "out/buffers.safetensors");
  EXPECT_EQ(out.read("arg0").to_doubles(), (std::vector<double>{0x1p-24})) << "rounded once";
}

TEST(Ptx, CountsOfASampleSaySo) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "scale.cu", kScaleKernel);
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"ptx",     directory / "scale.cu",
                                     "--entry", "scale",
                                     "--grid",  "1000",
                                     "--block", "32",
                                     "--arg",   "zero:f32:32000",
                                     "--arg",   "zero:f32:32000",
                                     "--arg",   "f32:0.5",
                                     "--arg",   "i32:32000"};
    args.insert(args.end(), more.begin(), more.end());
    return run_braid(args);
  };
  const auto text = run({"--count", "--sample"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("sampled: 16 of 1000 blocks ran"));
  const json document = json::parse(run({"--count", "--sample", "--json"}).out);
  EXPECT_EQ(document["sampled"], true);
  EXPECT_EQ(document["counts"][0]["blocks"], 1000);
  EXPECT_EQ(document["counts"][0]["blocks_run"], 16);
  EXPECT_FALSE(json::parse(run({"--count", "--json"}).out).contains("sampled"));
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const auto result = run(more);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({"--sample"}, "--sample: scales counts; expected --count as well");
  refused({"--sample", "--count", "--sanitize"}, "expected a run without --sanitize");
  refused({"--sample", "--count", "--out", directory / "o"}, "expected a run without --out");
}

TEST(Ptx, TwoKernelsAreCountedSideBySide) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "scale.cu", kScaleKernel);
  test::write_file(directory / "apart.cu",
                   R"(extern "C" __global__ void apart(const float* x, float* y, float by, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (i < n) y[i] = by * x[i];
}
)");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"ptx",     directory / "scale.cu",
                                     "--entry", "scale",
                                     "--grid",  "2",
                                     "--block", "32",
                                     "--arg",   "zero:f32:1024",
                                     "--arg",   "zero:f32:1024",
                                     "--arg",   "f32:0.5",
                                     "--arg",   "i32:1024"};
    args.insert(args.end(), more.begin(), more.end());
    return run_braid(args);
  };
  const std::string other = directory / "apart.cu";
  const auto text = run({"--count=L4", "--against", other, "--against-entry", "apart"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("scale of " + std::string(directory / "scale.cu")));
  EXPECT_THAT(text.out, HasSubstr("apart of " + other));
  // Two warps, a load and a store each: four sectors of each, or 32.
  EXPECT_THAT(text.out, testing::ContainsRegex("global_sectors +16 +128 +8.00"));
  EXPECT_THAT(text.out, testing::ContainsRegex("L4, us in all +[0-9.]+ +[0-9.]+ +[0-9.]+\n"));
  EXPECT_THAT(text.out, testing::ContainsRegex("held by +launch +launch"));
  const json document = json::parse(run({"--count", "--json", "--against", other, "--against-entry",
                                         "apart", "--against-grid", "1", "--against-block", "64"})
                                        .out);
  EXPECT_EQ(document["counts"]["blocks"], 2);
  EXPECT_EQ(document["against"]["blocks"], 1);
  EXPECT_EQ(document["against"]["counts"]["global_sectors"], 128);
  EXPECT_GT(document["against"]["estimate"]["ns"], 0);

  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const auto result = run(more);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.err, "braid: error: " + why + "\n");
  };
  refused({"--against", other}, "--against: compares counts; expected --count as well");
  refused({"--against", other, "--count", "--time"},
          "--against: compares counts alone; expected a run without --time");
  refused({"--count", "--against-grid", "2"},
          "--against-grid: says how to launch --against; expected it as well");
  refused({"--count", "--against-shared", "0"},
          "--against-shared: says how to launch --against; expected it as well");
  const auto missing = run({"--count", "--against", other});
  EXPECT_EQ(missing.exit_code, 2) << missing.out;
  EXPECT_THAT(missing.err, HasSubstr("scale"));
}

TEST(Ptx, RegistersAreThoseOfPtxasOrAssumed) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "scale.cu", kScaleKernel);
  // Output as ptxas writes it for two kernels, the second of which runs.
  test::write_file(directory / "ptxas", R"(#!/bin/sh
echo "ptxas info    : Compiling entry function 'other' for 'sm_90'"
echo "ptxas info    : Used 99 registers, used 0 barriers"
echo "ptxas info    : Compiling entry function 'scale' for 'sm_90'"
echo "ptxas info    : Used 168 registers, used 0 barriers"
case "$*" in *-arch=sm_90*) ;; *) exit 1 ;; esac
case " $* " in *" -c "*) exit 1 ;; esac
)");
  std::filesystem::permissions(directory / "ptxas", std::filesystem::perms::owner_all);
  const auto estimate = [&](const std::string& ptxas) {
    ::setenv("BRAID_PTXAS", ptxas.c_str(), 1);
    const auto result = run_braid({"ptx", directory / "scale.cu", "--entry", "scale", "--block",
                                   "128", "--arg", "zero:f32:128", "--arg", "zero:f32:128", "--arg",
                                   "f32:0.5", "--arg", "i32:128", "--count=H100", "--json"});
    ::unsetenv("BRAID_PTXAS");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out)["counts"][0]["estimate"];
  };
  const json known = estimate(directory / "ptxas");
  EXPECT_EQ(known["registers"], 168);
  EXPECT_EQ(known["registers_assumed"], false);
  EXPECT_EQ(known["blocks_at_once"], 3);
  EXPECT_EQ(known["blocks_limiter"], "registers");
  const json assumed = estimate(directory / "none");
  EXPECT_EQ(assumed["registers_assumed"], true);
  EXPECT_EQ(assumed["blocks_at_once"], 8);
}

TEST(Ptx, BadArgumentsAreRefused) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "scale.cu", kScaleKernel);
  test::write_file(directory / "bad.ptx", ".version 9.0\n.target sm_80\nnonsense\n");
  const auto refused = [&](std::vector<std::string> args, const std::string& why) {
    args.insert(args.begin(), "ptx");
    const auto result = run_braid(args);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  const std::string file = directory / "scale.cu";
  refused({directory / "none.cu", "--entry", "scale"}, "none.cu: no such file");
  refused({directory.path(), "--entry", "scale"}, "is a directory; expected a file");
  refused({directory / "bad.ptx", "--entry", "scale"},
          "error: " + std::string(directory / "bad.ptx") + ":3: ");
  refused({file, "--entry", "other"}, "no such entry");
  refused({file, "--entry", "scale"}, "takes 4 parameters");
  refused({file, "--entry", "scale", "--arg", "f32:x"}, "expected a number");
  refused({file, "--entry", "scale", "--arg", "zero:f33:4"}, "unknown dtype \"f33\"");
  refused({file, "--entry", "scale", "--arg", "zero:f32:0"}, "expected 1 to 2^32");
  refused({file, "--entry", "scale", "--arg", "seven"}, "expected i32:7");
  refused({file, "--entry", "scale", "--block", ""}, "--block: found nothing; expected a value");
  for (const char* block : {"128,", ",1", "1,,1", "1,2,3,4", "1,2,3,", "1;2"}) {
    refused({file, "--entry", "scale", "--block", block},
            "--block: found \"" + std::string(block) + "\"; expected X, X,Y or X,Y,Z");
  }
  refused({file, "--entry", "scale", "--block", "2000", "--arg", "zero:f32:1", "--arg",
           "zero:f32:1", "--arg", "f32:1", "--arg", "i32:1"},
          "1 to 1024 threads");
  for (const char* bytes : {"232449", "4294967295"}) {
    refused({file, "--entry", "scale", "--shared", bytes}, "above the limit of 232448");
  }
  refused({file, "--entry", "scale", "--shared", "4294967296"}, "--shared");
  refused({file, "--entry", "scale", "--shared", "-1"}, "--shared");
  for (const char* value : {"i32:2147483648", "i32:-2147483649", "i32:99999999999", "u8:256",
                            "u8:-1", "bool:2", "i64:9223372036854775808"}) {
    refused({file, "--entry", "scale", "--arg", value}, "expected ");
  }
}

TEST(Ptx, ArgumentsFitTheirParameters) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "k.cu";
  test::write_file(file, R"(struct Pair { int a, b, c; };
extern "C" __global__ void k(int* out, int i, long long l, unsigned char u, bool b, short s, Pair p) {}
extern "C" __global__ void all(long long* out, int i, long long l, unsigned char u, bool b) {
  *out = i + l + u + b;
}
)");
  const auto run = [&](const std::string& entry, const std::vector<std::string>& arguments) {
    std::vector<std::string> args = {"ptx", file, "--entry", entry, "--out", directory / "out"};
    for (const std::string& argument : arguments) {
      args.insert(args.end(), {"--arg", argument});
    }
    return run_braid(args);
  };
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const auto result = run("k", arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_THAT(result.err, StartsWith("braid: error: --arg " + why + " (."));
    EXPECT_THAT(result.err, HasSubstr(", in its PTX:"));
    EXPECT_FALSE(std::filesystem::exists(directory / "out"));
  };
  refused({"i32:1"}, "0: i32 has 4 bytes; parameter 0 of 'k' has 8");
  refused({"zero:i32:1", "zero:i32:1"},
          "1: the address of a buffer has 8 bytes; parameter 1 of 'k' has 4");
  refused({"zero:i32:1", "i32:1", "i32:1"}, "2: i32 has 4 bytes; parameter 2 of 'k' has 8");
  refused({"zero:i32:1", "i32:1", "i64:1", "i32:1"},
          "3: i32 has 4 bytes; parameter 3 of 'k' has 1");
  refused({"zero:i32:1", "i32:1", "i64:1", "u8:1", "bool:1", "u8:1"},
          "5: u8 has 1 byte; parameter 5 of 'k' has 2");
  refused({"zero:i32:1", "i32:1", "i64:1", "u8:1", "bool:1", "f16:1", "zero:i32:3"},
          "6: the address of a buffer has 8 bytes; parameter 6 of 'k' has 12");
  const auto good =
      run("all", {"zero:i64:1", "i32:-2147483648", "i64:9000000000", "u8:255", "bool:1"});
  ASSERT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(SafetensorsFile(directory / "out/buffers.safetensors").read("arg0").to_doubles(),
            (std::vector<double>{9000000000.0 - 2147483648.0 + 256}));
}

TEST(Ptx, StaticSharedMemoryHasALimit) {
  const test::TemporaryDirectory directory;
  const auto run = [&](const std::string& bytes) {
    test::write_file(directory / "k.ptx",
                     ".version 9.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry k() { .shared .b8 s[" +
                         bytes + "]; ret; }\n");
    return run_braid({"ptx", directory / "k.ptx", "--entry", "k"});
  };
  EXPECT_EQ(run("49152").exit_code, 0);
  const auto more = run("60000");
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr("60000 bytes of static shared memory are above the limit of "
                                  "49152"));
  EXPECT_EQ(run("300000").exit_code, 2);
}

TEST(Ptx, WhatNobodyWroteIsTheSameInEveryRun) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "k.ptx";
  test::write_file(file, R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) { ret; }
)");
  const auto result = run_braid(
      {"ptx", file, "--entry", "k", "--arg", "poison:u8:5000", "--out", directory / "out"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(SafetensorsFile(directory / "out/buffers.safetensors").read("arg0").data,
            std::vector<std::byte>(5000, std::byte{0xff}));
}

// Every thread writes its own number to one place: warps race.
TEST(Ptx, PlacesAreThoseOfTheFile) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "two warps.cu", R"(extern "C" __global__ void k(int* x) {
  *x = threadIdx.x / 32;
}
)");
  test::write_file(directory / "two warps.ptx", R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 5;
  st.global.u32 [%rd1], %r2;
  ret;
}
)");
  const auto run = [&](const std::string& file, const char* format) {
    const auto result = run_braid({"ptx", directory / file, "--entry", "k", "--block", "64",
                                   "--arg", "zero:i32:1", "--sanitize", format});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.out, Not(HasSubstr(" k.ptx")));
    EXPECT_THAT(result.out, Not(HasSubstr(" k.cu")));
    return result.out;
  };
  const std::string ptx = run("two warps.ptx", "--threads=1");
  EXPECT_THAT(ptx, HasSubstr("thread (32, 0, 0), two warps.ptx:10, arg0+0; the other side: "));
  EXPECT_THAT(ptx, HasSubstr("), two warps.ptx:10\n"));
  const std::string cuda = run("two warps.cu", "--threads=1");
  EXPECT_THAT(cuda, HasSubstr("thread (32, 0, 0), two warps.cu:2, two warps.ptx:"));
  const json finding = json::parse(run("two warps.cu", "--json"))["findings"][0];
  EXPECT_THAT(finding["other"].get<std::string>(), HasSubstr(", two warps.cu:2, "));
}

TEST(Ptx, ABlockKeepsToItsDeclaredShape) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "k.ptx";
  test::write_file(file, R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry most() .maxntid 32, 2, 1 { ret; }
.visible .entry exact() .reqntid 8, 4 { ret; }
)");
  const auto run = [&](const std::string& entry, const std::string& block) {
    return run_braid({"ptx", file, "--entry", entry, "--block", block});
  };
  EXPECT_EQ(run("most", "64").exit_code, 0);
  EXPECT_EQ(run("most", "1,4,16").exit_code, 0);
  const auto more = run("most", "65");
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(more.err, HasSubstr("most: declares at most 64 threads of a block"));
  EXPECT_THAT(more.err, HasSubstr("not 65"));
  EXPECT_EQ(run("exact", "8,4").exit_code, 0);
  const auto other = run("exact", "32");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("exact: needs a block of 8 x 4 x 1 threads"));
  EXPECT_THAT(other.err, HasSubstr("not 32 x 1 x 1"));
}

TEST(Ptx, ABrokenKernelLeavesTheOthersOfItsFile) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "two.ptx";
  test::write_file(file, R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry good(.param .u64 p)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.b64 %rd1, [p];
  ld.global.b32 { %r1 }, [ %rd1 + 0 ];
  st.global.b32 [ %rd1 + 4 ], { %r1 };
  ret;
}
.visible .entry other()
{
  .reg .b32 %r<2>;
  mov.u32 %r1, %envreg32;
  ret;
}
)");
  const auto run = [&](const std::string& entry, const std::string& argument) {
    return run_braid({"ptx", file, "--entry", entry, "--arg", argument});
  };
  EXPECT_EQ(run("good", "zero:f32:16").exit_code, 0);
  const auto refused = run("other", "zero:f32:16");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("two.ptx:15: unknown register '%envreg32'"));
  // A wild pointer is an error of the run.
  const auto wild = run("good", "i64:64");
  EXPECT_EQ(wild.exit_code, 1);
  EXPECT_THAT(wild.err, HasSubstr("braid: error: " + file +
                                  ": kernel good: an access to 0x40, "
                                  "which is not the device's memory: rank 0, block (0, 0, 0)"));
}

TEST(Ptx, AnErrorOfTheRunHasTheLineOfTheFile) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "loop.ptx";
  test::write_file(file, R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry k()
{
L: bra L;
}
)");
  const auto result = run_braid({"ptx", file, "--entry", "k"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no way leads out of it (" + file + ":6)"));
}

TEST(Ptx, AFileIncludesWhatLiesBesideIt) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "mine.cuh",
                   "__device__ inline float twice(float x) { return 2 * x; }\n");
  const std::string file = directory / "scale.cu";
  test::write_file(file, R"(#include "mine.cuh"
extern "C" __global__ void scale(float* x) { x[threadIdx.x] = twice(threadIdx.x); }
)");
  const auto run = [&] {
    const auto result = run_braid({"ptx", file, "--entry", "scale", "--block", "3", "--arg",
                                   "zero:f32:3", "--out", directory / "out"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return SafetensorsFile(directory / "out/buffers.safetensors").read("arg0").to_doubles();
  };
  EXPECT_EQ(run(), (std::vector<double>{0, 2, 4}));
  // The included file is not part of any key that the caches look up.
  test::write_file(directory / "mine.cuh",
                   "__device__ inline float twice(float x) { return x + x + 1; }\n");
  EXPECT_EQ(run(), (std::vector<double>{1, 3, 5}));
}

TEST(Ptx, AnInlinedHelperOfAHeaderHasTheLineThatCalledIt) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "mine.cuh", R"(



__device__ inline float inner(const float* x) { return x[1]; }
__device__ inline float outer(const float* x) { return inner(x) + 1; }
)");
  test::write_file(directory / "k.cu", R"(#include "mine.cuh"
extern "C" __global__ void k(float* x) {
  x[0] = outer(x);
}
)");
  const auto result = run_braid(
      {"ptx", directory / "k.cu", "--entry", "k", "--arg", "zero:f32:1", "--sanitize", "--json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const json finding = json::parse(result.out)["findings"][0];
  EXPECT_EQ(finding["kind"], "bounds");
  EXPECT_EQ(finding["cuda_line"], 3);
  EXPECT_EQ(finding["cuda_file"], "k.cu");
  EXPECT_EQ(finding["inlined"], "mine.cuh:5 in inner");
}

// Each function's lines are those of the file that it is in.
TEST(Ptx, NamesTheFileOfEachKernel) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "mine.cuh", R"(


__device__ __noinline__ void called(float* x) { x[threadIdx.x + 1] = 1; }

extern "C" __global__ void first(float* x) { x[1] = 1; }
)");
  test::write_file(directory / "k.cu", R"(#include "mine.cuh"
extern "C" __global__ void second(float* x) { x[1] = 1; }
extern "C" __global__ void third(float* x) { called(x); }
)");
  for (const auto& [entry, file, line] :
       {std::tuple("first", "mine.cuh", 6), std::tuple("second", "k.cu", 2),
        std::tuple("third", "mine.cuh", 4)}) {
    const auto result = run_braid({"ptx", directory / "k.cu", "--entry", entry, "--arg",
                                   "zero:f32:1", "--sanitize", "--json"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    const json finding = json::parse(result.out)["findings"][0];
    EXPECT_EQ(finding["cuda_file"], file) << entry;
    EXPECT_EQ(finding["cuda_line"], line) << entry;
  }
}

TEST(Ptx, AnInlinedHelperOfTheFileHasItsOwnLineToo) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "k.cu",
                   R"(template <class T> __device__ T next(const T* x) { return x[1]; }
extern "C" __global__ void k(float* x) {
  x[0] = next<float>(x) + 1;
}
)");
  const auto result =
      run_braid({"ptx", directory / "k.cu", "--entry", "k", "--arg", "zero:f32:1", "--sanitize"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr(", k.cu:3 (inlined k.cu:1 in next), k.ptx:"));
}

// As Triton writes it.
TEST(Ptx, TheSourceHasTheNameThatThePtxGivesIt) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "add.ptx", R"(.version 8.7
.target sm_80
.address_size 64
.visible .entry add(.param .u64 .ptr .global .align 1 x)
{
  .reg .b64 %rd<2>; .reg .b32 %r<3>;
  .loc 1 3 0
  ld.param.b64 %rd1, [x];
  .loc 1 7 16
  mov.u32 %r1, %tid.x;
  .loc 2 293 36, function_name $L__info_string0, inlined_at 1 9 8
  shr.u32 %r2, %r1, 5;
  st.global.b32 [ %rd1 + 0 ], { %r2 };
  ret;
}
.file 1 "/root/kernels/add.py"
.file 2 "/usr/lib/triton/language/standard.py"
.section .debug_str
{
$L__info_string0:
.b8 115,117,109
.b8 0
}
)");
  const auto result = run_braid({"ptx", directory / "add.ptx", "--entry", "add", "--block", "64",
                                 "--arg", "zero:i32:1", "--sanitize"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::string place = ", add.py:9 (inlined standard.py:293 in sum), add.ptx:13";
  EXPECT_THAT(result.out, HasSubstr("thread (32, 0, 0)" + place + ", arg0+0; the other side: "));
  EXPECT_THAT(result.out, HasSubstr("thread (31, 0, 0)" + place + "\n"));
}

TEST(Ptx, AFileIncludesTheHeadersOfCuda) {
  // A toolkit of one header: not every machine has a whole one.
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "include");
  test::write_file(directory / "include/cuda_fp16.h",
                   "__device__ inline float half_of(float x) { return x / 2; }\n");
  test::write_file(directory / "k.cu", R"(#include <cuda_fp16.h>
extern "C" __global__ void k(float* x) { x[0] = half_of(3); }
)");
  const auto result = run_braid({"ptx", directory / "k.cu", "--entry", "k", "--arg", "zero:f32:1",
                                 "--out", directory / "out"},
                                "", {{"BRAID_CUDA_HOME", directory.path()}});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const SafetensorsFile out(directory / "out/buffers.safetensors");
  EXPECT_EQ(out.read("arg0").to_doubles(), (std::vector<double>{1.5}));
}

TEST(Ptx, AFileMayIncludeTheIntegersOfTheHost) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "k.cu", R"(#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdint.h>
#include <cstdio>
#include <stdlib.h>
extern "C" __global__ void k(std::uint32_t* x, int64_t y) {
  static_assert(sizeof(int64_t) == 8 && sizeof(std::intptr_t) == sizeof(void*) &&
                static_cast<uint8_t>(-1) == 255 && static_cast<int16_t>(40000) < 0, "");
  x[0] = static_cast<std::uint32_t>(y + fabsf(-2.F));
}
)");
  const auto result = run_braid({"ptx", directory / "k.cu", "--entry", "k", "--arg", "zero:i32:1",
                                 "--arg", "i64:5", "--out", directory / "out"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const SafetensorsFile out(directory / "out/buffers.safetensors");
  EXPECT_EQ(out.read("arg0").to_doubles(), (std::vector<double>{7}));
}

TEST(Ptx, ACompileErrorNamesTheFile) {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "sum.cu";
  const auto refused = [&](const std::string& text, const std::string& why) {
    test::write_file(file, text);
    const auto result = run_braid({"ptx", file, "--entry", "k", "--out", directory / "out"});
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(result.err, "braid: error: " + why + "\n");
    EXPECT_FALSE(std::filesystem::exists(directory / "out"));
  };
  refused("extern \"C\" __global__ void k() {\n  int unused;\n  foo();\n  bar();\n}\n",
          file + ":3: identifier \"foo\" is undefined");
  const std::string expected =
      "; expected a file beside it or one of CUDA's headers: NVRTC has few of the host's";
  refused("#include \"none.cuh\"\n", file + ":1: cannot open source file \"none.cuh\"" + expected);
  refused("#include <cstdint_of_the_host>\n",
          file + ":1: cannot open source file \"cstdint_of_the_host\"" + expected);
  // Errors that only NVIDIA's assembler or the device detects.
  test::write_file(file, "extern \"C\" __global__ void k() { asm(\"nonsense;\"); }\n");
  const auto result = run_braid({"ptx", file, "--entry", "k", "--out", directory / "out"});
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("nonsense"));
  EXPECT_FALSE(std::filesystem::exists(directory / "out"));
}

}  // namespace
}  // namespace braid
