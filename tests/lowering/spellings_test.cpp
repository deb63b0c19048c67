#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string gather(const std::string& more = "") {
  return node("g", "all_gather_into_tensor", R"("x")", R"("group": "tp")" + more) + "," +
         node("y", "wait_tensor", R"("g")");
}
std::string split(const std::string& x, int size, int dim = 0) {
  return node("p", "split", '"' + x + '"',
              R"("split_size": )" + std::to_string(size) + R"(, "dim": )" + std::to_string(dim));
}
std::string cat(const std::string& parts, int dim) {
  return node("c", "cat", parts, R"("dim": )" + std::to_string(dim));
}
/// "p:0", ..., "p:n-1"
std::string parts(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? R"(, "p:)" : R"("p:)") + std::to_string(i) + '"';
  return text;
}
std::string scatter(const std::string& x) {
  return node("r", "reduce_scatter_tensor", '"' + x + '"', R"("reduce_op": "sum", "group": "tp")") +
         "," + node("z", "wait_tensor", R"("r")");
}

/// Canonicalised: same values, and nothing left for a second time.
Graph canonical(const Graph& graph, PassContext& context) {
  const Graph result = canonicalize(graph, context);
  verify(result);
  expect_same_values(graph, result);
  PassContext again = sm80();
  EXPECT_EQ(lines(canonicalize(result, again)), lines(result));
  return result;
}

std::int64_t dim_of(const Graph& graph, const char* name) {
  return *graph.node(graph.value(*graph.find(name)).producer).attr<std::int64_t>("dim");
}

/// A graph that stays as it is, with this remark at `node`.
void expect_missed(const Graph& graph, const char* node, const std::string& reason) {
  PassContext context = sm80();
  EXPECT_EQ(lines(canonical(graph, context)), lines(graph));
  EXPECT_THAT(remarks_of(context, node), ElementsAre(HasSubstr(reason)));
}

TEST(Spellings, PartsOfSeveralSizesAreSlices) {
  for (const std::string& cut : {node("s", "split", R"("x")", R"("split_size": [2, 3], "dim": -1)"),
                                 node("s", "split", R"("x")", R"("split_size": 3, "dim": 1)"),
                                 node("s", "chunk", R"("x")", R"("chunks": 2, "dim": 1)")}) {
    const Graph graph = graph_of(input("x", "2, 5"), cut, R"("s:1", "s:0")", 2);
    PassContext context = sm80();
    EXPECT_THAT(lines(canonical(graph, context)),
                ElementsAre("s_0 = slice(x)", "s_1 = slice(x)", "-> s_1, s_0"));
    EXPECT_THAT(remarks_of(context, "s"), ElementsAre(HasSubstr("parts that differ: slices")));
  }
}

TEST(Spellings, OneNameForEachView) {
  const Graph graph = graph_of(
      input("x", "4, 6"),
      node("a", "reshape", R"("x")", R"("shape": [2, -1])") + "," + node("b", "neg", R"("a")") +
          "," + node("c", "_unsafe_view", R"("b")", R"("shape": [3, 8])") + "," +
          node("d", "chunk", R"("c")", R"("chunks": 4, "dim": -1)") + "," +
          node("e", "getitem", R"("d")", R"("index": 2)") + "," + node("f", "relu", R"("e")"),
      R"("f", "e", "d:1")");
  PassContext context = sm80();
  const Graph result = canonical(graph, context);
  EXPECT_THAT(lines(result),
              ElementsAre("a = view(x)", "b = neg(a)", "c = view(b)",
                          "d:0, d:1, d:2, d:3 = split(c)", "f = relu(d:2)", "-> f, d:2, d:1"));
  EXPECT_THAT(remarks_of(context, "e"), Contains("applied: another name of 'd:2'"));
}

