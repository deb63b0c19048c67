#include "lowering/plan/in_place.h"

#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"
#include "lowering/plan/lay_out.h"
#include "lowering/plan_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSquare = input("w", "64, 64", R"(, "kind": "parameter")");

/// A program of matmuls with what stands between them, on one rank.
Program lowered(const std::string& nodes, const std::string& inputs = "") {
  PassContext context;
  const std::string x = input("x", R"("T", 64)");
  return lower(graph_of(x + "," + kSquare + inputs, nodes, R"("y")", 1), context);
}

std::string mm(const std::string& name, const std::string& x) {
  return node(name, "mm", '"' + x + R"(", "w")");
}

/// a = x w, s = softmax(a): a row is held in registers. Then two more matmuls.
Program with_softmax() {
  return lowered(mm("a", "x") + "," + node("s", "softmax", R"("a")", R"("dim": -1)") + "," +
                 mm("b", "s") + "," + mm("y", "b"));
}

bool lies_in_place(const Program& program, const std::string& output, const std::string& input) {
  const auto index = [&](const std::string& name) {
    return &buffer(program, name) - program.buffers.data();
  };
  return places_taken(program)[static_cast<std::size_t>(index(output))] == index(input);
}

TEST(InPlace, ARowTakesThePlaceOfTheOneThatItIsMadeOf) {
  const Program program = with_softmax();
  EXPECT_TRUE(lies_in_place(program, "s", "a"));
  EXPECT_EQ(buffer(program, "s").offset, buffer(program, "a").offset);
  EXPECT_EQ(problem(program), "");
  const Step& step = program.steps[1];
  const ProgramKernel& kernel = program.kernels[static_cast<std::size_t>(step.kernel)];
  EXPECT_TRUE(allows_in_place(kernel.spec, kernel.needs));
  EXPECT_THAT(emit(kernel.spec, program.target).text, Not(HasSubstr("__restrict__")));
  const int workspace = buffer(program, "a").arena;
  const ArenaUse use = arena_use(program, workspace);
  EXPECT_EQ(use.peak, use.bound);
  EXPECT_EQ(use.peak, program.arenas[static_cast<std::size_t>(workspace)].bytes);
  expect_is_read_back(program);
}

TEST(InPlace, AMatmulDoesNotOverwriteWhatOtherBlocksRead) {
  const Program program = lowered(mm("a", "x") + "," + mm("b", "a") + "," + mm("y", "b"));
  EXPECT_FALSE(lies_in_place(program, "b", "a"));
  EXPECT_NE(buffer(program, "a").offset, buffer(program, "b").offset);
}

TEST(InPlace, WhatIsReadLaterKeepsItsPlace) {
  const Program program = lowered(
      mm("a", "x") + "," + node("s", "softmax", R"("a")", R"("dim": -1)") + "," + mm("b", "s") +
      "," + mm("c", "a") + "," + node("d", "add", R"("b", "c")") + "," + mm("y", "d"));
  EXPECT_FALSE(lies_in_place(program, "s", "a"));
}

TEST(InPlace, AResidualOfAMatmulIsOverwrittenByTheSum) {
  // r = p + a: the epilogue of p's kernel, which reads of a the elements that it writes of r.
  const Program program = lowered(mm("a", "x") + "," + mm("h", "a") + "," + mm("p", "h") + "," +
                                  node("r", "add", R"("p", "a")") + "," + mm("y", "r"));
  EXPECT_TRUE(lies_in_place(program, "r", "a"));
  EXPECT_EQ(problem(program), "");
}

TEST(InPlace, VerifyWantsThePromiseAndTheVeryPlace) {
  Program program = with_softmax();
  ASSERT_EQ(problem(program), "");
  const int kernel = program.steps[1].kernel;

  Program without = program;  // its text has __restrict__
  without.kernels[static_cast<std::size_t>(kernel)].spec.config.erase(kInPlaceSetting);
  EXPECT_THAT(problem(without), HasSubstr("writes 's' while step 1 's' may still read there"));

  Program unable = program;
  unable.kernels[static_cast<std::size_t>(kernel)].needs.in_place.clear();
  EXPECT_THAT(problem(unable), HasSubstr("may still read there"));

  Program shifted = program;
  buffer(shifted, "s").offset += 256;
  shifted.arenas[static_cast<std::size_t>(buffer(shifted, "s").arena)].bytes += 256;
  EXPECT_THAT(problem(shifted), HasSubstr("may still read there"));

  // A matmul that wrote where it reads.
  Program matmul = program;
  buffer(matmul, "b").offset = buffer(matmul, "s").offset;
  EXPECT_THAT(problem(matmul), HasSubstr("may still read there"));
}

TEST(InPlace, AKernelThatRunsBothWaysIsTwo) {
  // The first softmax's operand is read again.
  const Program program = lowered(
      mm("a", "x") + "," + node("s", "softmax", R"("a")", R"("dim": -1)") + "," + mm("b", "s") +
      "," + node("t", "softmax", R"("b")", R"("dim": -1)") + "," + mm("c", "t") + "," +
      mm("d", "a") + "," + node("e", "add", R"("c", "d")") + "," + mm("y", "e"));
  EXPECT_FALSE(lies_in_place(program, "s", "a"));
  EXPECT_TRUE(lies_in_place(program, "t", "b"));
  EXPECT_NE(program.steps[1].kernel, program.steps[3].kernel);
  EXPECT_EQ(problem(program), "");
}

// The residual stream of a decoder: the step that sums over ranks writes it where it was.
TEST(InPlace, ACollectiveKeepsTheResidualInItsPlace) {
  const std::string nodes = mm("a", "x") + "," + mm("p", "a") + "," + all_reduce("c", "p") + "," +
                            node("s", "wait_tensor", R"("c")") + "," +
                            node("r", "add", R"("s", "a")") + "," + mm("h", "r") + "," +
                            node("z", "add", R"("h", "r")") + "," + mm("y", "z");
  for (const char* algorithm : {"one_shot", "two_shot", "ll"}) {
    SCOPED_TRACE(algorithm);
    PassContext context;
    context.config.all_reduce = algorithm;
    const Program program =
        lower(graph_of(input("x", R"("T", 64)") + "," + kSquare, nodes, R"("y")", 2), context);
    EXPECT_TRUE(lies_in_place(program, "r", "a"));
    EXPECT_FALSE(lies_in_place(program, "z", "r"));  // the matmul in front reads all of r
    EXPECT_EQ(problem(program), "");
    expect_is_read_back(program);
  }
}

}  // namespace
}  // namespace braid::testing
