#include "lowering/analysis/replicated.h"

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

/// The names of the values that are the same on all ranks of the group.
std::vector<std::string> same_on(const Graph& graph, std::string_view group) {
  std::vector<std::string> names;
  const std::vector<bool> same = replicated_values(graph, group);
  for (std::size_t v = 0; v < same.size(); ++v) {
    if (same[v]) names.push_back(graph.values()[v].name);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(Replicated, InputsSayItAndNodesPassItOn) {
  const Graph graph = graph_of(input("x", "4", "") + "," + input("p", "4"),
                               node("a", "neg", R"("x")") + "," + node("b", "add", R"("a", "p")") +
                                   "," + node("k", "full", "", R"("value": 1, "dtype": "f32")"),
                               R"("b")");
  EXPECT_EQ(same_on(graph, "tp"), (Names{"x", "a", "k"}));
}

TEST(Replicated, OnlyCollectivesOfTheGroupItself) {
  const Graph graph = parse_graph(
      R"({"braid": 1, "name": "mesh",
          "groups": {"tp": {"size": 2, "ranks": [[0, 1], [2, 3]]},
                     "dp": {"size": 2, "ranks": [[0, 2], [1, 3]]}},
          "inputs": [)" +
      input("p", "4") + R"(], "nodes": [)" + all_reduce("t", "p") + "," +
      node("t_", "wait_tensor", R"("t")") + "," + all_reduce("d", "p", "dp") + "," +
      node("d_", "wait_tensor", R"("d")") + "," +
      node("g", "all_gather_into_tensor", R"("p")", R"("group": "tp")") + "," +
      node("g_", "wait_tensor", R"("g")") + "," +
      node("s", "reduce_scatter_tensor", R"("t_")", R"("group": "tp", "reduce_op": "sum")") + "," +
      node("s_", "wait_tensor", R"("s")") + R"(], "outputs": ["d_", "g_", "s_"]})");
  EXPECT_EQ(same_on(graph, "tp"), (Names{"t", "t_", "g", "g_"}));
  EXPECT_EQ(same_on(graph, "dp"), (Names{"d", "d_"}));
}

// Equal operands, and every rank takes its own rows of them.
TEST(Replicated, ARanksOwnChunkIsNot) {
  const Graph graph = graph_of(input("x", "4, 4", ""),
                               node("s", "shard", R"("x")", R"("group": "tp")") + "," +
                                   node("y", "neg", R"("s")") + "," +
                                   node("f", "fused_matmul_reduce_scatter", R"("x", "x")",
                                        R"("group": "tp", "reduce_op": "sum", "scatter_dim": 0)"),
                               R"("y", "f")");
  EXPECT_EQ(same_on(graph, "tp"), (Names{"x"}));
}

TEST(Replicated, OverwrittenMemoryIsNot) {
  const Graph graph = graph_of(
      input("x", "4", "") + "," + input("q", "4", "") + "," + input("p", "4"),
      node("v", "view", R"("x")", R"("shape": [2, 2])") + "," + node("w", "neg", R"("x")") + "," +
          node("c", "copy_", R"("x", "p")") + "," + node("a", "neg", R"("q")") + "," +
          node("k", "copy_", R"("a", "p")") + "," + node("y", "neg", R"("a")"),
      R"("w", "y")");
  EXPECT_EQ(same_on(graph, "tp"), (Names{"q"}));
}

}  // namespace
}  // namespace braid::testing
