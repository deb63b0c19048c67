#include "codegen/passes/remove_dead.h"

#include <gtest/gtest.h>

#include "codegen/pass_testing.h"

namespace braid::tile {
namespace {

TEST(RemoveDead, KeepsWhatHasAnEffectAndWhatThatUses) {
  EXPECT_EQ(text_after(R"(kernel k
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
  %5 = add %3, %4 : i64
  %6 = range 1 : i32[1, 64]
  %7 = load.f32 %0, %6 : f32[1, 64]
  %8 = for %9 = %2 to %3 step %4 carry %10 = %7 : f32[1, 64] {
    %11 = exp %10 : f32[1, 64]
    yield %11
  }
  %12 = result 0, %8 : f32[1, 64]
  %13 = for %14 = %2 to %3 step %4 {
    %15 = add %14, %6 : i64[1, 64]
    %16 = mul %14, %3 : i64
    %17 = load.f32 %0, %15 : f32[1, 64]
    store.f32 %1, %15, %17
  }
}
)",
                       remove_dead),
            R"(kernel k
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
  %6 = range 1 : i32[1, 64]
  %13 = for %14 = %2 to %3 step %4 {
    %15 = add %14, %6 : i64[1, 64]
    %17 = load.f32 %0, %15 : f32[1, 64]
    store.f32 %1, %15, %17
  }
}
)");
}

TEST(RemoveDead, KeepsAWaitForPackets) {
  const std::string head = "kernel k\nwarps 1\ngrid 1\nparam 0 input 0\nparam 1 input 1\n" +
                           std::string(kPacketParams) + "{\n" + std::string(kPacketScratch) +
                           "  %1 = range 1 : i32[1, 64]\n"
                           "  %2 = ll_load.f32 %82, %1, %80 : f32[1, 64]\n";
  EXPECT_EQ(text_after(head + "  %3 = exp %2 : f32[1, 64]\n  %4 = epoch : i64\n}\n", remove_dead),
            head + "}\n");
}

}  // namespace
}  // namespace braid::tile
