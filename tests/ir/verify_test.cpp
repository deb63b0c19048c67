#include "support.h"

namespace braid {
namespace {

Attrs attributes(const char* algorithm = "") {
  return {{"reduce_op", std::string("sum")},
          {"group", std::string("tp")},
          {"algorithm", std::string(algorithm)}};
}

/// all_reduce "c" of the input, value 1.
Graph with_collective() {
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("c", "all_reduce", {0}, attributes());
  return graph;
}

/// The same, lowered, for the negation of the input, value 1.
Graph with_lowered_collective() {
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("n", "neg", {0});
  graph.add_node("c", "all_reduce", {1}, attributes("one_shot"));
  graph.add_output(2);
  return graph;
}

std::string verify_error(const Graph& graph) {
  return error_of([&] { verify(graph); });
}

TEST(Verify, AcceptsAWaitedCollective) {
  Graph graph = with_collective();
  graph.add_node("s", "wait_tensor", {1});
  graph.add_node("t", "wait_tensor", {2});  // a wait on anything else is the identity
  graph.add_output(3);
  EXPECT_EQ(verify_error(graph), "no error");
}

TEST(Verify, RefusesAUseWithoutAWait) {
  Graph graph = with_collective();
  graph.add_node("s", "wait_tensor", {1});
  graph.add_node("n", "neg", {1});
  graph.add_output(2);
  EXPECT_TRUE(is_error(verify_error(graph), "/nodes/2/inputs",
                       "neg \"n\" uses the result of all_reduce \"c\" before a wait"));
}

TEST(Verify, RefusesAnUnwaitedCollective) {
  Graph graph = with_collective();
  graph.add_output(0);
  EXPECT_TRUE(is_error(verify_error(graph), "/nodes/0",
                       "nothing waits for the result \"c\" of all_reduce"));
}

TEST(Verify, NamesTheResultThatNothingWaitsFor) {
  Graph graph = with_collective();
  graph.add_node("s", "wait_tensor", {1});
  const NodeId both =
      graph.add_node("d", "all_reduce_coalesced", {0, 0},
                     {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
  graph.add_node("t", "wait_tensor", {graph.node(both).outputs[0]});
  graph.add_output(2);
  EXPECT_TRUE(is_error(verify_error(graph), "/nodes/2",
                       "nothing waits for the result \"d:1\" of all_reduce_coalesced"));
}

TEST(Verify, RefusesACollectiveAsOutput) {
  Graph graph = with_collective();
  graph.add_node("s", "wait_tensor", {1});
  graph.add_output(2);
  graph.add_output(1);
  EXPECT_TRUE(is_error(verify_error(graph), "/outputs/1",
                       "\"c\" is the result of all_reduce without a wait"));
}

TEST(Verify, ALoweredCollectiveNeedsNoWait) {
  Graph graph = with_lowered_collective();
  graph.set_comm_group(1, "tp");
  EXPECT_EQ(verify_error(graph), "no error");
}

TEST(Verify, ALoweredCollectiveReadsTheArena) {
  EXPECT_TRUE(is_error(verify_error(with_lowered_collective()), "/nodes/1/inputs/0",
                       "the other ranks of \"tp\" read \"n\", whose comm_group is \"\""));
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.set_comm_group(0, "tp");
  graph.add_node("v", "view", {0}, {{"shape", Shape{2, 2}}});
  graph.set_comm_group(1, "tp");
  graph.add_node("c", "all_reduce", {1}, attributes("one_shot"));
  graph.add_output(2);
  EXPECT_TRUE(is_error(verify_error(graph), "/nodes/1/inputs/0",
                       "read \"v\", which lies in the caller's memory"));
}

TEST(Verify, AMovedInputIsComputed) {
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("s", "slice", {0}, {{"end", std::int64_t{2}}});
  graph.set_comm_group(1, "tp");
  graph.add_node("c", "all_reduce", {1}, attributes("one_shot"));
  graph.add_output(2);
  EXPECT_EQ(verify_error(graph), "no error");
}

TEST(Verify, AKernelReadsTheArenaWhereItsBodyDoes) {
  auto body = std::make_shared<Graph>(graph_with({{DType::kF32, {4}}}));
  body->set_comm_group(0, "tp");
  body->add_node("c", "all_reduce", {0}, attributes("one_shot"));
  body->add_output(1);
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("n", "neg", {0});
  graph.add_node("k", "kernel", {1}, {{"body", std::shared_ptr<const Graph>(body)}});
  graph.add_output(2);
  EXPECT_TRUE(is_error(verify_error(graph), "/nodes/1/inputs/0", "expected a computed value with"));
  graph.set_comm_group(1, "tp");
  EXPECT_EQ(verify_error(graph), "no error");
}

TEST(Verify, RefusesAGraphWithoutOutputs) {
  EXPECT_TRUE(is_error(verify_error(graph_with({})), "/outputs", "at least one output"));
}

TEST(Verify, LooksIntoBodies) {
  auto body = std::make_shared<Graph>(with_collective());
  body->add_output(1);
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("k", "kernel", {0}, {{"body", std::shared_ptr<const Graph>(body)}});
  graph.add_output(1);
  EXPECT_TRUE(is_error(verify_error(graph), "/nodes/0/attrs/body/nodes/0", "nothing waits"));
}

TEST(Verify, GroupsMustAgreeOnTheRanks) {
  Graph graph = graph_with({{DType::kF32, {4}}}, 2);
  graph.add_group("odd", {3, true, {}});
  graph.add_output(0);
  EXPECT_TRUE(is_error(verify_error(graph), "/groups/tp", "2 of 3 ranks"));
}

}  // namespace
}  // namespace braid
