#include <gmock/gmock.h>

#include <algorithm>

#include "braid/reference.h"
#include "lowering/lowering_testing.h"
#include "lowering/random_tp_graph.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

const std::string kInputs =
    input("x", "4, 4") + "," + input("y", "4, 4") + "," + input("z", "4, 4");

std::string wait(const std::string& name, const std::string& of) {
  return node(name, "wait_tensor", '"' + of + '"');
}
std::string neg(const std::string& name, const std::string& of) {
  return node(name, "neg", '"' + of + '"');
}
/// The same node with an estimate.
std::string taking(int ns, std::string node) {
  node.insert(node.size() - 1, R"(, "hints": {"runtime_ns": )" + std::to_string(ns) + "}");
  return node;
}

/// The order of the nodes after the pass, which leaves what it gave alone.
std::vector<std::string> order_of(const Pass& pass, const std::string& nodes,
                                  const std::string& outputs) {
  const Graph graph = graph_of(kInputs, nodes, outputs);
  verify(graph);
  PassContext context = sm80();
  const Graph result = pass(graph, context);
  verify(result);
  expect_same_values(graph, result);
  EXPECT_EQ(node_names(pass(result, context)), node_names(result)) << "a second time";
  return node_names(result);
}

// A3-20, A3-23
TEST(ListSchedule, WaitsSinkBehindAllThatDoesNotNeedThem) {
  const std::string nodes = all_reduce("c", "x") + "," + wait("w", "c") + "," + neg("s", "w") +
                            "," + neg("a", "y") + "," + neg("b", "a");
  EXPECT_THAT(order_of(sink_waits, nodes, R"("s", "b")"), ElementsAre("c", "a", "b", "w", "s"));
  PassContext context = sm80();
  sink_waits(graph_of(kInputs, nodes, R"("s", "b")"), context);
  EXPECT_THAT(remarks_of(context, "c"),
              ElementsAre("applied: 2 compute nodes from its start to its first wait; 0 before"));
}

// A3-21, A3-23: what leads to the first collective comes first, and collectives keep their order.
TEST(ListSchedule, CollectivesRiseWithWhatLeadsToThem) {
  const std::string nodes = neg("a", "y") + "," + neg("p", "z") + "," + all_reduce("c", "p") + "," +
                            all_reduce("d", "x") + "," + wait("w", "c") + "," + wait("v", "d");
  EXPECT_THAT(order_of(raise_comms, nodes, R"("a", "w", "v")"),
              ElementsAre("p", "c", "d", "a", "w", "v"));
}

// A3-22, A3-23: two of 60 ns hide 100 ns, then the next collective starts.
TEST(ListSchedule, ComputeIsSpreadOverTheCollectives) {
  const std::string nodes = taking(100, all_reduce("c", "x")) + "," + wait("w", "c") + "," +
                            taking(100, all_reduce("d", "y")) + "," + wait("v", "d") + "," +
                            taking(60, neg("a", "z")) + "," + taking(60, neg("b", "z")) + "," +
                            taking(60, neg("e", "z")) + "," + taking(60, neg("f", "z"));
  EXPECT_THAT(order_of(reorder_compute_for_overlap, nodes, R"("w", "v", "a", "b", "e", "f")"),
              ElementsAre("c", "a", "b", "d", "e", "f", "w", "v"));
}

// A3-23, with write-after-read and write-after-write: memory that is overwritten holds nodes back.
TEST(ListSchedule, AccessesToOverwrittenMemoryKeepTheirOrder) {
  // The copy overwrites what the collective reads until its wait; s reads it before.
  const std::string after_wait = all_reduce("c", "x") + "," + neg("s", "x") + "," + wait("w", "c") +
                                 "," + node("o", "copy_", R"("x", "y")") + "," + neg("a", "y");
  EXPECT_THAT(order_of(sink_waits, after_wait, R"("s", "w", "o", "a")"),
              ElementsAre("c", "s", "a", "w", "o"));
  // In place: who reads x afterwards reads what the wait gives.
  const std::string in_place =
      neg("s", "x") + "," +
      node("c", "all_reduce_", R"("x")", R"("reduce_op": "sum", "group": "tp")") + "," +
      wait("w", "c") + "," + neg("t", "w") + "," + neg("a", "y");
  EXPECT_THAT(order_of(raise_comms, in_place, R"("s", "t", "a")"),
              ElementsAre("s", "c", "w", "t", "a"));
  EXPECT_THAT(order_of(sink_waits, in_place, R"("s", "t", "a")"),
              ElementsAre("s", "c", "a", "w", "t"));
}

// A3-24: e needs nothing of c or d, but keeps its place among the collectives.
TEST(ListSchedule, CollectivesKeepTheirOrder) {
  const std::string nodes = all_reduce("c", "x") + "," + wait("w", "c") + "," + neg("s", "w") +
                            "," + all_reduce("d", "s") + "," + all_reduce("e", "y") + "," +
                            wait("v", "d") + "," + wait("u", "e");
  EXPECT_THAT(order_of(sink_waits, nodes, R"("v", "u")"),
              ElementsAre("c", "w", "s", "d", "e", "v", "u"));
}

TEST(ListSchedule, RandomGraphsMeanTheSame) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = random_tp_graph(seed, 2, seed % 2 == 1);
    for (const Pass* pass : {&sink_waits, &raise_comms, &reorder_compute_for_overlap}) {
      PassContext context = sm80();
      const Graph result = (*pass)(graph, context);
      verify(result);
      std::vector<std::string> before = node_names(graph);
      std::vector<std::string> after = node_names(result);
      if (before != after) ++moved;
      EXPECT_EQ(context.remarks.empty(), before == after);
      std::sort(before.begin(), before.end());
      std::sort(after.begin(), after.end());
      EXPECT_EQ(before, after);
      const Bindings bindings{{"t", 2}};
      const RankTensors inputs = random_inputs(graph, bindings, seed);
      const RankTensors expected = evaluate(graph, inputs, bindings);
      const RankTensors got = evaluate(result, inputs, bindings);
      for (std::size_t rank = 0; rank < got.size(); ++rank) {
        for (std::size_t i = 0; i < got[rank].size(); ++i) {
          EXPECT_EQ(got[rank][i].data, expected[rank][i].data) << pass->name;
        }
      }
    }
  }
  EXPECT_GT(moved, 200);
}

}  // namespace
}  // namespace braid::testing
