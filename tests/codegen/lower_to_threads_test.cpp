#include "codegen/passes/lower_to_threads.h"

#include <gtest/gtest.h>

#include "braid/error.h"
#include "codegen/pass_testing.h"
#include "codegen/passes/allocate_shared.h"
#include "codegen/passes/assign_layouts.h"

namespace braid::tile {
namespace {

TEST(LowerToThreads, DecidesWidthsPlacesAndChanges) {
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
                       assign_layouts, allocate_shared, lower_to_threads),
            R"(kernel k
warps 1
grid 1
param 0 input 0 divisor 16
param 1 output 0 divisor 16
layout 0 [16, 16] reg (0,1) (0,2) (0,4) lane (0,8) (1,0) (2,0) (4,0) (8,0) warp
layout 1 [16, 1] reg lane (0,0) (1,0) (2,0) (4,0) (8,0) warp
layout 2 [16, 64] reg (0,1) (0,2) (0,4) (4,0) (8,0) lane (0,8) (0,16) (0,32) (1,0) (2,0) warp
layout 3 [16, 1] reg (4,0) (8,0) lane (0,0) (0,0) (0,0) (1,0) (2,0) warp
layout 4 [1, 1] reg (0,0) (0,0) lane (0,0) (0,0) (0,0) (0,0) (0,0) warp
layout 5 [1, 32] reg (0,8) (0,16) lane (0,1) (0,0) (0,0) (0,2) (0,4) warp
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = range 1 : i32[16, 16] {inline}
  %3 = load.f32 %0, %2 : f32[16, 16] #0 {width 4}
  %4 = reduce.add %3 : f32[16, 1] #1 {lanes 1}
  %5 = range 1 : i32[16, 64] {inline}
  %6 = load.f32 %0, %5 : f32[16, 64] #2 {width 4}
  %9 = convert_layout %4 : f32[16, 1] #3 {change shuffle, address 4 5}
  %7 = mul %6, %9 : f32[16, 64] #2
  store.f32 %1, %5, %7 #2 {width 4}
}
)");
}

TEST(LowerToThreads, DerivesAddressesOfFragmentsAndScratch) {
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
                       assign_layouts, allocate_shared, lower_to_threads),
            R"(kernel k
warps 4
grid 1
param 0 input 0 divisor 16
param 1 input 1 divisor 16
layout 0 [32, 32] reg (0,1) (0,2) (0,4) lane (0,8) (0,16) (1,0) (2,0) (4,0) warp (8,0) (16,0)
layout 1 [32, 32] reg (0,1) (8,0) (0,8) lane (0,2) (0,4) (1,0) (2,0) (4,0) warp (0,16) (16,0)
layout 2 [32, 1] reg (8,0) lane (0,0) (0,0) (1,0) (2,0) (4,0) warp (0,0) (16,0)
layout 3 [32, 32] reg (0,1) (8,0) (0,8) (0,16) lane (0,2) (0,4) (1,0) (2,0) (4,0) warp (0,0) (16,0)
layout 4 [1, 1024] reg (0,1) (0,2) (0,4) lane (0,8) (0,16) (0,32) (0,72) (0,144) warp (0,256) (0,512)
layout 5 [1, 1024] reg (0,1) (0,2) (0,4) lane (0,8) (0,16) (0,36) (0,72) (0,144) warp (0,256) (0,512)
layout 6 [1, 1024] reg (0,1) (0,256) (0,8) (0,16) lane (0,2) (0,4) (0,36) (0,72) (0,144) warp (0,0) (0,512)
layout 7 [1, 2048] reg (0,1024) lane (0,64) (0,144) (0,288) (0,512) (0,16) warp (0,32) (0,0)
layout 8 [1, 64] reg (0,16) lane (0,0) (0,0) (0,2) (0,4) (0,8) warp (0,1) (0,32)
layout 9 [1, 64] reg (0,16) lane (0,0) (0,0) (0,2) (0,4) (0,8) warp (0,0) (0,32)
shared 6400
{
  %0 = param 0 : ptr
  %1 = param 1 : ptr
  %2 = constant 0 : i64
  %3 = constant 64 : i64
  %4 = constant 16 : i64
  %5 = range 1 : i32[32, 32] {inline}
  %6 = load.bf16 %0, %5 : f32[32, 32] #0 {width 8}
  %7 = alloc_shared.bf16 : shared[32, 32] {stages 1, row_step 1, at 0}
  store_shared.bf16 %7, %2, %6 #0 {width 8, address 4}
  wait_group 0
  %8 = constant 0 : f32[32, 32] {inline}
  %15 = convert_layout %6 : f32[32, 32] #3 {at 2048, width 2, width_in 4, change shared, address 5 6}
  %9 = dot.bf16 %15, %7, %8, %2, %2 : f32[32, 32] #1 {trans_load_b, address -1 7}
  %10 = reduce.max %9 : f32[32, 1] #2 {at 6144, lanes 3, warps 1, address 8 9}
  %11 = range 0 : i32[32, 1] {inline}
  store.f32 %1, %11, %10 #2 {lanes 3, warps 1}
}
)");
}

