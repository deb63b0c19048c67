#include "codegen/passes/allocate_shared.h"

#include <gtest/gtest.h>

#include "codegen/pass_testing.h"
#include "codegen/passes/assign_layouts.h"

namespace braid::tile {
namespace {

TEST(AllocateShared, GivesTilesAndScratchTheirPlaces) {
  const std::string text = text_after(R"(kernel k
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
                                      assign_layouts, allocate_shared);
  EXPECT_NE(text.find("shared 6400\n"), std::string::npos) << text;
  EXPECT_NE(text.find("alloc_shared.bf16 : shared[32, 32] {stages 1, row_step 1, at 0}"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace braid::tile
