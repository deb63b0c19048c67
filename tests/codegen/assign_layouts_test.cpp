#include "codegen/passes/assign_layouts.h"

#include <gtest/gtest.h>

#include "codegen/pass_testing.h"

namespace braid::tile {
namespace {

// One column under tiles of two layouts.
TEST(AssignLayouts, ConvertsAColumnThatMeetsTwoLayouts) {
  EXPECT_EQ(text_after(R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = range 1 : i32[16, 16]
  %3 = load.f32 %0, %2 : f32[16, 16]
  %4 = reduce.add %3 : f32[16, 1]
  %5 = range 1 : i32[16, 64]
  %6 = load.f32 %0, %5 : f32[16, 64]
  %7 = mul %6, %4 : f32[16, 64]
  store.f32 %1, %5, %7
}
)",
                       assign_layouts),
            R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
layout 0 [16, 16] reg (0,1) (0,2) (0,4) lane (0,8) (1,0) (2,0) (4,0) (8,0) warp
layout 1 [16, 1] reg lane (0,0) (1,0) (2,0) (4,0) (8,0) warp
layout 2 [16, 64] reg (0,1) (0,2) (0,4) (4,0) (8,0) lane (0,8) (0,16) (0,32) (1,0) (2,0) warp
layout 3 [16, 1] reg (4,0) (8,0) lane (0,0) (0,0) (0,0) (1,0) (2,0) warp
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = range 1 : i32[16, 16]
  %3 = load.f32 %0, %2 : f32[16, 16] #0
  %4 = reduce.add %3 : f32[16, 1] #1
  %5 = range 1 : i32[16, 64]
  %6 = load.f32 %0, %5 : f32[16, 64] #2
  %9 = convert_layout %4 : f32[16, 1] #3
  %7 = mul %6, %9 : f32[16, 64] #2
  store.f32 %1, %5, %7 #2
}
)");
}

// A column that a loop begins with and stores in one layout, and carries in another: it is
// converted once in front of the loop and once behind it.
TEST(AssignLayouts, CarriesAColumnInTheLayoutOfTheLoop) {
  EXPECT_EQ(text_after(R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = range 0 : i32[16, 1]
  %3 = load.f32 %0, %2 : f32[16, 1]
  %4 = constant 0 : i64
  %5 = constant 8 : i64
  %6 = constant 1 : i64
  %7 = for %8 = %4 to %5 step %6 carry %9 = %3 : f32[16, 1] {
    %10 = range 1 : i32[16, 64]
    %11 = load.f32 %0, %10 : f32[16, 64]
    %12 = reduce.max %11 : f32[16, 1]
    %13 = max %9, %12 : f32[16, 1]
    yield %13
  }
  %14 = result 0, %7 : f32[16, 1]
  store.f32 %1, %2, %14
}
)",
                       assign_layouts),
            R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
layout 0 [16, 1] reg lane (1,0) (2,0) (4,0) (8,0) (0,0) warp
layout 1 [16, 1] reg (4,0) (8,0) lane (0,0) (0,0) (0,0) (1,0) (2,0) warp
layout 2 [16, 64] reg (0,1) (0,2) (0,4) (4,0) (8,0) lane (0,8) (0,16) (0,32) (1,0) (2,0) warp
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = range 0 : i32[16, 1]
  %3 = load.f32 %0, %2 : f32[16, 1] #0
  %4 = constant 0 : i64
  %5 = constant 8 : i64
  %6 = constant 1 : i64
  %16 = convert_layout %3 : f32[16, 1] #1
  %7 = for %8 = %4 to %5 step %6 carry %9 = %16 : f32[16, 1] #1 {
    %10 = range 1 : i32[16, 64]
    %11 = load.f32 %0, %10 : f32[16, 64] #2
    %12 = reduce.max %11 : f32[16, 1] #1
    %13 = max %9, %12 : f32[16, 1] #1
    yield %13
  }
  %14 = result 0, %7 : f32[16, 1] #1
  %17 = convert_layout %14 : f32[16, 1] #0
  store.f32 %1, %2, %17 #0
}
)");
}

// A tile that is stored to shared memory and is an operand in registers, too; a column of indices
// that is computed again in the layout of the reduction's result.
TEST(AssignLayouts, GivesDotsTheirFragments) {
  EXPECT_EQ(text_after(R"(kernel k
warps 4
grid 1
param 0 input 0 divisor 16
param 1 input 1 divisor 16
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = constant 0 : i64
  %3 = constant 64 : i64
  %4 = constant 16 : i64
  %5 = range 1 : i32[32, 32]
  %6 = load.bf16 %0, %5 : f32[32, 32]
  %7 = alloc_shared.bf16 : shared[32, 32] {stages 1, row_step 1}
  store_shared.bf16 %7, %2, %6
  wait_group 0
  %8 = constant 0 : f32[32, 32]
  %9 = dot.bf16 %6, %7, %8, %2, %2 : f32[32, 32]
  %10 = reduce.max %9 : f32[32, 1]
  %11 = range 0 : i32[32, 1]
  store.f32 %1, %11, %10
}
)",
                       assign_layouts),
            R"(kernel k
warps 4
grid 1
param 0 input 0 divisor 16
param 1 input 1 divisor 16
layout 0 [32, 32] reg (0,1) (0,2) (0,4) lane (0,8) (0,16) (1,0) (2,0) (4,0) warp (8,0) (16,0)
layout 1 [32, 32] reg (0,1) (8,0) (0,8) lane (0,2) (0,4) (1,0) (2,0) (4,0) warp (0,16) (16,0)
layout 2 [32, 1] reg (8,0) lane (0,0) (0,0) (1,0) (2,0) (4,0) warp (0,0) (16,0)
layout 3 [32, 32] reg (0,1) (8,0) (0,8) (0,16) lane (0,2) (0,4) (1,0) (2,0) (4,0) warp (0,0) (16,0)
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = constant 0 : i64
  %3 = constant 64 : i64
  %4 = constant 16 : i64
  %5 = range 1 : i32[32, 32]
  %6 = load.bf16 %0, %5 : f32[32, 32] #0
  %7 = alloc_shared.bf16 : shared[32, 32] {stages 1, row_step 1}
  store_shared.bf16 %7, %2, %6 #0
  wait_group 0
  %8 = constant 0 : f32[32, 32]
  %15 = convert_layout %6 : f32[32, 32] #3
  %9 = dot.bf16 %15, %7, %8, %2, %2 : f32[32, 32] #1
  %10 = reduce.max %9 : f32[32, 1] #2
  %11 = range 0 : i32[32, 1]
  store.f32 %1, %11, %10 #2
}
)");
}

}  // namespace
}  // namespace braid::tile
