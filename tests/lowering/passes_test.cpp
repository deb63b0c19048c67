#include "lowering/passes.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

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
                          "spread_attention, lower_collectives, split_joined_matmuls, fuse"));
  }
}

std::string refusal_of(PassConfig config, std::string_view name, std::string_view value) {
  try {
    set_pass_option(config, name, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Passes, TakeOptionsByName) {
  PassConfig config;
  set_pass_option(config, "all-reduce", "ll");
  set_pass_option(config, "batch-invariant", "false");
  set_pass_option(config, "sequence-dim", "2");
  set_pass_option(config, "enable", "sink_waits,raise_comms");
  EXPECT_EQ(config.all_reduce, "ll");
  EXPECT_FALSE(config.batch_invariant);
  EXPECT_EQ(config.sequence_dim, 2);
  EXPECT_THAT(config.enable, ::testing::ElementsAre("sink_waits", "raise_comms"));
  EXPECT_TRUE(config.options.empty());  // all of these are members
  set_pass_option(config, "overlap-peak-memory-budget", "0.25");
  EXPECT_EQ(config.options.at("overlap-peak-memory-budget"), "0.25");
}

TEST(Passes, RefuseOptionsThatDoNotFit) {
  EXPECT_EQ(refusal_of({}, "hide-by-copies", "on"),
            "hide-by-copies: found \"on\"; expected true or false");
  EXPECT_EQ(refusal_of({}, "sequence-dim", "-1"),
            "sequence-dim: found \"-1\"; expected an integer from 0 on");
  EXPECT_EQ(refusal_of({}, "overlap-peak-memory-budget", "inf"),
            "overlap-peak-memory-budget: found \"inf\"; expected a number, 0 or more");
  EXPECT_EQ(refusal_of({}, "all-reduce", ""), "all-reduce: found \"\"; expected a word");
  EXPECT_THAT(refusal_of({}, "enable", "fues"), HasSubstr("unknown pass \"fues\""));
  const std::string unknown = refusal_of({}, "all_reduce", "ll");
  EXPECT_THAT(unknown, HasSubstr("unknown option \"all_reduce\"; expected one of enable, "));
  EXPECT_THAT(unknown, HasSubstr(", all-reduce, "));
  EXPECT_EQ(unknown.find('\n'), std::string::npos);
}

TEST(Passes, CheckTheOptionsOfAConfigAndSetItsMembers) {
  const Graph graph = graph_of(kX, node("a", "neg", R"("x")"), R"("a")");
  PassContext context = sm80();
  context.config.options = {{"batch-invariant", "false"}};
  EXPECT_FALSE(lower(graph, context).batch_invariant);
  for (const auto& [name, value] :
       {std::pair("window", "1"), std::pair("reorder-sink-window", "few")}) {
    context.config.options = {{name, value}};
    EXPECT_THROW(static_cast<void>(lower(graph, context)), Error);
    EXPECT_THROW(static_cast<void>(run_passes(graph, {}, context)), Error);
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
