#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kX = input("x", R"("T", 6)");

TEST(Canonicalize, GroupOfOneRankIsTheIdentity) {
  const Graph graph =
      graph_of(kX,
               node("p", "neg", R"("x")") + "," + all_reduce("c", "p") + "," +
                   node("s", "wait_tensor", R"("c")") + "," + node("y", "relu", R"("s")"),
               R"("y", "s")", 1);
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  verify(result);
  EXPECT_THAT(lines(result), ElementsAre("p = neg(x)", "y = relu(p)", "-> y, p"));
  EXPECT_THAT(remarks_of(context, "c"), Contains(HasSubstr("'tp' has one rank")));
  EXPECT_THAT(remarks_of(context, "s"), Contains(HasSubstr("nothing to wait for")));
  expect_same_values(graph, result);
}

TEST(Canonicalize, LargerGroupsStay) {
  const Graph graph =
      graph_of(kX, all_reduce("c", "x") + "," + node("s", "wait_tensor", R"("c")"), R"("s")", 2);
  PassContext context = sm80();
  EXPECT_EQ(lines(canonicalize(graph, context)), lines(graph));
  EXPECT_TRUE(context.remarks.empty());
}

TEST(Canonicalize, ViewsOfViewsMerge) {
  const Graph graph = graph_of(kX,
                               node("a", "view", R"("x")", R"("shape": ["6*T"])") + "," +
                                   node("b", "view", R"("a")", R"("shape": [2, -1])") + "," +
                                   node("c", "view", R"("b")", R"("shape": ["T", 6])") + "," +
                                   node("d", "neg", R"("c")") + "," + node("e", "neg", R"("b")"),
                               R"("d", "e")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("b = view(x)", "d = neg(x)", "e = neg(b)", "-> d, e"));
  // The -1 is spelt out.
  EXPECT_EQ(*result.nodes()[0].attr<Shape>("shape"), (Shape{2, Dim::symbol("T") * 3}));
  EXPECT_THAT(remarks_of(context, "c"), Contains("applied: a view to the shape it has"));
  expect_same_values(graph, result);
}

std::string gather_of(const std::string& x, const std::string& dim, const std::string& more = "") {
  return node("g", "all_gather_into_tensor", '"' + x + '"',
              R"("group": "tp", "dim": )" + dim + more) +
         "," + node("w", "wait_tensor", R"("g")");
}
std::string shard_of(const std::string& x, const std::string& dim) {
  return node("s", "shard", '"' + x + '"', R"("group": "tp", "dim": )" + dim);
}

TEST(Canonicalize, AShardOfAGatherIsWhatWasGathered) {
  const std::string x = input("x", "4, 8");
  for (const auto& [gathered, cut] : {std::pair("0", "0"), {"1", "-1"}, {"-2", "0"}}) {
    PassContext context = sm80();
    const Graph graph = graph_of(
        x, gather_of("x", gathered) + "," + shard_of("w", cut) + "," + node("y", "neg", R"("s")"),
        R"("y", "s")");
    const Graph result = canonicalize(graph, context);
    verify(result);
    EXPECT_THAT(lines(result), ElementsAre("y = neg(x)", "-> y, x"));
    EXPECT_THAT(remarks_of(context, "s"),
                Contains("applied: this rank's chunk of 'w' is what was gathered"));
    expect_same_values(graph, result);
  }
}

TEST(Canonicalize, AGatherWithOtherReadersStaysWithoutItsShard) {
  const Graph graph =
      graph_of(input("x", R"("T", 4)"),
               gather_of("x", "0") + "," + shard_of("w", "0") + "," + node("y", "neg", R"("w")"),
               R"("y", "s")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("g = all_gather_into_tensor(x)", "w = wait_tensor(g)",
                                         "y = neg(w)", "-> y, x"));
  expect_same_values(graph, result);
}

