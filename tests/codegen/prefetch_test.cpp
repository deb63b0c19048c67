#include "codegen/passes/prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// kSums with other tiles.
std::string in_tiles_of(int columns) {
  return std::regex_replace(std::string(kSums), std::regex(R"(\[1, 32\])"),
                            "[1, " + std::to_string(columns) + "]");
}

std::ptrdiff_t count(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), regex), {});
}

TEST(Prefetch, LoadsForTheNextIterationBeforeThisOnesSum) {
  EXPECT_EQ(text_after(in_tiles_of(1024), prefetch, remove_dead), R"(kernel k
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
  %24 = range 1 : i32[1, 1024]
  %25 = add %3, %24 : i64[1, 1024]
  %26 = load.f32 %23, %25, %22 : f32[1, 1024]
  %27 = peer %2, %6 : ptr
  %28 = lt %25, %4 : pred[1, 1024]
  %29 = and %28, %22 : pred[1, 1024]
  %30 = load.f32 %27, %25, %29 : f32[1, 1024]
  %31 = load.f32 %0, %25, %22 : f32[1, 1024]
  %7 = for %8 = %3 to %4 step %5 carry %12 = %26 : f32[1, 1024], %15 = %30 : f32[1, 1024], %17 = %31 : f32[1, 1024] {
    %32 = add %8, %5 : i64
    %33 = lt %32, %4 : pred
    %34 = peer %2, %3 : ptr
    %35 = range 1 : i32[1, 1024]
    %36 = add %32, %35 : i64[1, 1024]
    %37 = load.f32 %34, %36, %33 : f32[1, 1024]
    %38 = peer %2, %6 : ptr
    %39 = lt %36, %4 : pred[1, 1024]
    %40 = and %39, %33 : pred[1, 1024]
    %41 = load.f32 %38, %36, %40 : f32[1, 1024]
    %42 = load.f32 %0, %36, %33 : f32[1, 1024]
    %9 = range 1 : i32[1, 1024]
    %10 = add %8, %9 : i64[1, 1024]
    %16 = add %12, %15 : f32[1, 1024]
    %18 = add %16, %17 : f32[1, 1024]
    %19 = load.f32 %0, %9 : f32[1, 1024]
    %20 = add %18, %19 : f32[1, 1024]
    store.f32 %1, %10, %20
    yield %37, %41, %42
  }
}
)");
}

// Small pieces: four iterations ahead, and what all of them read before the loop.
TEST(Prefetch, LoadsSeveralIterationsAhead) {
  const std::string after = text_after(kSums, prefetch, remove_dead);
  const std::string before = after.substr(0, after.find(" = for "));
  EXPECT_EQ(count(before, R"(load\.f32)"), 4 * 3 + 1);
  EXPECT_EQ(count(after, R"(load\.f32)"), 5 * 3 + 1);
  EXPECT_NE(before.find("load.f32 %0, %22 : f32[1, 32]"), std::string::npos) << before;
  EXPECT_EQ(count(after, R"(constant 128 : i64)"), 1) << after;
}

// One turn more than iterations are ahead, so that each turn has registers of its own: a register
// that is moved to the next turn's is waited for while its load is under way.
TEST(Prefetch, TurnsStandInARow) {
  Program program = parse_text(kSums);
  prefetch(program);
  const auto loop = std::find_if(program.insts.begin(), program.insts.end(),
                                 [](const Inst& inst) { return inst.op == Op::kFor; });
  EXPECT_EQ(loop->unroll, 5);
}

// A row of this GPU alone, too, if it is reduced.
TEST(Prefetch, LoadsRowsAheadThatAreReduced) {
  std::string text(kSums);
  text = changed(std::move(text), "load.f32 %11", "load.f32 %0");
  text = changed(std::move(text), "load.f32 %13", "load.f32 %0");
  text = changed(std::move(text), "    store.f32 %1, %10, %20\n",
                 "    %21 = reduce.max %20 : f32[1, 1]\n    store.f32 %1, %10, %20\n");
  EXPECT_EQ(count(text_after(text, prefetch, remove_dead), R"(load\.f32)"), 3 * 3 + 1);
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
    const std::string text = changed(in_tiles_of(columns), "warps 1\n", "warps 2\n");
    EXPECT_EQ(count(text_after(text, prefetch), R"(load\.f32)"), 4 + ahead) << columns;
  }
}

/// The position of the first of these in the text.
std::size_t first(const std::string& text, const char* pattern) {
  std::smatch m;
  return std::regex_search(text, m, std::regex(pattern)) ? static_cast<std::size_t>(m.position())
                                                         : text.size();
}

// For rows: loads of all ranks' data for as many rows as registers hold, of the residual, and of
// the weight for all rows.
TEST(Prefetch, ThePtxOfAnAllReduceLoadsTheNextPiecesBeforeItAdds) {
  const Target target = Target::parse("sm_90a");
  int seen = 0;
  for (const auto& sample : braid::testing::sample_specs(target)) {
    for (const auto& [ranks, ahead] : {std::pair{2, 4}, {4, 4}, {8, 2}}) {
      if (sample.name != "all_reduce_add_rms_norm_" + std::to_string(ranks)) continue;
      const std::string ptx = compile_kernel(emit(sample.spec, target), target, nullptr).image.ptx;
      const std::string before = ptx.substr(0, first(ptx, R"(add(\.rn)?\.f32)"));
      EXPECT_EQ(count(before, R"(ld\.global\.v4)"), (ahead + 1) * (ranks + 1) + 1) << sample.name;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace braid::tile
