#include <gmock/gmock.h>

#include <set>

#include "braid/error.h"
#include "ir/op_registry.h"
#include "lowering/lowering_testing.h"
#include "lowering/plan/cost.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kX = input("x", R"("T", 6)");
const std::string kX2 = kX + "," + input("x2", R"("T", 6)");
const std::string kWeight = input("g", "6", R"(, "kind": "parameter")");
const std::string kSquare = input("w", "6, 6", R"(, "kind": "parameter", "per_rank": true)");

Graph fused(const Graph& graph, PassContext& context) {
  context = in_one_shot();
  const Graph result = fuse(lower_collectives(canonicalize(graph, context), context), context);
  verify(result);
  expect_same_values(graph, result);
  return result;
}
Graph fused(const std::string& inputs, const std::string& nodes, const std::string& outputs) {
  PassContext context;
  fused(graph_of(inputs, nodes, outputs, 2), context);
  return fused(graph_of(inputs, nodes, outputs, 4), context);
}

std::string norm(const std::string& name, const std::string& x) {
  return node(name, "rms_norm", '"' + x + R"(", "g")", R"("eps": 1e-5)");
}

TEST(Fuse, PartsOfSeveralSizesAreWrittenByAKernelEach) {
  const std::string x = input("x", "3, 2");
  const std::string y = node("y", "neg", R"("x")");
  const std::string split = node("s", "split", R"("y")", R"("split_size": [1, 2])");
  EXPECT_THAT(lines(fused(x, y + "," + split, R"("s:0", "s:1")")),
              ElementsAre("y = elementwise{neg}(x)", "s_0 = elementwise{slice}(y)",
                          "s_1 = elementwise{slice}(y)", "-> s_0, s_1"));
  fused(x, y + "," + node("s", "chunk", R"("y")", R"("chunks": 2)"), R"("s:0", "s:1")");
  fused(x,
        y + "," + split + "," + all_reduce("c", "s:0") + "," + all_reduce("d", "s:1") + "," +
            node("v", "wait_tensor", R"("c")") + "," + node("w", "wait_tensor", R"("d")"),
        R"("v", "w")");
}

TEST(Fuse, TpMlpIsThreeKernels) {
  const Graph graph = fused(kX2 + "," + kWeight + "," + kSquare,
                            node("h", "mm", R"("x", "w")") + "," + node("a", "silu", R"("h")") +
                                "," + node("p", "mm", R"("a", "w")") + "," + all_reduce("c", "p") +
                                "," + node("s", "wait_tensor", R"("c")") + "," +
                                node("r", "add", R"("s", "x2")") + "," + norm("y", "r"),
                            R"("y", "r")");
  EXPECT_THAT(lines(graph), ElementsAre("a = gemm{mm+silu}(x, w)", "p@tp = gemm{mm}(a, w)",
                                        "y:0, y:1 = collective{all_reduce+add+rms_norm}(p, x2, g)",
                                        "-> y:1, y:0"));
  const Graph& body = **graph.nodes()[2].attr<std::shared_ptr<const Graph>>("body");
  EXPECT_EQ(body.value(body.input_values()[0]).comm_group, "tp");
  EXPECT_EQ(body.value(body.input_values()[1]).comm_group, "");
}

TEST(Fuse, LlamaMlpIsFourKernels) {
  const Graph graph =
      fused(kX + "," + kWeight + "," + kSquare,
            norm("n", "x") + "," + node("gate", "mm", R"("n", "w")") + "," +
                node("up", "mm", R"("n", "w")") + "," + node("act", "silu", R"("gate")") + "," +
                node("m", "mul", R"("act", "up")") + "," + node("d", "mm", R"("m", "w")") + "," +
                all_reduce("c", "d") + "," + node("s", "wait_tensor", R"("c")") + "," +
                node("r", "add", R"("s", "x")") + "," + norm("y", "r"),
            R"("y", "r")");
  EXPECT_THAT(lines(graph), ElementsAre("n = elementwise{rms_norm}(x, g)",
                                        "m = gemm{mm+mm+silu+mul}(n, w)", "d@tp = gemm{mm}(m, w)",
                                        "y:0, y:1 = collective{all_reduce+add+rms_norm}(d, x, g)",
                                        "-> y:1, y:0"));
}