TEST(Canonicalize, OtherShardsOfGathersStay) {
  const std::string inputs =
      input("x", "4, 8") + "," + input("o", "4, 8") + "," + input("q", "16, 8");
  const auto stays = [&](const std::string& nodes) {
    const Graph graph = graph_of(inputs, nodes, R"("y")");
    verify(graph);
    PassContext context = sm80();
    EXPECT_EQ(lines(canonicalize(graph, context)), lines(graph)) << nodes;
  };
  const std::string y = "," + node("y", "neg", R"("s")");
  stays(gather_of("x", "0") + "," + shard_of("w", "1") + y);
  // The chunk, or the whole, is another one by then.
  stays(gather_of("x", "0") + "," + node("c", "copy_", R"("x", "o")") + "," + shard_of("w", "0") +
        y);
  stays(gather_of("x", "0") + "," + shard_of("w", "0") + "," + node("c", "copy_", R"("w", "q")") +
        y);
  const std::string mesh =
      R"({"braid": 1, "name": "m", "groups": {"tp": {"size": 2, "ranks": [[0, 1], [2, 3]]},
          "dp": {"size": 2, "ranks": [[0, 2], [1, 3]]}}, "inputs": [)" +
      inputs + R"(], "nodes": [)" + gather_of("x", "0") + "," +
      node("s", "shard", R"("w")", R"("group": "dp", "dim": 0)") + R"(], "outputs": ["s"]})";
  PassContext context = sm80();
  EXPECT_EQ(lines(canonicalize(parse_graph(mesh), context)), lines(parse_graph(mesh)));
}