// C-16
TEST(Spellings, ABatchOfOneMatrixIsAMatmul) {
  const std::string inputs = input("x", "2, 3, 4") + "," + input("w", "4, 5");
  const std::string expand = R"("shape": [2, 4, 5])";
  const Graph graph =
      graph_of(inputs,
               node("e", "expand", R"("w")", expand) + "," +
                   node("v", "view", R"("w")", R"("shape": [1, 4, 5])") + "," +
                   node("f", "expand", R"("v")", expand) + "," + node("m", "bmm", R"("x", "e")") +
                   "," + node("n", "bmm", R"("x", "f")"),
               R"("m", "n")");
  PassContext context = sm80();
  EXPECT_THAT(lines(canonical(graph, context)),
              ElementsAre("m = matmul(x, w)", "n = matmul(x, w)", "-> m, n"));
}

// Rows of kernels are along the last dim.
TEST(Spellings, SoftmaxOfAnyDim) {
  const Graph graph = graph_of(input("x", "3, \"T\", 5"),
                               node("s", "softmax", R"("x")", R"("dim": -2)") + "," +
                                   node("l", "softmax", R"("x")", R"("dim": 2)") + "," +
                                   node("g", "log_softmax", R"("x")", R"("dim": 1)"),
                               R"("s", "l", "g")", 1);
  PassContext context = sm80();
  const Graph result = canonical(graph, context);
  EXPECT_THAT(lines(result),
              ElementsAre("s_transpose = transpose(x)", "s_softmax = softmax(s_transpose)",
                          "s = transpose(s_softmax)", "l = softmax(x)",
                          "g_transpose = transpose(x)", "g_log_softmax = log_softmax(g_transpose)",
                          "g = transpose(g_log_softmax)", "-> s, l, g"));
  EXPECT_THAT(remarks_of(context, "s"), Contains("applied: softmax along dim 1: transposed"));
}

// What stands behind canonicalize knows views, slices, full and arange alone.
TEST(Spellings, OtherNamesOfPlainOps) {
  const auto plain = [](const std::string& shape, const std::string& nodes,
                        const std::string& outputs) {
    PassContext context = sm80();
    return lines(canonical(graph_of(input("x", shape), nodes, outputs, 1), context));
  };
  EXPECT_THAT(plain(R"(1, "T", 6)",
                    node("a", "squeeze", R"("x")") + "," + node("b", "neg", R"("a")") + "," +
                        node("c", "unsqueeze", R"("b")", R"("dim": -1)") + "," +
                        node("d", "abs", R"("c")") + "," +
                        node("e", "unflatten", R"("d")", R"("dim": 1, "sizes": [2, -1])") + "," +
                        node("f", "relu", R"("e")") + "," + node("g", "flatten", R"("f")"),
                    R"("g")"),
              ElementsAre("a = view(x)", "b = neg(a)", "c = view(b)", "d = abs(c)", "e = view(d)",
                          "f = relu(e)", "g = view(f)", "-> g"));
  EXPECT_THAT(plain(R"("T", 6)",
                    node("a", "narrow", R"("x")", R"("dim": -1, "start": -4, "length": 3)") + "," +
                        node("b", "select", R"("x")", R"("dim": 0, "index": "T-1")"),
                    R"("a", "b")"),
              ElementsAre("a = slice(x)", "b_slice = slice(x)", "b = view(b_slice)", "-> a, b"));
  EXPECT_THAT(plain(R"("T", 6)",
                    node("a", "full_like", R"("x")", R"("fill_value": 2.5)") + "," +
                        node("b", "zeros_like", R"("x")", R"("dtype": "i64")") + "," +
                        node("c", "ones_like", R"("x")", R"("dtype": "u8")") + "," +
                        node("d", "one_hot", R"("b")", R"("num_classes": 4)") + "," +
                        node("e", "bitwise_not", R"("c")") + "," + node("f", "ne", R"("x", "a")") +
                        "," + node("g", "bitwise_not", R"("f")"),
                    R"("d", "e", "g")"),
              ElementsAre("a = full()", "b = full()", "c = full()", "d_classes = arange()",
                          "d_column = view(b)", "d_eq = eq(d_column, d_classes)", "d = to(d_eq)",
                          "e_ones = full()", "e = bitwise_xor(c, e_ones)", "f = ne(x, a)",
                          "g = logical_not(f)", "-> d, e, g"));
  // Bits that a kernel computes are a float's there; those in memory have another name.
  EXPECT_THAT(
      plain(R"("T", 6)",
            node("p", "abs", R"("x")") + "," + node("i", "to", R"("p")", R"("dtype": "i32")") +
                "," + node("a", "view_dtype", R"("i")", R"("dtype": "f32")") + "," +
                node("b", "view_dtype", R"("x")", R"("dtype": "i32")"),
            R"("a", "b")"),
      ElementsAre("p = abs(x)", "i = to(p)", "a = bitcast(i)", "b = view_dtype(x)", "-> a, b"));
  EXPECT_THAT(
      plain(R"("T", 1)",
            node("i", "zeros_like", R"("x")", R"("dtype": "i32")") + "," +
                node("j", "full", "", R"("shape": [1, 5], "value": 0, "dtype": "i64")") + "," +
                node("a", "take_along_dim", R"("x", "j")", R"("dim": 1)") + "," +
                node("b", "take_along_dim", R"("x", "i")"),
            R"("a", "b")"),
      ElementsAre("i = full()", "j = full()", "a_index = expand(j)", "a = gather(x, a_index)",
                  "b_x = view(x)", "b_index = view(i)", "b = gather(b_x, b_index)", "-> a, b"));
}

