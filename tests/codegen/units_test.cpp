#include "codegen/units.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/passes/lower.h"
#include "codegen/sample_specs.h"
#include "codegen/tile/text.h"
#include "source_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

std::string_view multiplier_of(std::string_view target, DType dtype, bool asynchronous = false) {
  const Unit* const unit = multiplier(Target::parse(target), dtype, asynchronous);
  return unit == nullptr ? "none" : unit->name;
}

TEST(Units, TheFastestOfTheTargetMultiplies) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    EXPECT_EQ(multiplier_of("sm_80", dtype), "mma.sync");
    EXPECT_EQ(multiplier_of("H100", dtype), "mma.sync");
    EXPECT_EQ(multiplier_of("sm_80:cp.async", dtype), "fma");
    EXPECT_EQ(multiplier_of("sm_90a", dtype, true), "wgmma");
    EXPECT_EQ(multiplier_of("sm_90a:mma.sync", dtype, true), "none");
    EXPECT_EQ(multiplier_of("sm_90", dtype, true), "none");
    EXPECT_EQ(multiplier_of("sm_100", dtype, true), "none");
    EXPECT_EQ(multiplier_of("sm_100a", dtype, true), "tcgen05");
    EXPECT_EQ(multiplier_of("sm_103a", dtype, true), "tcgen05");
    EXPECT_EQ(multiplier_of("sm_120a", dtype, true), "none");
  }
  EXPECT_EQ(multiplier_of("sm_80", DType::kF32), "fma");
  for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    EXPECT_EQ(multiplier_of("sm_86", dtype), "none");
    EXPECT_EQ(multiplier_of("sm_89", dtype), "mma.sync");
    EXPECT_EQ(multiplier_of("sm_89:cp.async", dtype), "fma");
    EXPECT_EQ(least_sm_of(dtype), 89);
  }
  EXPECT_EQ(least_sm_of(DType::kF16), 80);
}

TEST(Units, ATargetNamesThemWhereSomeAreOff) {
  const Target some = Target::parse("H100:cp.async,mma.sync");
  EXPECT_EQ(some.str(), "H100:fma,mma.sync,ld/st,cp.async");
  EXPECT_EQ(Target::parse(some.str()), some);
  EXPECT_EQ(some.arch(), "sm_90a");
  EXPECT_NE(some, Target::parse("H100"));
  EXPECT_NE(some, Target::parse("H100:cp.async"));
  // All that it has: as without a list.
  EXPECT_EQ(Target::parse("sm_80:mma.sync,cp.async").str(), "sm_80");
  EXPECT_EQ(Target::parse("sm_80:fma").str(), "sm_80:fma,ld/st");
}

TEST(Units, ATextMayNameThemAlone) {
  const Target otherwise = Target::parse("H200");
  EXPECT_EQ(Target::parse("", otherwise), otherwise);
  EXPECT_EQ(Target::parse(":mma.sync", otherwise).str(), "H200:fma,mma.sync,ld/st");
  EXPECT_EQ(Target::parse("sm_80:fma", otherwise).str(), "sm_80:fma,ld/st");
  EXPECT_THROW(static_cast<void>(Target::parse(":mma.sync")), Error);
}

TEST(Units, UnknownOnesAreRefused) {
  for (const char* name : {"mma", "", "tcgen5", "mma.sync "}) {
    const std::string text =
        error_of([&] { static_cast<void>(Target::parse(std::string("sm_80:mma.sync,") + name)); });
    EXPECT_EQ(text, "units: found '" + std::string(name) +
                        "', expected some of fma, mma.sync, wgmma, tcgen05, ld/st, cp.async, "
                        "cp.async.bulk.tensor, multimem");
  }
}

/// What PTX of a unit looks like in a kernel's text.
const std::map<std::string_view, const char*> kInstructions = {
    {"mma.sync", "mma.sync.aligned"},
    {"wgmma", "wgmma."},
    {"tcgen05", "tcgen05."},
    {"cp.async", "cp.async.c"},
    {"cp.async.bulk.tensor", "cp.async.bulk.tensor"},
    {"multimem", "multimem."}};

