#include "support.h"

namespace braid {
namespace {

/// all_reduce "c" of the input, value 1.
Graph with_collective(const char* algorithm = "") {
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("c", "all_reduce", {0},
                 {{"reduce_op", std::string("sum")},
                  {"group", std::string("tp")},
                  {"algorithm", std::string(algorithm)}});
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
                       "nothing waits for the result of all_reduce \"c\""));
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
  Graph graph = with_collective("one_shot");
  graph.add_output(1);
  EXPECT_EQ(verify_error(graph), "no error");
}

TEST(Verify, RefusesAGraphWithoutOutputs) {
  EXPECT_TRUE(is_error(verify_error(graph_with({})), "/outputs", "at least one output"));
}

TEST(Verify, LooksIntoBodies) {
  auto body = std::make_shared<Graph>(with_collective());
  body->add_output(1);
  Graph graph = graph_with({{DType::kF32, {4}}});
  graph.add_node("k", "kernel", {0},
                 {{"body", std::shared_ptr<const Graph>(body)}, {"template", std::string("x")}});
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