// Kernels look through rows along the last dim.
TEST(Spellings, ASortIsAWholeTopK) {
  const Graph graph = graph_of(input("x", R"(3, "T", 5)"),
                               node("s", "sort", R"("x")", R"("dim": 1)") + "," +
                                   node("a", "argsort", R"("x")", R"("descending": true)"),
                               R"("s:0", "s:1", "a")", 1);
  PassContext context = sm80();
  EXPECT_THAT(lines(canonical(graph, context)),
              ElementsAre("s_transpose = transpose(x)", "s_topk:0, s_topk:1 = topk(s_transpose)",
                          "s_0 = transpose(s_topk:0)", "s_1 = transpose(s_topk:1)",
                          "a_topk:0, a_topk:1 = topk(x)", "-> s_0, s_1, a_topk:1"));
  EXPECT_THAT(remarks_of(context, "s"), Contains("applied: topk along dim 1: transposed"));
}

// A row of 32000 is held by no block; eight parts of 4000 are.
TEST(Spellings, ATopKOfALongRowIsOneOfParts) {
  const Graph graph = graph_of(input("x", "2, 32000"), node("t", "topk", R"("x")", R"("k": 3)"),
                               R"("t:0", "t:1")", 1);
  PassContext context = sm80();
  const Graph result = canonical(graph, context);
  EXPECT_THAT(lines(result),
              ElementsAre("t_parts = view(x)", "t_topk:0, t_topk:1 = topk(t_parts)",
                          "t_starts = arange()", "t_starts1 = view(t_starts)",
                          "t_index = add(t_topk:1, t_starts1)", "t_values = view(t_topk:0)",
                          "t_index1 = view(t_index)", "t_topk1:0, t_topk1:1 = topk(t_values)",
                          "t_index2 = gather(t_index1, t_topk1:1)", "-> t_topk1:0, t_index2"));
  EXPECT_EQ(result.type(*result.find("t_parts")).str(), "f32[2, 8, 4000]");
}

TEST(Spellings, ALongCumsumIsChains) {
  const auto plain = [](const std::string& shape, int dim) {
    const Graph graph =
        graph_of(input("x", shape),
                 node("c", "cumsum", R"("x")", "\"dim\": " + std::to_string(dim)), R"("c")", 1);
    PassContext context = sm80();
    return canonicalize(graph, context);
  };
  const Graph result = plain("2050, 3", -2);
  EXPECT_THAT(
      lines(result),
      ElementsAre("c_chains = view(x)", "c_chains1 = cumsum(c_chains)", "c_last = slice(c_chains1)",
                  "c_sums = cumsum(c_last)", "c_sums1 = slice(c_sums)", "c_none = full()",
                  "c_before = cat(c_none, c_sums1)", "c_sum = add(c_chains1, c_before)",
                  "c = view(c_sum)", "-> c"));
  EXPECT_EQ(result.type(*result.find("c_chains")).str(), "f32[5, 410, 3]");
  // Short ones, symbols, and what has no divisor or too many chains stay.
  for (const auto& [shape, dim] : {std::pair("1024, 3", 0), std::pair("2, \"T\"", 1),
                                   std::pair("1031", 0), std::pair("1048576", 0)}) {
    EXPECT_THAT(lines(plain(shape, dim)), ElementsAre("c = cumsum(x)", "-> c")) << shape;
  }
}

