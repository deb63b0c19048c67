#include "lowering/schedule/exposure.h"

#include <gtest/gtest.h>

#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

/// The compute beside the collective or wait of that name, and the course of the walk.
struct Beside {
  double comm_ns, comp_ns;
  std::string text;
  bool operator==(const Beside&) const = default;
};

Beside beside(const Graph& graph, const std::string& name, std::size_t window = 100) {
  const std::vector<NodeEstimate> estimates = estimate_nodes(graph, Target{});
  const Predecessors predecessors(graph);
  Exposures exposures(graph, estimates, predecessors, window);
  const NodeId id = graph.value(*graph.find(name)).producer;
  const auto at = static_cast<std::size_t>(id);
  std::string text;
  const Exposure found = estimates[at].wait
                             ? exposures.of_wait(given_order(graph), at, &text)
                             : exposures.of_collective(given_order(graph), at, &text);
  return {found.comm_ns, found.comp_ns, text};
}

// A3-15
TEST(Exposure, OfACollectiveIsWhatRunsUntilSomebodyNeedsIt) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .compute("a", {"x"}, 8, 10)
                          .collective("d", "x", 70)
                          .compute("b", {"x"}, 8, 20)
                          .wait("w", "c")
                          .compute("e", {"x"}, 8, 40)
                          .wait("v", "d")
                          .graph({"w", "v"});
  EXPECT_EQ(beside(graph, "c"), (Beside{100, 30, "+a[10]+b[20]"}));
  EXPECT_EQ(beside(graph, "d"), (Beside{70, 60, "+b[20]+w[0]+e[40]"}));
  EXPECT_EQ(beside(graph, "c", 1), (Beside{100, 10, "+a[10]"}));
}

TEST(Exposure, OfACollectiveEndsAtASynchronousOne) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("m", {"x"}, 8, 0)
                          .collective("c", "x", 100)
                          .compute("a", {"x"}, 8, 10)
                          .synchronous("s", "m", 30)
                          .compute("b", {"x"}, 8, 20)
                          .wait("w", "c")
                          .graph({"w", "s"});
  EXPECT_EQ(beside(graph, "c"), (Beside{100, 10, "+a[10]"}));
  // A3-16: and what came before it is not beside what the wait waits for alone.
  EXPECT_EQ(beside(graph, "w").comp_ns, 10);
}

// behind the wait of a collective that started meanwhile, compute is beside that one's tail.
TEST(Exposure, TheSameComputeIsNotBesideTwoCollectives) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .collective("c", "x", 100)
                          .collective("d", "x", 70)
                          .compute("a", {"x"}, 8, 10)
                          .wait("v", "d")
                          .compute("b", {"x"}, 8, 20)
                          .wait("w", "c")
                          .graph({"w", "v"});
  EXPECT_EQ(beside(graph, "c"), (Beside{100, 10, "+a[10]->W[v]"}));
}

// A3-16
TEST(Exposure, OfAWaitIsWhatRunsSinceItsCollective) {
  const Graph graph = Costs()
                          .input("x", 8)
                          .compute("before", {"x"}, 8, 5)
                          .collective("c", "x", 100)
                          .compute("a", {"x"}, 8, 10)
                          .collective("d", "x", 70)
                          .compute("b", {"x"}, 8, 20)
                          .wait("v", "d")
                          .compute("e", {"x"}, 8, 40)
                          .wait("w", "c")
                          .wait("of_an_input", "x")
                          .graph({"w", "v"});
  EXPECT_EQ(beside(graph, "v"), (Beside{70, 20, "+b[20]"}));
  // d was waited for meanwhile: only what ran before it is beside c alone.
  EXPECT_EQ(beside(graph, "w"), (Beside{100, 10, "+a[10]"}));
  EXPECT_EQ(beside(graph, "of_an_input").comm_ns, 0);
  EXPECT_EQ(beside(graph, "of_an_input").comp_ns, 5);
}

}  // namespace
}  // namespace braid::testing