TEST(Fuse, WholeChainsOfPointwiseNodes) {
  const Graph graph = fused(kX2,
                            node("a", "exp", R"("x")") + "," + node("b", "neg", R"("x2")") + "," +
                                node("c", "silu", R"("b")") + "," + node("d", "add", R"("a", "c")"),
                            R"("d", "b")");
  EXPECT_THAT(lines(graph),
              ElementsAre("d:0, d:1 = elementwise{exp+neg+silu+add}(x, x2)", "-> d:1, d:0"));
}

TEST(Fuse, NormWithPrologueAndEpilogue) {
  const Graph graph = fused(
      kX2 + "," + kWeight,
      node("r", "add", R"("x", "x2")") + "," + norm("n", "r") + "," + node("y", "silu", R"("n")"),
      R"("y", "r")");
  EXPECT_THAT(lines(graph),
              ElementsAre("y:0, y:1 = elementwise{add+rms_norm+silu}(x, x2, g)", "-> y:1, y:0"));
}

TEST(Fuse, RotaryEmbeddingOfANormOfWhatIsInMemory) {
  const auto kernels = [](const std::string& nodes) {
    PassContext context;
    const std::string inputs = input("x", R"("T", 3, 4)") + "," + input("g", "4") + "," +
                               input("table", R"("T", 1, 2)") + "," + input("wide", R"("T", 1, 6)");
    return lines(fused(graph_of(inputs, nodes, R"("r")"), context));
  };
  const std::string rotated = "," + node("r", "rotary_embedding", R"("n", "table", "table")");
  EXPECT_THAT(kernels(norm("n", "x") + rotated),
              ElementsAre("r = elementwise{rms_norm+rotary_embedding}(x, g, table)", "-> r"));
  // An element that is computed would be so twice.
  EXPECT_THAT(kernels(node("s", "silu", R"("x")") + "," + norm("n", "s") + rotated), SizeIs(3));
  EXPECT_THAT(kernels(norm("m", "x") + "," + node("n", "silu", R"("m")") + rotated), SizeIs(3));
  // The other element is one of another row.
  EXPECT_THAT(
      kernels(norm("m", "x") + "," + node("n", "view", R"("m")", R"("shape": ["T", 1, 12])") + "," +
              node("r", "rotary_embedding", R"("n", "wide", "wide")")),
      SizeIs(3));
}

TEST(Fuse, TransposeThatOnlyMatmulsReadIsInsideThem) {
  const Graph graph =
      fused(kX + "," + kSquare,
            node("t", "transpose", R"("w")", R"("dim0": 0, "dim1": 1)") + "," +
                node("a", "mm", R"("x", "t")") + "," + node("b", "mm", R"("a", "t")"),
            R"("b")");
  EXPECT_THAT(lines(graph),
              ElementsAre("a = gemm{transpose+mm}(w, x)", "b = gemm{transpose+mm}(w, a)", "-> b"));
}

TEST(Fuse, OtherTransposesAreWritten) {
  const Graph graph = fused(kX + "," + kSquare,
                            node("t", "transpose", R"("w")", R"("dim0": 0, "dim1": 1)") + "," +
                                node("a", "mm", R"("x", "t")"),
                            R"("a", "t")");
  EXPECT_THAT(lines(graph),
              ElementsAre("t = elementwise{transpose}(w)", "a = gemm{mm}(x, t)", "-> a, t"));
}

TEST(Fuse, ViewsStandInside) {
  PassContext context;
  const Graph graph = fused(graph_of(kX,
                                     node("a", "exp", R"("x")") + "," +
                                         node("v", "view", R"("a")", R"("shape": ["6*T"])") + "," +
                                         node("b", "neg", R"("v")"),
                                     R"("b")"),
                            context);
  EXPECT_THAT(lines(graph), ElementsAre("b = elementwise{exp+view+neg}(x)", "-> b"));
}

