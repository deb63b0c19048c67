#include "lowering/schedule/critical_path.h"

#include <gmock/gmock.h>

#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> path_of(const Graph& graph) {
  const std::vector<NodeEstimate> estimates = estimate_nodes(graph, Target{});
  std::vector<std::string> names;
  for (const NodeId id : critical_path(overlap_timeline(graph, estimates), estimates)) {
    names.push_back(graph.node(id).name);
  }
  return names;
}

/// A collective beside `a`, which takes `comp`.
Graph beside(double comm, double comp) {
  return Costs()
      .input("x", 8)
      .compute("before", {"x"}, 8, 5)
      .collective("c", "before", comm)
      .compute("a", {"x"}, 8, comp)
      .wait("w", "c")
      .compute("after", {"w"}, 8, 7)
      .graph({"after", "a"});
}

TEST(CriticalPath, GoesThroughTheLongerOfBoth) {
  EXPECT_THAT(path_of(beside(100, 30)), ElementsAre("before", "c", "after"));
  EXPECT_THAT(path_of(beside(30, 100)), ElementsAre("before", "a", "after"));
}

TEST(CriticalPath, FollowsTheLinks) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .collective("d", "x", 50)
                          .compute("a", {"x"}, 8, 120)
                          .wait("w", "c")
                          .wait("v", "d")
                          .compute("after", {"v"}, 8, 7)
                          .graph({"after", "w", "a"});
  EXPECT_THAT(path_of(graph), ElementsAre("c", "d", "after"));
}

}  // namespace
}  // namespace braid::testing
