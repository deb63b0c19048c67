// A training step of fully sharded data parallelism, from the graph of an export to its kernels.

#include "lowering/fsdp_testing.h"
#include "run/run_graph.h"

namespace braid {
namespace {

class FsdpStep : public ::testing::TestWithParam<int> {};

TEST_P(FsdpStep, RunsCleanAndEqualsTheReferenceAndUnfused) {
  const Graph graph = testing::fsdp_training_step(GetParam());
  EXPECT_TRUE(testing::runs_clean_as_unfused(graph, {{"T", 5}}, 5));
}

INSTANTIATE_TEST_SUITE_P(Ranks, FsdpStep, ::testing::Values(2, 4));

}  // namespace
}  // namespace braid
