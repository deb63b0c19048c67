// The compile tier: every sample kernel through NVRTC for every target, without a GPU.

#include <gtest/gtest.h>

#include "codegen/sample_specs.h"
#include "runtime/compile/compiler.h"

namespace braid {
namespace {

class Compile : public ::testing::TestWithParam<const char*> {};

TEST_P(Compile, EverySampleWithoutSpills) {
  const Target target = Target::parse(GetParam());
  for (const auto& sample : testing::sample_specs(target)) {
    const KernelSource source = emit(sample.spec, target);
    const CompiledKernel kernel = compile_kernel(source, target, nullptr);
    EXPECT_FALSE(kernel.image.cubin.empty()) << sample.name;
    EXPECT_NE(kernel.image.ptx.find(".entry " + source.entry), std::string::npos) << sample.name;
    EXPECT_EQ(kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes, 0)
        << sample.name;
    EXPECT_EQ(kernel.advice, "") << sample.name;
    const int threads = requirements(sample.spec, target).threads;
    EXPECT_LE(kernel.resources.registers * threads, 65536)
        << sample.name << ": a block must fit one SM";
  }
}

// The registers of a default are estimated, not asked of a compiler, so that all ranks choose
// alike. This compares the estimate with the compiler. And no operand is copied byte by byte.
TEST_P(Compile, LargeMatmulsWithoutSpills) {
  const Target target = Target::parse(GetParam());
  for (const auto& sample : testing::large_matmuls(target)) {
    const CompiledKernel kernel = compile_kernel(emit(sample.spec, target), target, nullptr);
    EXPECT_EQ(kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes, 0)
        << sample.name;
    EXPECT_EQ(kernel.advice, "") << sample.name;
    EXPECT_EQ(kernel.image.ptx.find("st.shared.u8"), std::string::npos) << sample.name;
  }
}

TEST_P(Compile, WideAttentionsWithoutSpills) {
  const Target target = Target::parse(GetParam());
  for (const auto& sample : testing::wide_attentions(target)) {
    const CompiledKernel kernel = compile_kernel(emit(sample.spec, target), target, nullptr);
    EXPECT_EQ(kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes, 0)
        << sample.name;
    EXPECT_EQ(kernel.advice, "") << sample.name;
    EXPECT_EQ(kernel.resources.stack_bytes, 0) << sample.name << " has registers in memory";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Compile, ::testing::Values("sm_80", "sm_90a", "sm_100a"));
INSTANTIATE_TEST_SUITE_P(DISABLED_OtherTargets, Compile,
                         ::testing::Values("sm_86", "sm_89", "sm_120a"));

// The PTX has the access widths that the width analysis promises: 16 bytes wherever the shape
// allows.
TEST(Compile, PointwiseAndRowKernelsMoveSixteenBytes) {
  for (const auto& sample : testing::sample_specs(Target{})) {
    const bool aligned = sample.name == "pointwise_broadcast" || sample.name == "row_rms_norm" ||
                         sample.name.starts_with("all_reduce_add_rms_norm");
    if (!aligned) continue;
    const std::string ptx =
        compile_kernel(emit(sample.spec, Target{}), Target{}, nullptr).image.ptx;
    for (const char* narrow : {"ld.global.u16", "ld.global.nc.u16", "ld.global.b16",
                               "ld.global.nc.b16", "st.global.u16", "st.global.b16"}) {
      EXPECT_EQ(ptx.find(narrow), std::string::npos) << sample.name << " has " << narrow;
    }
    EXPECT_NE(ptx.find(".v4."), std::string::npos) << sample.name;
  }
}

}  // namespace
}  // namespace braid
