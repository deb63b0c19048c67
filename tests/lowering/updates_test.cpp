#include "lowering/plan/updates.h"

#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"
#include "lowering/plan_testing.h"

// Which updates a plan makes in place, and what it copies for the others.
namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kCache = input("cache", "16, 8", R"(, "kind": "state")");
const std::string kRows = input("rows", R"("T", 8)", "");
const std::string kSlots = R"({"name": "slots", "dtype": "i32", "shape": ["T"]})";

std::string append(const std::string& name, const std::string& cache, const std::string& rows) {
  return node(name, "index_copy_", '"' + cache + R"(", "slots", ")" + rows + '"');
}

Program lowered(const std::string& nodes, const std::string& outputs,
                const std::string& more_inputs = "") {
  PassContext context;
  const Graph graph =
      graph_of(kCache + "," + kRows + "," + kSlots + more_inputs, nodes, outputs, 1);
  Program program = lower(graph, context);
  EXPECT_EQ(problem(program), "");
  expect_is_read_back(program);
  return program;
}

/// "copy" or the kernel's ops for each step.
std::vector<std::string> steps(const Program& program) {
  std::vector<std::string> all;
  for (const Step& step : program.steps) {
    if (step.kind == Step::Kind::kCopy) {
      all.push_back("copy");
      continue;
    }
    std::string ops;
    for (const Node& node :
         program.kernels[static_cast<std::size_t>(step.kernel)].spec.body->nodes()) {
      ops += (ops.empty() ? "" : "+") + std::string(node.op_name());
    }
    all.push_back(ops);
  }
  return all;
}

TEST(Updates, AStateIsWrittenWhereItIs) {
  const Program program = lowered(append("a", "cache", "rows"), "");
  EXPECT_THAT(steps(program), ElementsAre("index_copy"));
  const Buffer& cache = buffer(program, "cache");
  EXPECT_EQ(program.arenas[static_cast<std::size_t>(cache.arena)].kind, ArenaKind::kState);
  const Step& step = program.steps[0];
  EXPECT_EQ(step.inputs[0], step.outputs[0]);
  EXPECT_EQ(&program.buffers[static_cast<std::size_t>(step.outputs[0])], &cache);
}

TEST(Updates, WhatComesBeforeItIsFusedAndReadersFollow) {
  EXPECT_THAT(steps(lowered(node("r", "silu", R"("rows")") + "," + append("a", "cache", "r") + "," +
                                node("y", "sum", R"("cache")", R"("dim": [1])"),
                            R"("y")")),
              ElementsAre("silu+index_copy", "sum"));
  // Several in a row, through views, and a reader of the old elements in front.
  EXPECT_THAT(steps(lowered(
                  node("o", "amax", R"("cache")", R"("dim": [1])") + "," +
                      node("v", "view", R"("cache")", R"("shape": [4, 4, 8])") + "," +
                      node("s", "slice", R"("v")", R"("dim": 1, "start": 1, "end": 2)") + "," +
                      node("f", "full", "", R"("shape": [4, 1, 8], "dtype": "f32", "value": 2)") +
                      "," + node("c", "copy_", R"("s", "f")") + "," + append("a", "cache", "rows"),
                  R"("o")")),
              ElementsAre("amax", "view+full+slice_scatter", "view+index_copy"));
}

TEST(Updates, KeysAndValuesAreAppendedByOneKernel) {
  const std::string more =
      "," + input("values", "4, 4, 8", R"(, "kind": "state")") + "," + input("v", R"("T", 8)", "");
  EXPECT_THAT(steps(lowered(node("k", "silu", R"("rows")") + "," +
                                node("a", "append_kv", R"("cache", "values", "k", "v", "slots")"),
                            "", more)),
              ElementsAre("silu+index_copy+view+index_copy"));
}

TEST(Updates, WhereTheOldElementsAreNeededTheTensorIsCopied) {
  const std::string functional = node("a", "index_copy", R"("cache", "slots", "rows")") + "," +
                                 node("y", "add", R"("a", "cache")");
  EXPECT_THAT(steps(lowered(functional, R"("y")")), ElementsAre("copy", "index_copy", "add"));
  // An input that nothing overwrites stays as it is.
  EXPECT_THAT(steps(lowered(node("a", "index_copy", R"("cache", "slots", "rows")"), R"("a")")),
              ElementsAre("copy", "index_copy"));
  // What a kernel computed is free to be changed.
  EXPECT_THAT(steps(lowered(node("n", "neg", R"("cache")") + "," +
                                node("a", "index_copy", R"("n", "slots", "rows")") + "," +
                                node("y", "abs", R"("a")"),
                            R"("y")")),
              ElementsAre("neg", "index_copy", "abs"));
  // The caller gets a copy of a state.
  EXPECT_THAT(steps(lowered(append("a", "cache", "rows"), R"("cache")")),
              ElementsAre("index_copy", "copy"));
}

TEST(Updates, PartsOfTheSameTensorAreReadBeforeTheyAreReplaced) {
  EXPECT_THAT(steps(lowered(node("s", "slice", R"("cache")", R"("end": 4)") + "," +
                                node("t", "slice", R"("cache")", R"("start": 2, "end": 6)") + "," +
                                node("c", "copy_", R"("t", "s")"),
                            "")),
              ElementsAre("slice", "slice_scatter"));
  EXPECT_THAT(steps(lowered(node("p", "transpose", R"("cache")", R"("dim0": 0, "dim1": 1)") + "," +
                                node("a", "index_copy", R"("p", "slots", "columns")"),
                            R"("a")", "," + input("columns", R"("T", 16)", ""))),
              ElementsAre("transpose", "copy", "index_copy"));
}

TEST(Updates, OfAPartThatIsNotTheFirstTheElementsAreReplacedInACopy) {
  EXPECT_THAT(steps(lowered(node("c", "split", R"("cache")", R"("split_size": 8)") + "," +
                                node("a", "index_copy", R"("c:1", "slots", "rows")"),
                            R"("a")")),
              ElementsAre("split", "copy", "index_copy"));
}

TEST(Updates, APlanThatUpdatesElsewhereIsRefused) {
  Program program =
      lowered(append("a", "cache", "rows") + "," + node("y", "neg", R"("rows")"), R"("y")");
  for (Step& step : program.steps) {
    if (step.inputs.size() == 3) step.inputs[0] = step.inputs[2] = step.outputs[0];
  }
  EXPECT_NE(problem(program), "");
}

}  // namespace
}  // namespace braid::testing
