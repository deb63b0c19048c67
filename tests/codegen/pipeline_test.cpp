#include "codegen/passes/pipeline.h"

#include <gtest/gtest.h>

#include "codegen/pass_testing.h"
#include "codegen/passes/remove_dead.h"

namespace braid::tile {
namespace {

void two_stages(Program& program) { pipeline(program, 2); }

// The inner loop: one operand from outside, a load that two dots share, one in registers, an
// ordinary instruction between the dots.
constexpr std::string_view kNested = R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 input 1 divisor 16
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = constant 0 : i64
  %3 = constant 64 : i64
  %4 = constant 16 : i64
  %5 = for %6 = %2 to %3 step %4 {
    %7 = range 1 : i32[16, 16]
    %8 = load.bf16 %0, %7 : f32[16, 16]
    %9 = constant 0 : f32[16, 16]
    %10 = for %11 = %2 to %3 step %4 carry %12 = %9 : f32[16, 16] {
      %13 = range 1 : i32[16, 16]
      %14 = add %11, %13 : i64[16, 16]
      %15 = load.bf16 %1, %14 : f32[16, 16]
      %16 = constant 0 : f32[16, 16]
      %17 = dot.bf16 %8, %15, %16 : f32[16, 16]
      %18 = exp %17 : f32[16, 16]
      %19 = dot.bf16 %18, %15, %12 : f32[16, 16]
      yield %19
    }
    %20 = result 0, %10 : f32[16, 16]
    store.bf16 %0, %7, %20
  }
}
)";

TEST(Pipeline, FillsRingsAheadInAnInnerLoop) {
  EXPECT_EQ(text_after(kNested, two_stages, remove_dead), R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 input 1 divisor 16
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = constant 0 : i64
  %3 = constant 64 : i64
  %4 = constant 16 : i64
  %5 = for %6 = %2 to %3 step %4 {
    %7 = range 1 : i32[16, 16]
    %9 = constant 0 : f32[16, 16]
    %22 = alloc_shared.bf16 : shared[16, 16] {stages 1, row_step 1}
    %23 = alloc_shared.bf16 : shared[16, 16] {stages 2, row_step 1}
    wait_group 0
    %25 = constant 0 : i64
    %26 = constant 1 : pred
    copy_to_shared.bf16 %22, %25, %0, %7, _, %26
    %29 = range 1 : i32[16, 16]
    %30 = add %2, %29 : i64[16, 16]
    %31 = lt %25, %3 : pred
    copy_to_shared.bf16 %23, %25, %1, %30, _, %31
    commit_group
    %35 = constant 0 : i32
    %37 = constant 1 : i32
    %10 = for %11 = %2 to %3 step %4 carry %12 = %9 : f32[16, 16], %36 = %35 : i32, %38 = %37 : i32 {
      wait_group 0
      %41 = constant 16 : i64
      %42 = add %11, %41 : i64
      %43 = lt %42, %3 : pred
      %44 = constant 2 : i64
      %45 = mul %42, %44 : i64
      %46 = ptr_add %1, %45 : ptr
      copy_to_shared.bf16 %23, %38, %46, %30, _, %43
      commit_group
      %16 = constant 0 : f32[16, 16]
      %49 = constant 0 : i64
      %17 = dot.bf16 %22, %23, %16, %49, %36 : f32[16, 16]
      %18 = exp %17 : f32[16, 16]
      %50 = constant 0 : i64
      %19 = dot.bf16 %18, %23, %12, %50, %36 : f32[16, 16]
      %51 = constant 1 : i64
      %52 = add %36, %51 : i32
      %53 = constant 2 : i64
      %54 = lt %52, %53 : pred
      %55 = constant 0 : i64
      %56 = select %54, %52, %55 : i32
      %57 = add %38, %51 : i32
      %58 = lt %57, %53 : pred
      %59 = select %58, %57, %55 : i32
      yield %19, %56, %59
    }
    %20 = result 0, %10 : f32[16, 16]
    store.bf16 %0, %7, %20
  }
}
)");
}

TEST(Pipeline, FillsATileFromFurtherOutOnce) {
  std::string text(kNested);
  const std::size_t from = text.find("    %7 = range"), end = text.find("    %9 = constant");
  const std::string operand = text.substr(from, end - from);
  text.erase(from, end - from);
  text.insert(text.find("  %5 = for"), operand);
  const std::string result = text_after(text, two_stages, remove_dead);
  const std::size_t outer = result.find(" = for ");
  EXPECT_LT(result.find("{stages 1,"), outer);
  EXPECT_LT(result.find("copy_to_shared.bf16"), outer);
  EXPECT_GT(result.find("{stages 2,"), outer);
  EXPECT_GT(result.find("wait_group"), outer);
}

TEST(Pipeline, CastsASlotOfAnotherDtypeOnce) {
  const std::pair<std::string, std::string> loads[] = {
      {"f8e4m3", "%15 = load.f8e4m3 %1, %14 : f32[16, 16]"},
      {"i8", "%21 = load.i8 %1, %14 : i64[16, 16]\n      %15 = to_f32 %21 : f32[16, 16]"}};
  for (const auto& [dtype, of_dtype] : loads) {
    SCOPED_TRACE(dtype);
    std::string text(kNested);
    const std::string load = "%15 = load.bf16 %1, %14 : f32[16, 16]";
    text.replace(text.find(load), load.size(), of_dtype);
    const std::string offset = "%14 = add %11, %13";
    text.replace(text.find(offset), offset.size(),
                 "%22 = range 0 : i32[16, 16]\n      %23 = add %11, %22 : i64[16, 16]\n"
                 "      %14 = add %23, %13");
    const std::string result = text_after(text, two_stages, remove_dead);
    const std::size_t cast = result.find("cast_shared.bf16");
    EXPECT_NE(result.find("alloc_shared." + dtype + " : shared[16, 16] {stages 2, row_step 1}"),
              std::string::npos);
    EXPECT_NE(result.find("copy_to_shared." + dtype), std::string::npos);
    // Before the first of the two products that take it, and a barrier between.
    EXPECT_EQ(result.find("cast_shared", cast + 1), std::string::npos);
    EXPECT_LT(cast, result.find("wait_group 1", cast));
    EXPECT_LT(result.find("wait_group 1", cast), result.find("dot.bf16"));
  }
}

TEST(Pipeline, LeavesALoopThatWaits) {
  std::string text(kNested);
  text.insert(text.find("      %13 = range"), "      wait %2, _, _\n");
  EXPECT_EQ(text_after(text, two_stages, remove_dead), text);
}

TEST(Pipeline, LeavesALoopThatWaitsForPackets) {
  std::string text(kNested);
  const std::string head = "param 1 input 1 divisor 16\n";
  text.insert(text.find(head) + head.size(), kPacketParams);
  text.insert(text.find("  %5 = for"), kPacketScratch);
  text.insert(text.find("      %13 = range"),
              "      %83 = range 1 : i32[16, 16]\n"
              "      %84 = ll_load.f32 %82, %83, %80 : f32[16, 16]\n");
  EXPECT_EQ(text_after(text, two_stages, remove_dead), text);
}

TEST(Pipeline, LeavesALoopWithoutDots) {
  std::string text(kNested);
  for (const std::string_view dot : {"dot.bf16 %8, %15, %16", "dot.bf16 %18, %15, %12"}) {
    text.replace(text.find(dot), dot.size(),
                 dot.find("%8") != dot.npos ? "add %8, %15" : "add %18, %12");
  }
  EXPECT_EQ(text_after(text, two_stages), text);
}

}  // namespace
}  // namespace braid::tile
