#include "codegen/passes/prefetch.h"

#include <gtest/gtest.h>

#include <regex>
#include <utility>

#include "codegen/pass_testing.h"
#include "codegen/passes/remove_dead.h"
#include "codegen/sample_specs.h"
#include "runtime/compile/compiler.h"

namespace braid::tile {
namespace {

/// Adds what two ranks have and what is here, piece by piece.
constexpr std::string_view kSums = R"(kernel k
warps 1
world 2
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
param 2 peers 0 group "tp"
param 3 offset 0 group "tp" divisor 256
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = param 3 : i64
  %3 = constant 0 : i64
  %4 = constant 96 : i64
  %5 = constant 32 : i64
  %6 = constant 1 : i64
  %7 = for %8 = %3 to %4 step %5 {
    %9 = range 1 : i32[1, 32]
    %10 = add %8, %9 : i64[1, 32]
    %11 = peer %2, %3 : ptr
    %12 = load.f32 %11, %10 : f32[1, 32]
    %13 = peer %2, %6 : ptr
    %14 = lt %10, %4 : pred[1, 32]
    %15 = load.f32 %13, %10, %14 : f32[1, 32]
    %16 = add %12, %15 : f32[1, 32]
    %17 = load.f32 %0, %10 : f32[1, 32]
    %18 = add %16, %17 : f32[1, 32]
    %19 = load.f32 %0, %9 : f32[1, 32]
    %20 = add %18, %19 : f32[1, 32]
    store.f32 %1, %10, %20
  }
}
)";

std::string changed(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Prefetch, LoadsForTheNextIterationBeforeThisOnesSum) {
  EXPECT_EQ(text_after(kSums, prefetch, remove_dead), R"(kernel k
warps 1
world 2
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
param 2 peers 0 group "tp"
param 3 offset 0 group "tp" divisor 256
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = param 3 : i64
  %3 = constant 0 : i64
  %4 = constant 96 : i64
  %5 = constant 32 : i64
  %6 = constant 1 : i64
  %22 = lt %3, %4 : pred
  %23 = peer %2, %3 : ptr
  %24 = range 1 : i32[1, 32]
  %25 = add %3, %24 : i64[1, 32]
  %26 = load.f32 %23, %25, %22 : f32[1, 32]
  %27 = peer %2, %6 : ptr
  %28 = lt %25, %4 : pred[1, 32]
  %29 = and %28, %22 : pred[1, 32]
  %30 = load.f32 %27, %25, %29 : f32[1, 32]
  %31 = load.f32 %0, %25, %22 : f32[1, 32]
  %7 = for %8 = %3 to %4 step %5 carry %12 = %26 : f32[1, 32], %15 = %30 : f32[1, 32], %17 = %31 : f32[1, 32] {
    %32 = add %8, %5 : i64
    %33 = lt %32, %4 : pred
    %34 = peer %2, %3 : ptr
    %35 = range 1 : i32[1, 32]
    %36 = add %32, %35 : i64[1, 32]
    %37 = load.f32 %34, %36, %33 : f32[1, 32]
    %38 = peer %2, %6 : ptr
    %39 = lt %36, %4 : pred[1, 32]
    %40 = and %39, %33 : pred[1, 32]
    %41 = load.f32 %38, %36, %40 : f32[1, 32]
    %42 = load.f32 %0, %36, %33 : f32[1, 32]
    %9 = range 1 : i32[1, 32]
    %10 = add %8, %9 : i64[1, 32]
    %16 = add %12, %15 : f32[1, 32]
    %18 = add %16, %17 : f32[1, 32]
    %19 = load.f32 %0, %9 : f32[1, 32]
    %20 = add %18, %19 : f32[1, 32]
    store.f32 %1, %10, %20
    yield %37, %41, %42
  }
}
)");
}

TEST(Prefetch, LeavesALoopThatReadsNoArena) {
  std::string text(kSums);
  text = changed(std::move(text), "load.f32 %11", "load.f32 %0");
  text = changed(std::move(text), "load.f32 %13", "load.f32 %0");
  EXPECT_EQ(text_after(text, prefetch), text);
}

TEST(Prefetch, LeavesWhatFollowsFromTheIterationBefore) {
  std::string text(kSums);
  text = changed(std::move(text), "step %5 {", "step %5 carry %30 = %3 : i64 {");
  text = changed(std::move(text), "add %8, %9", "add %30, %9");
  text = changed(std::move(text), "%10, %20\n", "%10, %20\n    yield %8\n");
  EXPECT_EQ(text_after(text, prefetch), text);
}

TEST(Prefetch, LeavesALoopThatMeets) {
  constexpr std::string_view kParams = R"(param 4 rank 0 group "tp"
param 5 flags 0 group "tp"
param 6 timeout 0 group "tp"
param 7 record 0
param 8 step 0
)";
  std::string text(kSums);
  text = changed(std::move(text), "divisor 256\n", "divisor 256\n" + std::string(kParams));
  text = changed(std::move(text), "    %9 = range", "    wait %3, _, _\n    %9 = range");
  EXPECT_EQ(text_after(text, prefetch), text);
}

TEST(Prefetch, LeavesBlocksWhoseThreadsHaveFewRegisters) {
  const std::string text = changed(std::string(kSums), "warps 1\n", "warps 32\n");
  EXPECT_EQ(text_after(text, prefetch), text);
}

// A quarter of the 256 registers of a thread, and an eighth for what is local.
TEST(Prefetch, TakesWhatRegistersHold) {
  for (const auto& [columns, ahead] :
       {std::pair{2048, 3}, std::pair{4096, 1}, std::pair{8192, 0}}) {
    std::string text = std::regex_replace(std::string(kSums), std::regex(R"(\[1, 32\])"),
                                          "[1, " + std::to_string(columns) + "]");
    text = changed(std::move(text), "warps 1\n", "warps 2\n");
    const std::string after = text_after(text, prefetch);
    const std::regex load(R"(load\.f32)");
    EXPECT_EQ(std::distance(std::sregex_iterator(after.begin(), after.end(), load), {}), 4 + ahead)
        << columns;
  }
}

/// Where the first of these stands in the text.
std::size_t first(const std::string& text, const char* pattern) {
  std::smatch m;
  return std::regex_search(text, m, std::regex(pattern)) ? static_cast<std::size_t>(m.position())
                                                         : text.size();
}

// Of a row: what all ranks have of the first and of the next one, and both rows of the residual.
TEST(Prefetch, ThePtxOfAnAllReduceLoadsTheNextPieceBeforeItAdds) {
  const Target target = Target::parse("sm_90a");
  int seen = 0;
  for (const auto& sample : braid::testing::sample_specs(target)) {
    for (const int ranks : {2, 4, 8}) {
      if (sample.name != "all_reduce_add_rms_norm_" + std::to_string(ranks)) continue;
      const std::string ptx = compile_kernel(emit(sample.spec, target), target, nullptr).image.ptx;
      const std::string before = ptx.substr(0, first(ptx, R"(add(\.rn)?\.f32)"));
      const std::regex load(R"(ld\.global\.v4)");
      EXPECT_EQ(std::distance(std::sregex_iterator(before.begin(), before.end(), load), {}),
                2 * (ranks + 1))
          << sample.name;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace braid::tile