TEST(Fuse, AMovedValueThatTwoKernelsReadStandsInBoth) {
  const Graph graph =
      fused(kX + "," + kSquare,
            node("a", "exp", R"("x")") + "," +
                node("t", "transpose", R"("a")", R"("dim0": 0, "dim1": 1)") + "," +
                node("b", "mm", R"("t", "a")") + "," + node("c", "mm", R"("t", "x")"),
            R"("b", "c")");
  EXPECT_THAT(lines(graph), ElementsAre("a = elementwise{exp}(x)", "b = gemm{transpose+mm}(a)",
                                        "c = gemm{transpose+mm}(a, x)", "-> b, c"));
}

TEST(Fuse, NothingIsComputedOncePerElementOfSomethingLarger) {
  PassContext context;
  const Graph graph =
      fused(graph_of(kX + "," + kWeight,
                     node("a", "exp", R"("g")") + "," + node("b", "mul", R"("x", "a")"), R"("b")"),
            context);
  EXPECT_THAT(lines(graph),
              ElementsAre("a = elementwise{exp}(g)", "b = elementwise{mul}(x, a)", "-> b"));
  EXPECT_THAT(remarks_of(context, "b"), Contains(HasSubstr("would be computed again")));
}

TEST(Fuse, NoCycleThroughANodeOutside) {
  // d reads a through the matmul b: a and d in one kernel would wait for themselves.
  const Graph graph =
      fused(kX + "," + kSquare,
            node("a", "exp", R"("x")") + "," + node("b", "mm", R"("a", "w")") + "," +
                node("z", "softmax", R"("b")") + "," + node("d", "add", R"("a", "z")"),
            R"("d")");
  EXPECT_THAT(lines(graph), Contains("d = elementwise{softmax+add}(b, a)"));
}

TEST(Fuse, OneCollectivePerKernelWithItsOperandInFront) {
  PassContext context;
  const Graph graph =
      fused(graph_of(kX2,
                     node("p", "neg", R"("x")") + "," + node("q", "exp", R"("x2")") + "," +
                         all_reduce("c", "p") + "," + all_reduce("e", "q") + "," +
                         node("s", "wait_tensor", R"("c")") + "," +
                         node("t", "wait_tensor", R"("e")") + "," + node("y", "add", R"("s", "t")"),
                     R"("y")"),
            context);
  EXPECT_THAT(lines(graph),
              ElementsAre("c:0@tp, c:1 = collective{neg+all_reduce}(x)",
                          "y:0@tp, y:1 = collective{exp+all_reduce+add}(x2, c:1)", "-> y:1"));
}

TEST(Fuse, OperandOfACollectiveThatOthersReadOrThatIsLarge) {
  const std::string reduced = all_reduce("c", "p") + "," + node("s", "wait_tensor", R"("c")") + ",";
  PassContext context;
  const Graph shared = fused(
      graph_of(kX2, node("p", "neg", R"("x")") + "," + reduced + node("y", "add", R"("s", "p")"),
               R"("y")"),
      context);
  EXPECT_THAT(lines(shared), ElementsAre("p@tp = elementwise{neg}(x)",
                                         "y = collective{all_reduce+add}(p)", "-> y"));
  EXPECT_THAT(remarks_of(context, "c"),
              Contains(HasSubstr("must be complete on every rank first")));
  // Not evaluated: it is large.
  context = in_one_shot();
  const Graph large = fuse(lower_collectives(graph_of(input("x", "4096, 4096"),
                                                      node("p", "neg", R"("x")") + "," + reduced +
                                                          node("y", "neg", R"("s")"),
                                                      R"("y")"),
                                             context),
                           context);
  EXPECT_THAT(lines(large), ElementsAre("p@tp = elementwise{neg}(x)",
                                        "y = collective{all_reduce+neg}(p)", "-> y"));
  const Graph norm = fused(
      kX2, node("p", "softmax", R"("x")") + "," + reduced + node("y", "neg", R"("s")"), R"("y")");
  EXPECT_THAT(lines(norm), ElementsAre("p@tp = elementwise{softmax}(x)",
                                       "y = collective{all_reduce+neg}(p)", "-> y"));
}