TEST(Canonicalize, AShardThatIsOverwrittenIsACopyOfWhatWasGathered) {
  const Graph graph = graph_of(input("x", "4, 8") + "," + input("o", "4, 8"),
                               gather_of("x", "0") + "," + shard_of("w", "0") + "," +
                                   node("c", "copy_", R"("s", "o")") + "," +
                                   node("y", "neg", R"("c")") + "," + node("z", "neg", R"("x")"),
                               R"("y", "z")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  verify(result);
  EXPECT_THAT(lines(result),
              ElementsAre("s = copy(x)", "c = copy_(s, o)", "y = neg(c)", "z = neg(x)", "-> y, z"));
  expect_same_values(graph, result);
}

TEST(Canonicalize, ViewsToOtherDTypesMerge) {
  const auto seen = [](const char* name, const char* x, const char* dtype) {
    return node(name, "view", '"' + std::string(x) + '"',
                R"("dtype": ")" + std::string(dtype) + '"');
  };
  const Graph graph =
      graph_of(input("x", "4, 2"),
               seen("a", "x", "u8") + "," + seen("b", "a", "bf16") + "," + seen("c", "b", "f32") +
                   "," + node("y", "neg", R"("c")") + "," + node("z", "neg", R"("b")"),
               R"("y", "z")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  verify(result);
  EXPECT_THAT(lines(result),
              ElementsAre("b = view_dtype(x)", "y = neg(x)", "z = neg(b)", "-> y, z"));
  expect_same_values(graph, result);
}

TEST(Canonicalize, TransposesCancel) {
  const Graph graph =
      graph_of(kX,
               node("a", "transpose", R"("x")", R"("dim0": 0, "dim1": 1)") + "," +
                   node("b", "transpose", R"("a")", R"("dim0": -1, "dim1": -2)") + "," +
                   node("c", "neg", R"("b")") + "," +
                   node("d", "transpose", R"("c")", R"("dim0": -1, "dim1": 0)") + "," +
                   node("e", "transpose", R"("d")", R"("dim0": 1, "dim1": 1)"),
               R"("e")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("c = neg(x)", "d = transpose(c)", "-> d"));
  EXPECT_EQ(*result.nodes()[1].attr<std::int64_t>("dim0"), 0);
  EXPECT_EQ(*result.nodes()[1].attr<std::int64_t>("dim1"), 1);
  EXPECT_THAT(remarks_of(context, "b"), ElementsAre("applied: undoes the transpose 'a'"));
  expect_same_values(graph, result);
}

TEST(Canonicalize, TransposesOfOtherDimsStay) {
  const Graph graph = graph_of(input("x", R"("T", 2, 3)"),
                               node("a", "transpose", R"("x")", R"("dim0": 0, "dim1": 1)") + "," +
                                   node("b", "transpose", R"("a")", R"("dim0": 1, "dim1": 2)"),
                               R"("b")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_EQ(lines(result), lines(graph));
  expect_same_values(graph, result);
}

TEST(Canonicalize, DimsInOneSpelling) {
  const Graph graph =
      graph_of(input("x", R"("T", 2, 3)"),
               node("a", "sum", R"("x")", R"("dim": [-1, 1], "keepdim": true)"), R"("a")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_THAT(*result.nodes()[0].attr<std::vector<std::int64_t>>("dim"), ElementsAre(1, 2));
  expect_same_values(graph, result);
}

TEST(Canonicalize, DimsOfCollectivesInOneSpelling) {
  const Graph graph =
      graph_of(input("x", R"("T", 2, 4)"),
               node("g", "all_gather_into_tensor", R"("x")", R"("dim": -2, "group": "tp")") + "," +
                   node("y", "wait_tensor", R"("g")") + "," +
                   node("s", "slice", R"("y")", R"("dim": -1, "end": 2)"),
               R"("s")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_EQ(*result.nodes()[0].attr<std::int64_t>("dim"), 1);
  EXPECT_EQ(*result.nodes()[2].attr<std::int64_t>("dim"), 2);
  expect_same_values(graph, result);
}

TEST(Canonicalize, CastToTheSameDtypeGoes) {
  const Graph graph = graph_of(kX,
                               node("a", "to", R"("x")", R"("dtype": "f32")") + "," +
                                   node("b", "to", R"("a")", R"("dtype": "bf16")"),
                               R"("b")");
  PassContext context = sm80();
  EXPECT_THAT(lines(canonicalize(graph, context)), ElementsAre("b = to(x)", "-> b"));
}

TEST(Canonicalize, RegionMarkersStay) {
  const Graph graph = graph_of(kX,
                               node("a", "mark_region_begin", R"("x")", R"("id": 0)") + "," +
                                   node("b", "neg", R"("a")") + "," +
                                   node("c", "mark_region_end", R"("b")", R"("id": 0)"),
                               R"("c")");
  PassContext context = sm80();
  EXPECT_EQ(lines(canonicalize(graph, context)), lines(graph));
  EXPECT_TRUE(context.remarks.empty());
}

TEST(Canonicalize, DeadNodesGoAndEqualNodesStay) {
  const Graph graph = graph_of(kX,
                               node("a", "neg", R"("x")") + "," + node("b", "neg", R"("x")") + "," +
                                   node("c", "exp", R"("a")") + "," + node("d", "silu", R"("c")") +
                                   "," + node("e", "add", R"("a", "b")"),
                               R"("e")");
  PassContext context = sm80();
  const Graph result = canonicalize(graph, context);
  EXPECT_THAT(lines(result), ElementsAre("a = neg(x)", "b = neg(x)", "e = add(a, b)", "-> e"));
  EXPECT_THAT(remarks_of(context, "d"), ElementsAre("applied: dead: no output needs it"));
  expect_same_values(graph, result);
}

TEST(Canonicalize, OutputMayBecomeAnInput) {
  const Graph graph =
      graph_of(kX, node("a", "view", R"("x")", R"("shape": ["T", 6])"), R"("a", "x")");
  PassContext context = sm80();
  EXPECT_THAT(lines(canonicalize(graph, context)), ElementsAre("-> x, x"));
}

/// The result of the passes, checked to be legal and to keep the values.
std::vector<std::string> after(const std::vector<std::string>& passes, const std::string& inputs,
                               const std::string& nodes, const std::string& outputs,
                               const std::vector<int>& worlds = {2, 4}) {
  std::vector<std::string> result;
  for (int world : worlds) {
    const Graph graph = graph_of(inputs, nodes, outputs, world);
    verify(graph);
    PassContext context = sm80();
    const Graph changed = run_passes(graph, passes, context);
    expect_same_values(graph, changed);
    result = lines(changed);
  }
  return result;
}
const std::vector<std::string> kAlone = {"canonicalize"};
const std::vector<std::string> kFunctional = {"functionalize", "canonicalize"};
const std::string kXY = input("x", "4") + "," + input("y", "4");
const std::string kSum = R"("reduce_op": "sum", "group": "tp")";

std::string wait(const std::string& name, const std::string& operand) {
  return node(name, "wait_tensor", '"' + operand + '"');
}
const std::string kCast = node("t", "to", R"("x")", R"("dtype": "f32")");

TEST(Canonicalize, ACastOfWhatIsOverwrittenIsACopy) {
  const std::string reduced =
      kCast + "," + node("c", "all_reduce_", R"("x")", kSum) + "," + wait("w", "c");
  EXPECT_THAT(after(kFunctional, kXY, reduced, R"("t")"),
              ElementsAre("t = copy(x)", "c = all_reduce(x)", "w = wait_tensor(c)",
                          "x_update = copy_(x, w)", "-> t"));
  EXPECT_THAT(after(kAlone, kXY, reduced, R"("t", "x")"),
              ElementsAre("t = copy(x)", "c = all_reduce_(x)", "w = wait_tensor(c)", "-> t, x"));
  EXPECT_THAT(after(kFunctional, kXY,
                    reduced + "," + node("v", "view", R"("t")", R"("shape": [2, 2])"), R"("v")"),
              ElementsAre("t = copy(x)", "c = all_reduce(x)", "w = wait_tensor(c)", "v = view(t)",
                          "x_update = copy_(x, w)", "-> v"));
  EXPECT_THAT(after(kFunctional, kXY,
                    kCast + "," + node("a", "copy_", R"("x", "y")") + "," +
                        node("b", "copy_", R"("y", "t")"),
                    R"("x", "y")"),
              Contains("t = copy(x)"));
}

TEST(Canonicalize, ACastThatIsOverwrittenIsACopy) {
  EXPECT_THAT(after(kAlone, kXY, kCast + "," + node("a", "copy_", R"("t", "y")"), R"("x", "t")"),
              ElementsAre("t = copy(x)", "a = copy_(t, y)", "-> x, t"));
}

TEST(Canonicalize, OverOneRankWhatIsOverwrittenIsCopied) {
  const std::string overwrite = "," + node("a", "copy_", R"("x", "y")");
  for (const auto& passes : {kAlone, kFunctional}) {
    EXPECT_THAT(after(passes, kXY, all_reduce("c", "x") + "," + wait("w", "c") + overwrite,
                      R"("w", "x")", {1}),
                Contains("c = copy(x)"));
    EXPECT_THAT(after(passes, kXY,
                      node("c", "broadcast", R"("x")", R"("src": 0, "group": "tp")") + "," +
                          wait("w", "c") + overwrite,
                      R"("w")", {1}),
                Contains("c = copy(x)"));
    EXPECT_THAT(after(passes, kXY,
                      node("c", "all_reduce_coalesced", R"("y", "x")", kSum) + "," +
                          wait("v", "c:0") + "," + wait("w", "c:1") + overwrite,
                      R"("v", "w")", {1}),
                Contains("c_1 = copy(x)"));
  }
}

TEST(Canonicalize, OverOneRankInPlaceFormsAreTheMemoryItself) {
  EXPECT_THAT(after(kAlone, kXY,
                    node("c", "all_reduce_", R"("x")", kSum) + "," + wait("w", "c") + "," +
                        node("z", "neg", R"("w")"),
                    R"("z", "x")", {1}),
              ElementsAre("z = neg(x)", "-> z, x"));
  EXPECT_THAT(after(kAlone, kXY,
                    node("c", "all_gather_into_tensor_out", R"("x", "y")", R"("group": "tp")") +
                        "," + wait("w", "c"),
                    R"("y")", {1}),
              ElementsAre("c = copy_(y, x)", "-> y"));
}

TEST(Canonicalize, ADimFromTheEndOfOperandsOfSeveralRanksStays) {
  const std::string inputs = input("x", "4, 8") + "," + input("y", "2, 4, 8");
  for (const std::string op : {"reduce_scatter_tensor", "all_gather_into_tensor"}) {
    const std::string attrs = op[0] == 'r' ? kSum : R"("group": "tp")";
    const std::string nodes =
        node("c", op + "_coalesced", R"("x", "y")", attrs + R"(, "dim": -1)") + "," +
        wait("v", "c:0") + "," + wait("w", "c:1");
    EXPECT_THAT(after(kAlone, inputs, nodes, R"("v", "w")"),
                ElementsAre("c:0, c:1 = " + op + "_coalesced(x, y)", "v = wait_tensor(c:0)",
                            "w = wait_tensor(c:1)", "-> v, w"));
    after({"canonicalize", "lower_collectives", "fuse"}, inputs, nodes, R"("v", "w")");
  }
}

TEST(Canonicalize, TheUnusedResultOfACoalescedCollectiveIsStillWaitedFor) {
  const std::string nodes = node("c", "all_reduce_coalesced", R"("x", "y")", kSum) + "," +
                            wait("v", "c:0") + "," + wait("w", "c:1") + "," + wait("again", "c:1");
  EXPECT_THAT(after(kAlone, kXY, nodes, R"("v")"),
              ElementsAre("c:0, c:1 = all_reduce_coalesced(x, y)", "v = wait_tensor(c:0)",
                          "w = wait_tensor(c:1)", "-> v"));
  EXPECT_THAT(after(kAlone, kXY, nodes, R"("again")"),
              ElementsAre("c:0, c:1 = all_reduce_coalesced(x, y)", "v = wait_tensor(c:0)",
                          "again = wait_tensor(c:1)", "-> again"));
  EXPECT_THAT(after(kAlone, kXY, nodes, R"("x")"), ElementsAre("-> x"));
}

TEST(Canonicalize, CollectivesThatOverwriteTheirOperandStay) {
  const std::string inputs = kXY + "," + input("o", "16");
  const std::vector<std::string> collectives = {
      node("c", "all_reduce_", R"("x")", kSum) + "," + wait("w", "c"),
      node("c", "broadcast_", R"("x")", R"("src": 1, "group": "tp")") + "," + wait("w", "c"),
      node("c", "all_gather_into_tensor_out", R"("x", "o")", R"("group": "tp")") + "," +
          wait("w", "c"),
      node("c", "all_reduce_coalesced_", R"("x", "y")", kSum) + "," + wait("v", "c:0") + "," +
          wait("w", "c:1")};
  for (const std::string& nodes : collectives) {
    const Graph graph = graph_of(inputs, nodes, R"("x", "y", "o")");
    EXPECT_EQ(after(kAlone, inputs, nodes, R"("x", "y", "o")", {4}), lines(graph));
  }
}

TEST(Canonicalize, AWaitForWhatNoCollectiveComputesGoes) {
  EXPECT_THAT(after(kAlone, kXY,
                    wait("v", "x") + "," + node("z", "neg", R"("v")") + "," + wait("w", "z") + "," +
                        all_reduce("c", "w") + "," + wait("s", "c") + "," + wait("t", "s"),
                    R"("t")"),
              ElementsAre("z = neg(x)", "c = all_reduce(z)", "s = wait_tensor(c)", "-> s"));
}

// A kernel replaces elements at any time, and has one input for what it reads twice.
TEST(Canonicalize, AnUpdateReadsItsOwnTensorFromACopy) {
  const auto scatter = [](const std::string& index, const std::string& source) {
    return after(
        kAlone, input("x", "4, 4") + R"(, {"name": "i", "dtype": "i64", "shape": [4, 4]})",
        node("f", "view", R"("x")", R"("shape": [4, 4, 1])") + "," +
            node("v", "view", R"("f")", R"("shape": [4, 4])") + "," +
            node("t", "transpose", R"("x")", R"("dim0": 0, "dim1": 1)") + "," +
            node("u", "scatter", '"' + index + R"(", "i", ")" + source + '"', R"("dim": 1)"),
        R"("u")");
  };
  EXPECT_THAT(scatter("x", "x"),
              ElementsAre("u_copy = copy(x)", "u = scatter(x, i, u_copy)", "-> u"));
  EXPECT_THAT(scatter("x", "v"),
              ElementsAre("u_copy = copy(x)", "u = scatter(x, i, u_copy)", "-> u"));
  EXPECT_THAT(scatter("x", "t"), ElementsAre("t = transpose(x)", "u = scatter(x, i, t)", "-> u"));
}

TEST(Canonicalize, RandomGraphsKeepTheirValues) {
  for (int world : {1, 2, 4}) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(seed);
      const Graph graph = random_graph(seed, 25, world);
      PassContext context = sm80();
      const Graph once = canonicalize(graph, context);
      verify(once);
      expect_same_values(graph, once, seed);
      context.remarks.clear();
      EXPECT_EQ(lines(canonicalize(once, context)), lines(once));
      EXPECT_TRUE(context.remarks.empty());
    }
  }
}

}  // namespace
}  // namespace braid::testing
