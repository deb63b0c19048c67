#include "codegen/passes/lower_tensors.h"

#include <gtest/gtest.h>

#include "codegen/pass_testing.h"

namespace braid::tile {
namespace {

// An origin that a loop moves; a mask along the rows alone, where constants hold the columns, and
// along both; a stride of any size.
TEST(LowerTensors, MakesIndexTilesAndMasks) {
  EXPECT_EQ(text_after(R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
param 2 scalar N divisor 8
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = param 2 : i64
  %3 = constant 100 : i64
  %4 = constant 64 : i64
  %5 = constant 16 : i64
  %6 = constant 0 : i64
  %7 = for %8 = %6 to %3 step %5 {
    %9 = load_tile.bf16 %0, %3, %4, %4, %8, %6 : f32[16, 64]
    store_tile.f32 %1, %3, %2, %2, %8, %5, %9
  }
}
)",
                       lower_tensors),
            R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
param 2 scalar N divisor 8
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = param 2 : i64
  %3 = constant 100 : i64
  %4 = constant 64 : i64
  %5 = constant 16 : i64
  %6 = constant 0 : i64
  %7 = for %8 = %6 to %3 step %5 {
    %11 = mul %8, %4 : i64
    %12 = range 0 : i32[16, 64]
    %13 = range 1 : i32[16, 64]
    %14 = mul %12, %4 : i32[16, 64]
    %15 = add %14, %13 : i32[16, 64]
    %16 = sub %3, %8 : i64
    %17 = lt %12, %16 : pred[16, 64]
    %18 = constant 2 : i64
    %19 = mul %11, %18 : i64
    %20 = ptr_add %0, %19 : ptr
    %9 = load.bf16 %20, %15, %17 : f32[16, 64]
    %21 = mul %8, %2 : i64
    %22 = add %21, %5 : i64
    %23 = to_i64 %12 : i64[16, 64]
    %24 = mul %23, %2 : i64[16, 64]
    %25 = add %24, %13 : i64[16, 64]
    %26 = sub %2, %5 : i64
    %27 = lt %13, %26 : pred[16, 64]
    %28 = and %17, %27 : pred[16, 64]
    %29 = constant 4 : i64
    %30 = mul %22, %29 : i64
    %31 = ptr_add %1, %30 : ptr
    store.f32 %31, %25, %9, %28
  }
}
)");
}

// Constants that just hold the tile, with a stride that takes its offsets beyond i32; constants
// that just do not.
TEST(LowerTensors, AConstantTileInsideNeedsNoMask) {
  EXPECT_EQ(text_after(R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
{
  %0 = param 0 : ptr
  %1 = constant 1073741823 : i64
  %2 = constant 16 : i64
  %3 = constant 32 : i32
  %4 = constant 31 : i32
  %5 = load_tile.i32 %0, %3, %1, %1, %2, %2 : i64[16, 16]
  %6 = load_tile.i32 %0, %4, %1, %3, %2, %2 : i64[16, 16]
}
)",
                       lower_tensors),
            R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
{
  %0 = param 0 : ptr
  %1 = constant 1073741823 : i64
  %2 = constant 16 : i64
  %3 = constant 32 : i32
  %4 = constant 31 : i32
  %7 = constant 17179869168 : i64
  %8 = constant 17179869184 : i64
  %9 = range 0 : i32[16, 16]
  %10 = range 1 : i32[16, 16]
  %11 = to_i64 %9 : i64[16, 16]
  %12 = mul %11, %1 : i64[16, 16]
  %13 = add %12, %10 : i64[16, 16]
  %14 = constant 32 : i64
  %15 = constant 4 : i64
  %16 = constant 68719476736 : i64
  %17 = ptr_add %0, %16 : ptr
  %5 = load.i32 %17, %13 : i64[16, 16]
  %18 = constant 512 : i64
  %19 = constant 528 : i64
  %20 = mul %9, %14 : i32[16, 16]
  %21 = add %20, %10 : i32[16, 16]
  %22 = constant 31 : i64
  %23 = constant 15 : i64
  %24 = lt %9, %23 : pred[16, 16]
  %25 = constant 2112 : i64
  %26 = ptr_add %0, %25 : ptr
  %6 = load.i32 %26, %21, %24 : i64[16, 16]
}
)");
}

}  // namespace
}  // namespace braid::tile
