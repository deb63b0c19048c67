// Whether splitting pays is the cost model's word.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "lowering/lowering_testing.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// A sum over four ranks, its norm and a matmul, of so many tokens.
Graph norm_of(std::int64_t tokens, std::int64_t columns) {
  return parse_graph(fmt::format(R"({{"braid": 1, "name": "g", "groups": {{"tp": {{"size": 4}}}},
    "inputs": [
      {{"name": "x", "dtype": "bf16", "shape": [{0}, 4096], "per_rank": true}},
      {{"name": "g", "dtype": "bf16", "shape": [4096], "kind": "parameter"}},
      {{"name": "w", "dtype": "bf16", "shape": [4096, {1}], "kind": "parameter",
        "per_rank": true}}],
    "nodes": [
      {{"name": "c", "op": "all_reduce", "inputs": ["x"],
        "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
      {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
      {{"name": "n", "op": "rms_norm", "inputs": ["s", "g"], "attrs": {{"eps": 1e-5}}}},
      {{"name": "y", "op": "mm", "inputs": ["n", "w"]}}],
    "outputs": ["y"]}})",
                                 tokens, columns));
}

PassContext on_h100() {
  PassContext context;
  context.target = Target::parse("sm_90a");
  return context;
}

struct Outcome {
  bool split;
  std::string text;
};
Outcome outcome(std::int64_t tokens, PassContext context, std::int64_t columns = 8192) {
  const Graph graph = norm_of(tokens, columns);
  const Graph result = sequence_parallel(graph, context);
  EXPECT_EQ(context.remarks.size(), 1);
  const Remark& remark = context.remarks.at(0);
  const auto& nodes = result.nodes();
  const bool split = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op_name() == "reduce_scatter_tensor";
  });
  EXPECT_EQ(remark.applied, split);
  if (!split) {
    EXPECT_EQ(to_json(result), to_json(graph));
  }
  return {split, remark.reason.text()};
}

TEST(SequenceParallelGain, FewTokensAreNotWorthALaunch) {
  const Outcome few = outcome(64, on_h100());
  EXPECT_FALSE(few.split);
  EXPECT_THAT(few.text, ::testing::MatchesRegex("split, the graph takes [0-9.]+ us, as it is "
                                                "[0-9.]+ us, on H.00"));
}

TEST(SequenceParallelGain, ManyTokensAre) {
  const Outcome many = outcome(16384, on_h100());
  EXPECT_TRUE(many.split);
  EXPECT_THAT(many.text, HasSubstr("on bf16[4096, 4096] of each rank"));
  EXPECT_THAT(many.text, ::testing::ContainsRegex("; the graph takes [0-9.]+ us, not split "
                                                  "[0-9.]+ us, on H.00"));
}

TEST(SequenceParallelGain, AnOptionAsksForItAnyway) {
  PassContext context = on_h100();
  context.config.always_pipeline = true;
  EXPECT_TRUE(outcome(64, context).split);
}

// A gather that goes on while others are multiplied costs less.
TEST(SequenceParallelGain, CountsOnThePipelinesBehindIt) {
  PassContext context = on_h100();
  EXPECT_FALSE(outcome(512, context, 256).split);
  context.config.enable = {"micro_pipeline"};
  EXPECT_TRUE(outcome(512, context, 256).split);
}

}  // namespace
}  // namespace braid
