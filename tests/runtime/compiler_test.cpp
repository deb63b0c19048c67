#include "runtime/compile/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/compile/nvrtc_api.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

KernelSource small_kernel() {
  return {"reverse", R"(
extern "C" __global__ void __launch_bounds__(256) reverse(float* a, int n) {
  __shared__ float s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[255 - threadIdx.x] * n;
}
)"};
}

class CompilerTarget : public ::testing::TestWithParam<const char*> {};

TEST_P(CompilerTarget, CompilesToBothForms) {
  const Target target = Target::parse(GetParam());
  const CompiledKernel kernel = compile_kernel(small_kernel(), target, nullptr);
  EXPECT_EQ(kernel.image.entry, "reverse");
  EXPECT_THAT(kernel.image.ptx, HasSubstr(".visible .entry reverse("));
  EXPECT_THAT(kernel.image.ptx, HasSubstr(std::string(".target ") + GetParam()));
  EXPECT_NE(kernel.image.ptx.back(), '\0');
  ASSERT_GT(kernel.image.cubin.size(), 4);
  EXPECT_EQ(std::string(kernel.image.cubin.begin(), kernel.image.cubin.begin() + 4),
            "\x7f"
            "ELF");
  EXPECT_GT(kernel.resources.registers, 0);
  EXPECT_EQ(kernel.resources.shared_bytes, 1024);
  EXPECT_EQ(kernel.resources.spill_store_bytes, 0);
  EXPECT_EQ(kernel.resources.stack_bytes, 0);
  EXPECT_GT(kernel.compile_ms, 0);
  EXPECT_FALSE(kernel.cache_hit);
}

INSTANTIATE_TEST_SUITE_P(All, CompilerTarget, ::testing::Values("sm_80", "sm_90a", "sm_100a"));

TEST(Compiler, ReadsSpillsOfARealKernel) {
  // 200 values that are live at once do not fit into the 64 registers a thread gets here.
  const KernelSource source{"spill", R"(
extern "C" __global__ void __launch_bounds__(1024) spill(float* a) {
  float v[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) v[i] = a[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 200; ++i) a[i * 1024 + threadIdx.x] = v[199 - i] * v[i];
}
)"};
  const KernelResources r = compile_kernel(source, Target::parse("sm_80"), nullptr).resources;
  EXPECT_EQ(r.registers, 64);
  EXPECT_GT(r.spill_store_bytes, 0);
  EXPECT_GT(r.spill_load_bytes, 0);
  EXPECT_GT(r.stack_bytes, 0);
}

// Sums that are read while they are multiplied.
TEST(Compiler, KeepsWhatPtxasSaysOfSerialisedProducts) {
  const KernelSource source{"serial", R"(
extern "C" __global__ void __launch_bounds__(128) serial(float* a, unsigned long long d, int n) {
  float v[4] = {};
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, "
                 "1, 0, 0;" : "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3]) : "l"(d));
    v[i % 4] += a[i];
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
  }
  for (int i = 0; i < 4; ++i) a[threadIdx.x * 4 + i] = v[i];
}
)"};
  const CompiledKernel kernel = compile_kernel(source, Target::parse("sm_90a"), nullptr);
  EXPECT_THAT(kernel.advice, ::testing::HasSubstr("wgmma.mma_async instructions are serialized"));
}

TEST(Compiler, ParsesThePtxasLog) {
  const KernelResources r = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem, 16 bytes cmem[4]\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Function properties for k\n"
      "    48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads\r\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 33792 bytes smem, 400 bytes cmem[0]");
  EXPECT_EQ(r.registers, 255);
  EXPECT_EQ(r.shared_bytes, 33792);
  EXPECT_EQ(r.spill_store_bytes, 40);
  EXPECT_EQ(r.spill_load_bytes, 44);
  EXPECT_EQ(r.stack_bytes, 48);
  for (const char* odd :
       {"", "\n\n", "registers", " bytes smem", "99999999999999999999 registers"}) {
    EXPECT_EQ(parse_ptxas_log(odd).registers, 0) << odd;
  }
}

TEST(Compiler, CacheHitIsTheSameKernel) {
  const TemporaryDirectory temporary;
  const DiskCache cache(temporary.path());
  const Target target = Target::parse("sm_80");
  const CompiledKernel first = compile_kernel(small_kernel(), target, &cache);
  const CompiledKernel second = compile_kernel(small_kernel(), target, &cache);
  EXPECT_FALSE(first.cache_hit);
  EXPECT_TRUE(second.cache_hit);
  EXPECT_EQ(second.compile_ms, 0);
  EXPECT_EQ(first.image.ptx, second.image.ptx);
  EXPECT_EQ(first.image.cubin, second.image.cubin);
  EXPECT_EQ(first.resources.registers, second.resources.registers);
  EXPECT_EQ(first.resources.shared_bytes, second.resources.shared_bytes);
  // Another target or text is another entry.
  EXPECT_FALSE(compile_kernel(small_kernel(), Target::parse("sm_90a"), &cache).cache_hit);
  KernelSource other = small_kernel();
  other.text += ' ';
  EXPECT_FALSE(compile_kernel(other, target, &cache).cache_hit);
  EXPECT_EQ(cache.usage().entries, 3);
}

TEST(Compiler, ErrorHoldsTheWholeLog) {
  std::string text = "extern \"C\" __global__ void bad() {\n";
  for (int i = 0; i < 50; ++i) text += "  unknown_" + std::to_string(i) + "();\n";
  text += "}\n";
  const TemporaryDirectory temporary;
  const DiskCache cache(temporary.path());
  try {
    (void)compile_kernel({"bad", text}, Target::parse("sm_80"), &cache);
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), HasSubstr("\"unknown_0\" is undefined"));
    EXPECT_THAT(error.what(), HasSubstr("\"unknown_49\" is undefined"));
    EXPECT_THAT(error.what(), HasSubstr("--gpu-architecture=sm_80"));
  }
  EXPECT_EQ(cache.usage().entries, 0);
}

TEST(Compiler, MissingNvrtcSaysHowToGetIt) {
  ::setenv("BRAID_NVRTC", "/nonexistent/libnvrtc.so", 1);
  try {
    (void)NvrtcApi::load();
    FAIL() << "it loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/libnvrtc.so"));
    EXPECT_THAT(error.what(), HasSubstr("pip install nvidia-cuda-nvrtc"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    EXPECT_THAT(error.what(), Not(HasSubstr("/usr/local")));  // no fall-back
  }
  // A library that is not NVRTC.
  ::setenv("BRAID_NVRTC", "libm.so.6", 1);
  EXPECT_THROW((void)NvrtcApi::load(), Error);
  ::unsetenv("BRAID_NVRTC");
}

TEST(Compiler, NamesTheLibrary) {
  EXPECT_THAT(nvrtc_path(), HasSubstr("libnvrtc"));
  EXPECT_THAT(nvrtc_version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace braid
