#include "lowering/analysis/unexposed.h"

#include <gmock/gmock.h>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;

std::string gather(const std::string& name, const std::string& x) {
  return node(name, "all_gather_into_tensor", '"' + x + '"', R"("group": "tp")") + "," +
         node(name + "_w", "wait_tensor", '"' + name + '"');
}
std::string mm(const std::string& name, const std::string& a) {
  return node(name, "mm", '"' + a + R"(", "w")");
}
const std::string kInputs =
    input("x", "4, 4") + "," + input("y", "4, 4") + "," + input("w", "4, 4");

std::vector<std::string> hidden(const std::string& nodes, const std::string& outputs) {
  const Graph graph = graph_of(kInputs, nodes, outputs);
  std::vector<std::string> pairs;
  for (const auto& [collective, matmul] : unexposed_collectives(graph)) {
    pairs.push_back(graph.node(collective).name + " by " + graph.node(matmul).name);
  }
  return pairs;
}

// A0-18
TEST(Unexposed, AMatmulThatIsNotRelatedHidesOneCollective) {
  EXPECT_THAT(hidden(gather("g", "x") + "," + gather("h", "x") + "," + mm("m", "y"),
                     R"("g_w", "h_w", "m")"),
              ElementsAre("g by m"));
  EXPECT_THAT(
      hidden(gather("g", "x") + "," + gather("h", "x") + "," + mm("m", "y") + "," + mm("n", "y"),
             R"("g_w", "h_w", "m", "n")"),
      ElementsAre("g by m", "h by n"));
}

// A0-18
TEST(Unexposed, MatmulsThatFeedOrNeedItDoNotHideIt) {
  EXPECT_THAT(hidden(mm("m", "x") + "," + node("r", "relu", R"("m")") + "," + gather("g", "r") +
                         "," + node("s", "neg", R"("g_w")") + "," + node("n", "mm", R"("s", "w")"),
                     R"("n")"),
              ElementsAre());
  // A sibling reads what the gather reads, and is free to run beside it.
  EXPECT_THAT(hidden(node("r", "relu", R"("x")") + "," + gather("g", "r") + "," + mm("n", "r"),
                     R"("n", "g_w")"),
              ElementsAre("g by n"));
  EXPECT_THAT(
      hidden(mm("m", "x") + "," + all_reduce("c", "x") + "," + node("c_w", "wait_tensor", R"("c")"),
             R"("m", "c_w")"),
      ElementsAre());
}

}  // namespace
}  // namespace braid::testing