TEST(Fuse, PrologueOfAResidualJoinsTheCollective) {
  const Graph graph = fused(kX2,
                            node("p", "neg", R"("x")") + "," + node("q", "exp", R"("x2")") + "," +
                                all_reduce("c", "p") + "," + node("s", "wait_tensor", R"("c")") +
                                "," + node("y", "add", R"("s", "q")"),
                            R"("y")");
  EXPECT_THAT(lines(graph),
              ElementsAre("y:0@tp, y:1 = collective{neg+all_reduce+exp+add}(x, x2)", "-> y:1"));
}

// With packets the operand need not be in memory.
TEST(Fuse, WhatIsSentAsPacketsStaysInRegisters) {
  PassContext context = sm80();
  const Graph lowered = lower_collectives(
      graph_of(kX2,
               node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," +
                   node("s", "wait_tensor", R"("c")") + "," + node("y", "add", R"("s", "x2")"),
               R"("y")"),
      context);
  const Graph graph = fuse(lowered, context);
  verify(graph);
  EXPECT_THAT(lines(graph), ElementsAre("y = collective{neg+all_reduce+add}(x, x2)", "-> y"));
}

TEST(Fuse, EqualLayersShareOneBody) {
  // Other names and another order of independent inputs change nothing.
  const Graph graph =
      fused(kX2 + "," + kSquare,
            node("a", "mm", R"("x", "w")") + "," + node("b", "silu", R"("a")") + "," +
                node("zz", "mm", R"("b", "w")") + "," + node("k", "silu", R"("zz")"),
            R"("k")");
  ASSERT_EQ(graph.nodes().size(), 2U);
  EXPECT_EQ(*graph.nodes()[0].attr<std::shared_ptr<const Graph>>("body"),
            *graph.nodes()[1].attr<std::shared_ptr<const Graph>>("body"));
}

TEST(Fuse, UsersMayNameAValueLikeAResult) {
  const Graph graph = fused(kX + "," + kSquare,
                            node("y:0", "exp", R"("x")") + "," + node("b", "mm", R"("y:0", "w")") +
                                "," + node("y", "exp", R"("b")"),
                            R"("y", "b", "y:0")");
  EXPECT_THAT(lines(graph), ElementsAre("y:0 = elementwise{exp}(x)",
                                        "y_kernel:0, y_kernel:1 = gemm{mm+exp}(y:0, w)",
                                        "-> y_kernel:1, y_kernel:0, y:0"));
}

TEST(Fuse, WantsLoweredCollectives) {
  const Graph graph =
      graph_of(kX, all_reduce("c", "x") + "," + node("s", "wait_tensor", R"("c")"), R"("s")");
  PassContext context = sm80();
  EXPECT_THROW(fuse(graph, context), Error);
}

TEST(Fuse, KernelsAreBounded) {
  std::string nodes;
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes += (i > 0 ? "," : "") + node(name, "neg", '"' + last + '"');
    last = name;
  }
  PassContext context;
  const Graph graph = fused(graph_of(kX, nodes, '"' + last + '"'), context);
  EXPECT_EQ(graph.nodes().size(), 4U);
  EXPECT_THAT(remarks_of(context, "n32"), Contains(HasSubstr("more than 32 nodes")));
}

