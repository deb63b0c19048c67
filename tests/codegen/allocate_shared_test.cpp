#include "codegen/passes/allocate_shared.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

/// A tile that is multiplied, and what becomes of the product.
std::string with_product(std::string_view before, std::string_view after) {
  return R"(kernel k
warps 4
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = constant 0 : i64
  %3 = constant 64 : i64
  %4 = constant 1 : i64
  %5 = range 1 : i32[64, 64]
  %6 = constant 0 : f32[64, 64]
)" + std::string(before) +
         R"(  %7 = load.bf16 %0, %5 : f32[64, 64]
  %8 = alloc_shared.bf16 : shared[64, 64] {stages 1, row_step 1}
  store_shared.bf16 %8, %2, %7
  wait_group 1
  %9 = dot.bf16 %8, %8, %6, %2, %2 : f32[64, 64]
  %10 = round.bf16 %9 : f32[64, 64]
  %11 = convert_layout %10 : f32[64, 64]
)" + std::string(after) +
         "}\n";
}

// What has been rounded to 16 bits needs two bytes, which are those of the dead tile. All warps
// have read the tile, and no copy into it is under way.
TEST(AllocateShared, AChangeOfLayoutTakesTheBytesOfADeadTile) {
  const std::string text =
      text_after(with_product("", "  store.bf16 %1, %5, %11\n"), assign_layouts, allocate_shared);
  EXPECT_NE(text.find("shared 8192\n"), std::string::npos) << text;
  const std::size_t change = text.find("  %11 = convert_layout");
  const std::string_view waits = "  wait_group 0\n";
  EXPECT_EQ(text.substr(change - waits.size(), waits.size()), waits) << text;
  EXPECT_NE(text.find("{at 0}", change), std::string::npos) << text;
}

// In a loop the tile is filled again where the layout changed in the turn before.
TEST(AllocateShared, ATileWaitsForTheTurnBefore) {
  const std::string text = text_after(
      with_product("  %20 = for %21 = %2 to %3 step %4 {\n", "  store.bf16 %1, %5, %11\n  }\n"),
      assign_layouts, allocate_shared);
  EXPECT_NE(text.find("shared 8192\n"), std::string::npos) << text;
  const std::size_t fill = text.find("    store_shared.bf16");
  const std::string_view waits = "    wait_group 0\n";
  EXPECT_EQ(text.substr(fill - waits.size(), waits.size()), waits) << text;
}

TEST(AllocateShared, WhatIsUsedAgainKeepsItsBytes) {
  const std::string text =
      text_after(with_product("",
                              "  store.bf16 %1, %5, %11\n"
                              "  %12 = dot.bf16 %8, %8, %6, %2, %2 : f32[64, 64]\n"
                              "  store.bf16 %1, %5, %12\n"),
                 assign_layouts, allocate_shared);
  EXPECT_NE(text.find("shared 16384\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("wait_group 0"), std::string::npos) << text;
}

// The fragments of two operands in registers, one after the other: all warps have read the first.
TEST(AllocateShared, ChangesOfLayoutShareBehindABarrier) {
  const std::string text = text_after(R"(kernel k
warps 4
grid 1
param 0 input 0 divisor 16
{
  %0 = param 0 : ptr
  %5 = range 1 : i32[64, 64]
  %6 = constant 0 : f32[64, 64]
  %7 = load.bf16 %0, %5 : f32[64, 64]
  %9 = dot.bf16 %7, %7, %6 : f32[64, 64]
  store.bf16 %0, %5, %9
}
)",
                                      assign_layouts, allocate_shared);
  EXPECT_NE(text.find("shared 16384\n"), std::string::npos) << text;
  const std::size_t first = text.find("{at 0}\n");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("{at 0, barrier}\n", first), std::string::npos) << text;
}

}  // namespace
}  // namespace braid::tile
