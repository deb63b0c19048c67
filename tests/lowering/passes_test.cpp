#include "lowering/passes.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "braid/error.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;

const std::string kX = input("x", R"("T", 6)");

TEST(Passes, RunInTheOrderGiven) {
  const Graph graph =
      graph_of(kX, all_reduce("c", "x") + "," + node("s", "wait_tensor", R"("c")"), R"("s")");
  PassContext context = in_one_shot();
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
    EXPECT_THAT(error.what(), HasSubstr("\"fues\""));
    EXPECT_THAT(error.what(),
                HasSubstr("canonicalize, sequence_parallel, micro_pipeline, split_reductions, "
                          "lower_collectives, split_joined_matmuls, fuse"));
  }
}

TEST(Passes, AreDescribedByTheirRecords) {
  for (const Pass* pass : all_passes()) {
    EXPECT_FALSE(pass->summary.empty()) << pass->name;
    EXPECT_EQ(pass->summary.find('\n'), std::string_view::npos) << pass->name;
  }
  const std::string path = BRAID_SOURCE_DIR "/docs/passes.md";
  if (std::getenv("BRAID_UPDATE_DOCS") != nullptr) std::ofstream(path) << describe_passes();
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_EQ(page.str(), describe_passes()) << "BRAID_UPDATE_DOCS=1 writes docs/passes.md anew";
}

TEST(Passes, ThatChangeNothingGiveNothing) {
  const Graph graph = graph_of(kX, node("a", "neg", R"("x")"), R"("a")");
  PassContext context = sm80();
  for (const Pass* pass : all_passes()) {
    EXPECT_EQ(pass->run(graph, context).has_value(), pass == &fuse) << pass->name;
  }
}

TEST(Passes, AGraphIsVerifiedBeforeThem) {
  Graph graph("no outputs");
  graph.add_input({"x", {DType::kF32, {4}}});
  PassContext context = sm80();
  EXPECT_THROW(static_cast<void>(lower(graph, context)), Error);
}

}  // namespace
}  // namespace braid::testing