std::string with_packets(std::string_view body) {
  return "kernel k\nwarps 1\ngrid 1\nparam 0 input 0\nparam 1 input 1\n" +
         std::string(kPacketParams) + "{\n" + std::string(kPacketScratch) + std::string(body) +
         "}\n";
}

// Neighbouring threads have neighbouring packets, and what goes out after packets came in waits for
// a vote: the first store in the loop may come after its load, the second comes after the vote.
// What is sent has registers, and is sent once.
TEST(LowerToThreads, VotesBetweenPacketsThatComeAndWhatGoesOut) {
  const std::string lowered = text_after(with_packets(R"(  %0 = constant 0 : i64
  %1 = constant 1 : i64
  %2 = range 1 : i32[1, 64]
  %3 = constant 0 : f32[1, 64]
  ll_store.f32 %82, %2, %3
  signal %0, _, _
  %4 = for %5 = %0 to %1 step %1 {
    ll_store.f32 %82, %2, %3
    ll_store.f32 %82, %2, %3
    %6 = ll_load.f32 %82, %2, %80 : f32[1, 64]
  }
  signal %0, _, _
  signal %1, _, _
  %7 = range 1 : i32[1, 16]
  %8 = constant 0 : f32[1, 16]
  ll_store.f32 %82, %7, %8
)"),
                                         assign_layouts, allocate_shared, lower_to_threads);
  EXPECT_NE(lowered.find("layout 0 [1, 64] reg (0,32) lane (0,1) (0,2) (0,4) (0,8) (0,16) warp\n"),
            std::string::npos);
  EXPECT_EQ(lowered.substr(lowered.find("  %3 = ")), R"(  %3 = constant 0 : f32[1, 64] #0
  ll_store.f32 %82, %2, %3 #0
  signal %0, _, _
  %4 = for %5 = %0 to %1 step %1 {
    ll_store.f32 %82, %2, %3 #0 {barrier}
    ll_store.f32 %82, %2, %3 #0
    %6 = ll_load.f32 %82, %2, %80 : f32[1, 64] #0
  }
  signal %0, _, _ {barrier}
  signal %1, _, _
  %7 = range 1 : i32[1, 16] {inline}
  %8 = constant 0 : f32[1, 16] #1
  ll_store.f32 %82, %7, %8 #1 {lanes 16}
}
)");
}

// Two neighbours of 16 bits in one; a row of one element has no neighbours.
TEST(LowerToThreads, PacketsHoldWhatFitsIntoThem) {
  const std::string lowered = text_after(with_packets(R"(  %0 = range 1 : i32[1, 128]
  %1 = constant 0 : f32[1, 128]
  ll_store.bf16 %82, %0, %1
  %2 = range 0 : i32[64, 1]
  %3 = ll_load.bf16 %82, %2, %80 : f32[64, 1]
)"),
                                         assign_layouts, allocate_shared, lower_to_threads);
  EXPECT_NE(lowered.find("[1, 128] reg (0,1) (0,64) lane (0,2) (0,4) (0,8) (0,16) (0,32) warp\n"),
            std::string::npos)
      << lowered;
  EXPECT_NE(lowered.find("ll_store.bf16 %82, %0, %1 #0 {width 2}"), std::string::npos) << lowered;
  EXPECT_NE(lowered.find("%3 = ll_load.bf16 %82, %2, %80 : f32[64, 1] #1\n"), std::string::npos)
      << lowered;
}

TEST(LowerToThreads, RefusesAPacketThatIsNoOneAccess) {
  const auto error = [](const std::string& body) -> std::string {
    try {
      text_after(with_packets(body), assign_layouts, allocate_shared, lower_to_threads);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(R"(  %0 = constant 4 : i64
  %1 = ptr_add %82, %0 : ptr
  %2 = range 1 : i32[1, 64]
  %3 = ll_load.f32 %1, %2, %80 : f32[1, 64]
)"),
            "%3 (ll_load): found a pointer aligned to 4 bytes, expected 8");
  // Its second element is in the next packet.
  EXPECT_EQ(error(R"(  %0 = constant 3 : i32
  %1 = range 1 : i32[1, 64]
  %2 = add %1, %0 : i32[1, 64]
  %3 = constant 0 : f32[1, 64]
  ll_store.f16 %82, %2, %3
)"),
            "%4 (ll_store): found offsets in runs of 1, expected 2 of each packet");
}

}  // namespace
}  // namespace braid::tile
