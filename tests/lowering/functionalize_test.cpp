#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

const std::string kInputs = input("x", "4, 6") + "," + input("y", "4, 6");

std::string in_place(const std::string& name, const std::string& operand) {
  return node(name, "all_reduce_", '"' + operand + '"', R"("reduce_op": "sum", "group": "tp")");
}
std::string wait(const std::string& name, const std::string& operand) {
  return node(name, "wait_tensor", '"' + operand + '"');
}
std::string transposed(const std::string& name, const std::string& operand) {
  return node(name, "transpose", '"' + operand + '"', R"("dim0": 0, "dim1": 1)");
}

/// The result of the pass, checked to keep the values and to be idempotent.
std::vector<std::string> functional(const std::string& nodes, const std::string& outputs) {
  std::vector<std::string> result;
  for (int world : {2, 4}) {
    const Graph graph = graph_of(kInputs, nodes, outputs, world);
    verify(graph);
    PassContext context = sm80();
    const Graph once = functionalize(graph, context);
    verify(once);
    expect_same_values(graph, once);
    const Graph twice = functionalize(once, context);
    result = lines(once);
    EXPECT_EQ(lines(twice), result);
  }
  return result;
}

TEST(Functionalize, AnIntermediateIsReplacedByTheResult) {
  EXPECT_THAT(functional(node("h", "neg", R"("x")") + "," + in_place("c", "h") + "," +
                             wait("w", "c") + "," + node("z", "mul", R"("h", "y")"),
                         R"("z", "h")"),
              ElementsAre("h = neg(x)", "c = all_reduce(h)", "w = wait_tensor(c)", "z = mul(w, y)",
                          "-> z, w"));
}

// A2-09: the caller's tensor gets the reduction.
TEST(Functionalize, AGraphInputIsWrittenBackAtTheEnd) {
  EXPECT_THAT(
      functional(in_place("c", "x") + "," + wait("w", "c") + "," + node("z", "neg", R"("x")"),
                 R"("z", "x")"),
      ElementsAre("c = all_reduce(x)", "w = wait_tensor(c)", "z = neg(w)", "x_update = copy_(x, w)",
                  "-> z, w"));
}

TEST(Functionalize, AWaitNamesWhatItWaitsForAfterAWrite) {
  const std::string slice = node("s", "slice", R"("w")", R"("dim": 0, "start": 0, "end": 1)");
  const std::string part = node("p", "slice", R"("y")", R"("dim": 0, "start": 0, "end": 1)");
  const std::string write = node("k", "copy_", R"("s", "p")");
  EXPECT_THAT(functional(all_reduce("c", "x") + "," + wait("w", "c") + "," + slice + "," + part +
                             "," + write + "," + node("z", "neg", R"("w")"),
                         R"("z", "w")"),
              ElementsAre("c = all_reduce(x)", "w = wait_tensor(c)", "s = slice(w)", "p = slice(y)",
                          "s_back = slice(w)", "s_back1 = cat(p, s_back)", "z = neg(s_back1)",
                          "-> z, s_back1"));
}

// The dim that a select takes comes back on the way.
TEST(Functionalize, ASelectedPartIsPutBack) {
  EXPECT_THAT(functional(node("s", "select", R"("x")", R"("dim": 0, "index": 3)") + "," +
                             in_place("c", "s") + "," + wait("w", "c"),
                         R"("x")"),
              ElementsAre("s = select(x)", "c = all_reduce(s)", "w = wait_tensor(c)",
                          "s_back = view(w)", "s_back1 = slice_scatter(x, s_back)",
                          "x_update = copy_(x, s_back1)", "-> s_back1"));
}

// A2-09, C-14: also where the operand is a view of it.
TEST(Functionalize, ViewsAreUndoneOnTheWayBack) {
  EXPECT_THAT(
      functional(transposed("t", "x") + "," + in_place("c", "t") + "," + wait("w", "c"), R"("x")"),
      ElementsAre("t = transpose(x)", "c = all_reduce(t)", "w = wait_tensor(c)",
                  "t_back = transpose(w)", "x_update = copy_(x, t_back)", "-> t_back"));
  EXPECT_THAT(
      functional(node("s", "slice", R"("x")", R"("dim": 1, "start": 2, "end": 5)") + "," +
                     node("p", "permute", R"("s")", R"("dims": [1, 0])") + "," +
                     in_place("c", "p") + "," + wait("w", "c") + "," + node("z", "neg", R"("x")"),
                 R"("z")"),
      ElementsAre("s = slice(x)", "p = permute(s)", "c = all_reduce(p)", "w = wait_tensor(c)",
                  "p_back = permute(w)", "s_back = slice_scatter(x, p_back)", "z = neg(s_back)",
                  "x_update = copy_(x, s_back)", "-> z"));
  EXPECT_THAT(functional(node("v", "view", R"("x")", R"("shape": [24])") + "," +
                             in_place("c", "v") + "," + wait("w", "c"),
                         R"("x")"),
              ElementsAre("v = view(x)", "c = all_reduce(v)", "w = wait_tensor(c)",
                          "v_back = view(w)", "x_update = copy_(x, v_back)", "-> v_back"));
}