// A symbolic split stays one; its parts differ where the last one is smaller.
TEST(Spellings, PartsBySymbols) {
  const Graph graph = graph_of(input("x", "\"2*T\", 5") + "," + input("y", "\"2*T+1\", 5"),
                               node("c", "chunk", R"("x")", R"("chunks": 2)") + "," +
                                   node("u", "chunk", R"("y")", R"("chunks": 2)"),
                               R"("c:0", "c:1", "u:0", "u:1")", 1);
  PassContext context = sm80();
  EXPECT_THAT(lines(canonical(graph, context)),
              ElementsAre("c:0, c:1 = split(x)", "u_0 = slice(y)", "u_1 = slice(y)",
                          "-> c:0, c:1, u_0, u_1"));
}

class SplitCat : public ::testing::TestWithParam<int> {};

// A0-09, A0-14, A0-16
TEST_P(SplitCat, GathersAlongTheDimOfTheCat) {
  const int n = GetParam();
  const Graph graph = graph_of(
      input("x", "3, 2, 5"),
      gather() + "," + split("y", 3) + "," + cat(parts(n), -1) + "," + node("o", "neg", R"("c")"),
      R"("o", "c")", n);
  PassContext context = sm80();
  const Graph result = canonical(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("g = all_gather_into_tensor(x)", "y = wait_tensor(g)",
                                         "o = neg(y)", "-> o, y"));
  EXPECT_EQ(dim_of(result, "g"), 2);
  EXPECT_THAT(remarks_of(context, "c"), ElementsAre("applied: 'g' gathers along dim 2 itself"));
}

/// Each of so many parts seen as another dtype, and joined: "c".
std::string cat_of_bytes(int count) {
  std::string views, names;
  for (int i = 0; i < count; ++i) {
    const std::string name = "v" + std::to_string(i);
    views += node(name, "view", R"("p:)" + std::to_string(i) + '"', R"("dtype": "i32")") + ",";
    names += (i ? R"(, ")" : R"(")") + name + '"';
  }
  return views + cat(names, 2);
}

TEST_P(SplitCat, GathersWhatIsSeenAsBytesPartByPart) {
  const int n = GetParam();
  const std::string cut = gather() + "," + split("y", 3) + "," + cat_of_bytes(n);
  const std::string back = node("o", "view", R"("c")", R"("dtype": "f32")");
  PassContext context = sm80();
  const Graph both =
      canonical(graph_of(input("x", "3, 2, 5"), cut + "," + back, R"("o", "c")", n), context);
  EXPECT_THAT(lines(both), ElementsAre("g = all_gather_into_tensor(x)", "y = wait_tensor(g)",
                                       "c = view_dtype(y)", "-> y, c"));
  EXPECT_EQ(dim_of(both, "g"), 2);
  const std::string read = node("r", "neg", R"("v0")");
  expect_missed(graph_of(input("x", "3, 2, 5"), cut + "," + read, R"("c", "r")", n), "c",
                "'r' reads a part of it, too");
}

// A0-14, C-16: getitem, chunk and slices do as well, and any dim that is gathered.
TEST_P(SplitCat, PartsInOtherSpellings) {
  const int n = GetParam();
  std::string items;
  std::string slices;
  std::string names;
  for (int i = 0; i < n; ++i) {
    const std::string name = "i" + std::to_string(i);
    items += node(name, "getitem", R"("p")", R"("index": )" + std::to_string(i)) + ",";
    slices += node(name, "slice", R"("y")",
                   R"("dim": 1, "start": )" + std::to_string(2 * i) + R"(, "end": )" +
                       std::to_string(2 * i + 2)) +
              ",";
    names += (i ? ", \"" : "\"") + name + '"';
  }
  const std::string chunk =
      node("p", "chunk", R"("y")", R"("dim": 1, "chunks": )" + std::to_string(n)) + ",";
  for (const std::string& cut : {chunk + items, slices}) {
    const Graph graph = graph_of(input("x", "3, 2"),
                                 gather(R"(, "dim": 1)") + "," + cut + cat(names, 0), R"("c")", n);
    PassContext context = sm80();
    const Graph result = canonical(graph, context);
    EXPECT_THAT(lines(result),
                ElementsAre("g = all_gather_into_tensor(x)", "y = wait_tensor(g)", "-> y"));
    EXPECT_EQ(dim_of(result, "g"), 0);
  }
}

