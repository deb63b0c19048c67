#include "codegen/passes/spread_copies.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "codegen/pass_testing.h"
#include "codegen/passes/allocate_shared.h"
#include "codegen/passes/assign_layouts.h"
#include "codegen/passes/lower_to_threads.h"
#include "codegen/passes/pipeline.h"

namespace braid::tile {
namespace {

/// A matmul's loop: 64 columns of K, four steps of the matrix instruction. `inside` is in its body,
/// in front of the product.
std::string lowered(std::string_view inside, std::string_view dtype) {
  const std::string type(dtype);
  return text_after(
      "kernel k\nwarps 4\ngrid 1\n"
      "param 0 input 0 divisor 16\nparam 1 input 1 divisor 16\n"
      "param 2 output 0 divisor 16\n"
      "{\n"
      "  %0 = param 0 : ptr\n"
      "  %1 = param 1 : ptr\n"
      "  %2 = param 2 : ptr\n"
      "  %3 = constant 0 : i64\n"
      "  %4 = constant 1024 : i64\n"
      "  %5 = constant 64 : i64\n"
      "  %6 = constant 0 : f32[64, 64]\n"
      "  %7 = range 0 : i64[64, 64]\n"
      "  %8 = range 1 : i64[64, 64]\n"
      "  %9 = mul %7, %4 : i64[64, 64]\n"
      "  %10 = for %11 = %3 to %4 step %5 carry %12 = %6 : f32[64, 64] {\n"
      "    %13 = add %11, %8 : i64[64, 64]\n"
      "    %14 = add %9, %13 : i64[64, 64]\n"
      "    %15 = load." +
          type + " %0, %14 : f32[64, 64]\n    %16 = load." + type + " %1, %14 : f32[64, 64]\n" +
          std::string(inside) + "    %17 = dot." + type +
          " %15, %16, %12 : f32[64, 64] {trans_b}\n"
          "    yield %17\n"
          "  }\n"
          "  %18 = result 0, %10 : f32[64, 64]\n"
          "  store.f32 %2, %9, %18\n"
          "}\n",
      [](Program& p) { pipeline(p, 3); }, assign_layouts, allocate_shared, lower_to_threads,
      spread_copies);
}

/// The copies, products and commits of the loop's body, in order.
std::vector<std::string> order(const std::string& text) {
  std::vector<std::string> out;
  std::size_t at = text.find(" = for ");
  for (std::size_t end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    for (const char* what : {"copy_to_shared", "dot", "commit_group", "wait_group"}) {
      if (line.find(std::string(" ") + what) != std::string_view::npos) out.emplace_back(what);
    }
  }
  return out;
}

// Each thread copies 8 pieces of 16 bytes: two after each step of K.
TEST(SpreadCopies, PutsCopiesBetweenTheStepsOfAProduct) {
  const std::string text = lowered("", "bf16");
  EXPECT_EQ(order(text), (std::vector<std::string>{"wait_group", "dot", "copy_to_shared", "dot",
                                                   "copy_to_shared", "dot", "copy_to_shared", "dot",
                                                   "copy_to_shared", "commit_group"}))
      << text;
  for (const char* part : {"last 1", "first 1, last 2", "first 2, last 3", "first 3, last 4"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

// FMAs read shared memory all the time.
TEST(SpreadCopies, LeavesProductsWithoutMatrixInstructionsAlone) {
  EXPECT_EQ(order(lowered("", "f32")),
            (std::vector<std::string>{"wait_group", "copy_to_shared", "copy_to_shared",
                                      "commit_group", "dot"}));
}

TEST(SpreadCopies, MovesNothingPastAStore) {
  const std::string store = "    store.f32 %2, %8, %6\n";
  EXPECT_EQ(order(lowered(store, "bf16")),
            (std::vector<std::string>{"wait_group", "copy_to_shared", "copy_to_shared",
                                      "commit_group", "dot"}));
}

}  // namespace
}  // namespace braid::tile