TEST(Functionalize, PartsOfASplitAreOverwrittenOneByOne) {
  functional(node("s", "split", R"("x")", R"("split_size": 2)") + "," + in_place("c", "s:0") + "," +
                 wait("w", "c") + "," + node("t", "split", R"("x")", R"("split_size": 2)") + "," +
                 in_place("d", "t:1") + "," + wait("v", "d"),
             R"("x")");
}

// A2-14
TEST(Functionalize, PartsOfAChunkToo) {
  EXPECT_THAT(
      functional(node("p", "chunk", R"("x")", R"("chunks": 2)") + "," + in_place("c", "p:1") + "," +
                     wait("w", "c"),
                 R"("x")"),
      ElementsAre("p:0, p:1 = chunk(x)", "c = all_reduce(p:1)", "w = wait_tensor(c)",
                  "p_back = slice_scatter(x, w)", "x_update = copy_(x, p_back)", "-> p_back"));
}

TEST(Functionalize, PartsBySymbolsToo) {
  const Graph graph = graph_of(input("x", "\"T+3\", 6"),
                               node("s", "slice", R"("x")", R"("start": 2, "end": "T+2")") + "," +
                                   in_place("c", "s") + "," + wait("w", "c"),
                               R"("x")", 2);
  PassContext context = sm80();
  const Graph result = functionalize(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("s = slice(x)", "c = all_reduce(s)", "w = wait_tensor(c)",
                                         "s_back = slice_scatter(x, w)",
                                         "x_update = copy_(x, s_back)", "-> s_back"));
  expect_same_values(graph, result);
}

// A computed value has no place yet: a join can be fused with what computes it.
TEST(Functionalize, PartsOfAnIntermediateAreJoined) {
  EXPECT_THAT(functional(node("h", "neg", R"("x")") + "," +
                             node("s", "slice", R"("h")", R"("start": 1, "end": 3)") + "," +
                             in_place("c", "s") + "," + wait("w", "c"),
                         R"("h")"),
              ElementsAre("h = neg(x)", "s = slice(h)", "c = all_reduce(s)", "w = wait_tensor(c)",
                          "s_back = slice(h)", "s_back1 = slice(h)",
                          "s_back2 = cat(s_back, w, s_back1)", "-> s_back2"));
  EXPECT_THAT(
      functional(node("h", "neg", R"("x")") + "," + node("s", "slice", R"("h")", R"("step": 3)") +
                     "," + in_place("c", "s") + "," + wait("w", "c"),
                 R"("h")"),
      ElementsAre("h = neg(x)", "s = slice(h)", "c = all_reduce(s)", "w = wait_tensor(c)",
                  "s_back = slice_scatter(h, w)", "-> s_back"));
}

TEST(Functionalize, AnOutFormIsThePlainOneAndACopy) {
  const std::string out = R"({"name": "o", "dtype": "f32", "shape": [8, 6], "per_rank": true})";
  const Graph graph =
      graph_of(kInputs + "," + out,
               node("c", "all_gather_into_tensor_out", R"("x", "o")", R"("group": "tp")") + "," +
                   wait("w", "c"),
               R"("o")", 2);
  PassContext context = sm80();
  const Graph result = functionalize(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("c = all_gather_into_tensor(x)", "w = wait_tensor(c)",
                                         "o_update = copy_(o, w)", "-> w"));
  expect_same_values(graph, result);
}

// A2-10
TEST(Functionalize, CoalescedFormsToo) {
  EXPECT_THAT(functional(node("c", "all_reduce_coalesced_", R"("x", "y")",
                              R"("reduce_op": "sum", "group": "tp")") +
                             "," + wait("v", "c:0") + "," + wait("w", "c:1"),
                         R"("x", "y")"),
              ElementsAre("c:0, c:1 = all_reduce_coalesced(x, y)", "v = wait_tensor(c:0)",
                          "w = wait_tensor(c:1)", "x_update = copy_(x, v)",
                          "y_update = copy_(y, w)", "-> v, w"));
}

TEST(Functionalize, InputsThatChangePlacesAreSavedFirst) {
  EXPECT_THAT(functional(node("t", "neg", R"("x")") + "," + node("a", "copy_", R"("x", "y")") +
                             "," + node("b", "copy_", R"("y", "t")"),
                         R"("x", "y")"),
              ElementsAre("t = neg(x)", "y_saved = copy(y)", "y_saved1 = copy(y)",
                          "a = copy_(x, y_saved)", "b = copy_(y, t)", "-> y_saved1, t"));
}

TEST(Functionalize, WhatNobodyOverwritesStays) {
  const Graph graph = graph_of(kInputs, all_reduce("c", "x") + "," + wait("w", "c"), R"("w")");
  PassContext context = sm80();
  EXPECT_EQ(lines(functionalize(graph, context)), lines(graph));
  EXPECT_TRUE(context.remarks.empty());
}

TEST(Functionalize, RefusesWhatDecomposeFsdpTakesApart) {
  const Graph graph = graph_of(
      input("a", "4, 2") + "," + input("buffer", "32"),
      node("g", "fsdp.all_gather_copy_in", R"("a", "buffer")", R"("group": "tp")"), R"("g:0")");
  PassContext context = sm80();
  try {
    functionalize(graph, context);
    ADD_FAILURE() << "no error";
  } catch (const std::exception& error) {
    EXPECT_STREQ(
        error.what(),
        "g: fsdp.all_gather_copy_in overwrites its last operand; run decompose_fsdp first");
  }
}

}  // namespace
}  // namespace braid::testing