TEST(Fuse, ALongCatIsATreeOfKernels) {
  const std::string x = input("x", "2, 3");
  const auto cat_of = [](std::size_t count) {
    std::vector<std::string> operands;
    for (std::size_t i = 0; i < count; ++i) operands.push_back(i % 3 == 0 ? "\"y\"" : "\"x\"");
    return node("y", "neg", R"("x")") + "," +
           node("c", "cat", fmt::format("{}", fmt::join(operands, ", ")), R"("dim": -1)") + "," +
           node("z", "exp", R"("c")");
  };
  EXPECT_THAT(lines(fused(x, cat_of(32), R"("z")")),
              ElementsAre("y = elementwise{neg}(x)", "z = elementwise{cat+exp}(y, x)", "-> z"));
  PassContext context;
  EXPECT_THAT(lines(fused(graph_of(x, cat_of(33), R"("z")"), context)),
              ElementsAre("y = elementwise{neg}(x)", "c_part_0_0 = elementwise{cat}(y, x)",
                          "c_part_0_1 = elementwise{cat}(x, y)",
                          "z = elementwise{cat+exp}(c_part_0_0, c_part_0_1)", "-> z"));
  EXPECT_THAT(remarks_of(context, "c"), Contains(HasSubstr("33 tensors: a tree of cats")));
  // 157 parts, which 5 parts join.
  EXPECT_EQ(fused(x, cat_of(5'000), R"("z")").nodes().size(), 1U + 157 + 5 + 1);
}

TEST(Fuse, AChainOfTransposesIsLookedAtOnce) {
  // Each permute asks who reads it: what it finds is kept, or this doubles with each of them.
  std::string nodes;
  std::string last = "x";
  for (int i = 0; i < 60; ++i) {
    const std::string name = "p" + std::to_string(i);
    nodes += node(name, "permute", '"' + last + '"', R"("dims": [2, 0, 1])") + ",";
    last = name;
  }
  nodes += node("y", "bmm", '"' + last + R"(", "x")");
  EXPECT_EQ(lines(fused(input("x", "4, 4, 4"), nodes, R"("y")")).size(), 2U);
}

TEST(Fuse, EqualKernelsShareTheirBody) {
  const Graph graph =
      fused(kX + "," + kSquare,
            node("a", "mm", R"("x", "w")") + "," + node("b", "neg", R"("a")") + "," +
                node("c", "mm", R"("b", "w")") + "," + node("d", "neg", R"("c")") + "," +
                node("e", "mm", R"("d", "w")") + "," + node("f", "exp", R"("e")"),
            R"("f")");
  ASSERT_EQ(graph.nodes().size(), 3U);
  const auto body = [&](NodeId id) {
    return *graph.node(id).attr<std::shared_ptr<const Graph>>("body");
  };
  EXPECT_EQ(body(0), body(1));
  EXPECT_NE(body(1), body(2));
}

/// Bytes that the nodes of a graph read and write, each operand of a node once.
std::int64_t traffic(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Node& n : graph.nodes()) {
    if (n.op_name() == "view") continue;
    std::set<ValueId> read(n.inputs.begin(), n.inputs.end());
    for (ValueId value : read) bytes += max_bytes(graph.type(value), graph.symbols());
    for (ValueId value : n.outputs) bytes += max_bytes(graph.type(value), graph.symbols());
  }
  return bytes;
}

TEST(Fuse, RandomGraphs) {
  for (int world : {1, 2, 4}) {
    for (std::uint64_t seed = 200; seed < 260; ++seed) {
      SCOPED_TRACE(seed);
      const Graph graph = random_graph(seed, 40, world);
      PassContext context = sm80();
      const Graph lowered = lower_collectives(canonicalize(graph, context), context);
      const Graph result = fuse(lowered, context);
      verify(result);
      expect_same_values(graph, result, seed);
      EXPECT_LE(traffic(result), traffic(lowered));

      std::size_t computed = 0;
      std::size_t kept = 0;
      for (const Node& n : result.nodes()) {
        if (n.op_name() == "view") continue;
        ASSERT_EQ(n.op_name(), "kernel");
        const Graph& body = **n.attr<std::shared_ptr<const Graph>>("body");
        for (std::size_t i = 0; i < body.nodes().size(); ++i) {
          const bool is_transpose = body.nodes()[i].op_name() == "transpose";
          if (!is_transpose) ++computed;
          if (body.nodes()[i].op->op_class != OpClass::kCollective) continue;
          const NodeId front = body.value(body.nodes()[i].inputs[0]).producer;
          EXPECT_EQ(front + 1, static_cast<NodeId>(i));  // -1 for an input
        }
      }
      for (const Node& n : lowered.nodes()) kept += n.op->op_class != OpClass::kView ? 1 : 0;
      EXPECT_EQ(computed, kept) << "every node is computed exactly once";
      // A second application changes nothing.
      EXPECT_EQ(lines(fuse(result, context)), lines(result));
    }
  }
}

}  // namespace
}  // namespace braid::testing
