#include "lowering/rewrite.h"

#include <gtest/gtest.h>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

// A node is added under the name of one with several results, which is copied after it.
TEST(Rewriter, ANodeWithSeveralResultsKeepsItsName) {
  const Graph graph =
      graph_of(R"({"name": "x", "dtype": "f32", "shape": [4, 6]})",
               node("parts", "split", R"("x")", R"("split_size": [3], "dim": 1)"), R"("parts:0")");
  Rewriter rewriter(graph);
  EXPECT_EQ(rewriter.fresh_name("parts"), "parts1");
  EXPECT_EQ(rewriter.fresh_name("parts", 2), "parts1");
  (void)rewriter.add("parts", "neg", {rewriter(graph.input_values()[0])});
  rewriter.copy(graph.nodes()[0]);
  EXPECT_NO_THROW(verify(rewriter.finish()));
}

}  // namespace
}  // namespace braid::testing