// A0-14, A0-17
TEST_P(SplitCat, ScattersAlongTheDimOfTheSplit) {
  const int n = GetParam();
  const Graph graph = graph_of(input("x", "4, " + std::to_string(3 * n)),
                               split("x", 3, 1) + "," + cat(parts(n), 0) + "," + scatter("c") +
                                   "," + node("other", "neg", R"("c")"),
                               R"("z", "other")", n);
  PassContext context = sm80();
  const Graph result = canonical(graph, context);
  EXPECT_THAT(lines(result), Contains("r = reduce_scatter_tensor(x)"));
  EXPECT_EQ(dim_of(result, "r"), 1);
  EXPECT_THAT(remarks_of(context, "r"), ElementsAre("applied: scatters 'x' along dim 1 itself"));
}

// X-3: what is joined is not the chunks of the ranks in their order.
TEST_P(SplitCat, OtherPartsStay) {
  const int n = GetParam();
  std::string swapped = R"("p:1", "p:0")";
  std::string doubled = R"("p:0", "p:0")";
  for (int i = 2; i < n; ++i) {
    swapped += R"(, "p:)" + std::to_string(i) + '"';
    doubled += R"(, "p:)" + std::to_string(i) + '"';
  }
  const std::string rows = std::to_string(4 * n);
  struct Near {
    std::string cut, joined, reason;
  };
  const auto nears = [&](const std::string& whole) {
    return std::vector<Near>{
        {split(whole, 4), swapped, "its operand 0, 'p:1', is [4:8:1] of dim 0"},
        {split(whole, 4), doubled, "its operand 1, 'p:0', is [0:4:1] of dim 0"},
        {split(whole, 4), parts(n - 1), "it joins " + std::to_string(n - 1) + " parts"},
        {split(whole, 2), parts(n), "its operand 0, 'p:0', is [0:2:1] of dim 0"},
        {split(whole, 2), parts(2 * n), "it joins " + std::to_string(2 * n) + " parts"},
        {split(whole, 4) + "," + node("f", "neg", R"("p:0")"), R"("f",)" + parts(n).substr(6),
         "its operand 0, 'f', is no part of"},
        {split(whole, 4) + "," + node("f", "neg", R"("p:1")"),
         n == 2 ? std::string(R"("p:0", "f")") : R"("p:0", "f", "p:2", "p:3")",
         "its operand 1, 'f', is no part of"}};
  };
  for (const Near& near : nears("y")) {
    SCOPED_TRACE(near.joined + " of a gather: " + near.reason);
    const Graph graph = graph_of(
        input("x", "4, 8"), gather() + "," + near.cut + "," + cat(near.joined, 1), R"("c")", n);
    if (!near.reason.empty()) expect_missed(graph, "c", "missed: 'g' stays gathered along dim 0");
    if (!near.reason.empty()) expect_missed(graph, "c", near.reason);
    PassContext context = sm80();
    const Graph result = canonical(graph, context);
    EXPECT_EQ(dim_of(result, "g"), 0);
    // A later pass that sees the split reports it too.
    static_cast<void>(micro_pipeline(result, context));
    if (!near.reason.empty()) {
      EXPECT_THAT(remarks_of(context, "g").back(),
                  AllOf(HasSubstr("for canonicalize left 'c' as it is: 'g' stays gathered"),
                        HasSubstr(near.reason)));
    }
  }
  for (const Near& near : nears("x")) {
    SCOPED_TRACE(near.joined + " into a scatter: " + near.reason);
    const Graph graph =
        graph_of(input("x", rows + "," + rows),
                 near.cut + "," + cat(near.joined, 1) + "," +
                     node("t", "transpose", R"("c")", R"("dim0": 0, "dim1": 1)") + "," +
                     node("r", "reduce_scatter_tensor", R"("c")",
                          R"("reduce_op": "sum", "dim": 1, "group": "tp")") +
                     "," + node("z", "wait_tensor", R"("r")"),
                 R"("z", "t")", n);
    if (!near.reason.empty()) expect_missed(graph, "r", near.reason);
    PassContext context = sm80();
    const Graph result = canonical(graph, context);
    EXPECT_THAT(lines(result), Contains("r = reduce_scatter_tensor(c)"));
    static_cast<void>(micro_pipeline(result, context));
    if (!near.reason.empty()) {
      EXPECT_THAT(remarks_of(context, "r").back(),
                  AllOf(HasSubstr("expected mm or matmul: in canonicalize, 'c' stays its operand"),
                        HasSubstr(near.reason)));
    }
  }
}