TEST(Units, AKernelUsesNoneThatIsOff) {
  for (const auto& [off, instruction] : kInstructions) {
    const std::string arch = off == "tcgen05" ? "sm_100a" : "sm_90a";
    std::string list = arch + ":fma";
    for (const Unit* unit : all_units()) {
      if (unit->name != off) list += fmt::format(",{}", unit->name);
    }
    const Target target = Target::parse(list);
    int used = 0;
    for (const auto& sample : testing::sample_specs(Target::parse(arch))) {
      SCOPED_TRACE(sample.name);
      const KernelSpec spec{sample.spec.body, default_config(*sample.spec.body, target)};
      const bool uses =
          emit(sample.spec, Target::parse(arch)).text.find(instruction) != std::string::npos;
      used += uses ? 1 : 0;
      if (uses && off == "multimem") {
        EXPECT_THAT(error_of([&] { static_cast<void>(emit(spec, target)); }),
                    HasSubstr(" needs multimem; the target is sm_90a:fma,mma.sync,"));
        continue;
      }
      const std::string text = emit(spec, target).text;
      EXPECT_THAT(text, Not(HasSubstr(instruction)));
      // What follows reads the program's text, whose header has the target.
      const tile::Program program = tile_program(spec, target, 1);
      EXPECT_EQ(tile::print_cuda(tile::parse_text(tile::print_text(program))), text);
    }
    EXPECT_GT(used, 0) << off;
  }
}

// A canary tries bulk copies together with what multiplies beside the threads.
TEST(Units, AKernelKnowsWhichItUses) {
  for (const char* text : {"sm_80", "sm_90a", "sm_100a", "sm_120"}) {
    const Target target = Target::parse(text);
    for (const auto& sample : testing::sample_specs(target)) {
      SCOPED_TRACE(std::string(sample.name) + " on " + text);
      const KernelSource source = emit(sample.spec, target);
      for (const Unit* unit : all_units()) {
        const auto instruction = kInstructions.find(unit->name);
        if (instruction == kInstructions.end()) continue;
        // Where all copies go through registers, groups of them are empty.
        const bool uses = unit == &units::kCpAsync
                              ? source.text.find("cp.async.ca.") != std::string::npos ||
                                    source.text.find("cp.async.cg.") != std::string::npos
                              : source.text.find(instruction->second) != std::string::npos;
        EXPECT_EQ((source.units & bit_of(*unit)) != 0, uses) << unit->name;
      }
      EXPECT_EQ((source.units & (bit_of(units::kWgmma) | bit_of(units::kTcgen05))) != 0,
                (source.units & bit_of(units::kBulkTensor)) != 0);
    }
  }
}

TEST(Units, WithoutOneAnOperationIsRefusedWithTheReason) {
  std::ifstream in(testing::source_directory() +
                   "/tests/codegen/probes/warp_specialised_gemm.tile");
  std::ostringstream text;
  text << in.rdbuf();
  const auto lowered = [&](std::string_view target) {
    tile::Program program = tile::parse_text(text.str());
    return error_of([&] { tile::lower(program, Target::parse(target), 2); });
  };
  EXPECT_EQ(lowered("sm_90a"), "no error");
  EXPECT_EQ(lowered("sm_90a:mma.sync,cp.async.bulk.tensor"),
            "async_dot: no unit of sm_90a:fma,mma.sync,ld/st,cp.async.bulk.tensor asynchronously "
            "multiplies bf16: wgmma is off");
  EXPECT_EQ(lowered("sm_90"),
            "async_dot: no unit of sm_90 asynchronously multiplies bf16: wgmma needs sm_90a");
  EXPECT_EQ(lowered("sm_90a:wgmma"),
            "push_tile: no unit of sm_90a:fma,wgmma,ld/st copies tiles of tensors: "
            "cp.async.bulk.tensor is off");
  tile::Program dot = tile::parse_text(
      "kernel k\nwarps 1\ngrid 1\n{\n  %0 = constant 0 : f32[16, 32]\n  %1 = constant 0 : f32[32, "
      "16]\n"
      "  %2 = constant 0 : f32[16, 16]\n  %3 = dot.f8e4m3 %0, %1, %2 : f32[16, 16]\n}\n");
  EXPECT_EQ(error_of([&] { tile::lower(dot, Target::parse("sm_80"), 2); }),
            "dot: no unit of sm_80 multiplies f8e4m3: fma needs sm_89 or later, mma.sync needs "
            "sm_89 or later");
}

}  // namespace
}  // namespace braid
