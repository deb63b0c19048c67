#include "lowering/passes.h"

#include <gmock/gmock.h>

#include "braid/error.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

const std::string kX = input("x", R"("T", 6)");

TEST(Passes, RunInTheOrderGiven) {
  const Graph graph =
      graph_of(kX, all_reduce("c", "x") + "," + node("s", "wait_tensor", R"("c")"), R"("s")");
  PassContext context = sm80();
  const std::vector<std::string> names{"canonicalize", "split_reductions", "lower_collectives",
                                       "fuse"};
  const Graph result = run_passes(graph, names, context);
  EXPECT_THAT(lines(result),
              ::testing::ElementsAre("c:0@tp, c:1 = collective{copy+all_reduce}(x)", "-> c:1"));
  EXPECT_EQ(lines(run_passes(graph, {}, context)), lines(graph));
}

TEST(Passes, UnknownNamesAreRefusedWithTheList) {
  const Graph graph = graph_of(kX, node("a", "neg", R"("x")"), R"("a")");
  PassContext context = sm80();
  const std::vector<std::string> names{"fues"};
  try {
    run_passes(graph, names, context);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("'fues'"));
    EXPECT_THAT(error.what(),
                HasSubstr("canonicalize, sequence_parallel, micro_pipeline, split_reductions, "
                          "lower_collectives, fuse"));
  }
}

}  // namespace
}  // namespace braid::testing