// X-3
TEST_P(SplitCat, PartsOfAnotherValueStay) {
  const int n = GetParam();
  const std::string other = node("g2", "all_gather_into_tensor", R"("x2")", R"("group": "tp")") +
                            "," + node("y2", "wait_tensor", R"("g2")") + "," +
                            node("q", "split", R"("y2")", R"("split_size": 4, "dim": 0)");
  const std::string mixed = parts(n - 1) + R"(, "q:)" + std::to_string(n - 1) + '"';
  expect_missed(
      graph_of(input("x", "4, 8") + "," + input("x2", "4, 8"),
               gather() + "," + split("y", 4) + "," + other + "," + cat(mixed, 1), R"("c")", n),
      "c", "is no part of 'y'");
}

// X-3: the cut, the join and the collective must be along the dims that belong together.
TEST_P(SplitCat, OtherDimsStay) {
  const int n = GetParam();
  const std::string columns = std::to_string(2 * n);
  expect_missed(graph_of(input("x", "4, " + columns),
                         gather() + "," + split("y", 2, 1) + "," + cat(parts(n), 0), R"("c")", n),
                "c", "'y' is cut along dim 1; expected 0");
  expect_missed(
      graph_of(input("x", std::to_string(4 * n) + ", 8"),
               split("x", 4, 0) + "," + cat(parts(n), 1) + "," + scatter("c"), R"("z")", n),
      "r", "'c' joins along dim 1; expected 0");
}

TEST_P(SplitCat, OtherReadersKeepTheGather) {
  const int n = GetParam();
  const std::string nodes = gather() + "," + split("y", 4) + "," + cat(parts(n), 1);
  const std::string x = input("x", "4, 8");
  const auto missed = [&](const std::string& more, const std::string& outputs,
                          const std::string& reason) {
    expect_missed(graph_of(x, nodes + more, outputs, n), "c", reason);
  };
  missed("," + node("o", "neg", R"("y")"), R"("c", "o")", "'o' reads it, too");
  missed("," + node("o", "neg", R"("p:1")"), R"("c", "o")", "'o' reads a part of it, too");
  missed("", R"("c", "y")", "'y' is a graph output");
  missed("", R"("c", "p:0")", "'p:0' is a graph output");
  missed("," + node("w", "wait_tensor", R"("g")"), R"("c", "w")", "waited for more than once");
}

TEST_P(SplitCat, WhatIsOverwrittenMeanwhileIsNotReadLater) {
  const int n = GetParam();
  const Graph graph = graph_of(
      input("x", "4, " + std::to_string(3 * n)) + "," + input("u", "4, " + std::to_string(3 * n)),
      split("x", 3, 1) + "," + cat(parts(n), 0) + "," + node("m", "copy_", R"("x", "u")") + "," +
          scatter("c"),
      R"("z")", n);
  expect_missed(graph, "r", "'x' is overwritten before the scatter has read it");
}

INSTANTIATE_TEST_SUITE_P(Ranks, SplitCat, ::testing::Values(2, 4));

}  // namespace
}  // namespace braid::testing
