// Movements of scalars and of single elements, bytes seen as another dtype, and extents that only a
// symbol's multiple_of divides, on the device against the reference.

#include <gtest/gtest.h>

#include <string>

#include "run/run_graph.h"

namespace braid {
namespace {

/// A graph from the inner part of its JSON, over two ranks; T is even, x and y are scalars.
Graph parsed(const std::string& inputs, const std::string& nodes, const std::string& outputs) {
  return parse_graph(R"({"braid": 1, "name": "views", "groups": {"tp": {"size": 2}},
    "symbols": {"T": {"max": 16, "multiple_of": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [], "per_rank": true},
               {"name": "y", "dtype": "bf16", "shape": [1], "per_rank": true})" +
                     inputs + R"(], "nodes": [)" + nodes + R"(], "outputs": [)" + outputs + "]}");
}

TEST(Views, OfScalars) {
  const Graph graph = parsed("", R"(
      {"name": "permuted", "op": "permute", "inputs": ["x"], "attrs": {"dims": []}},
      {"name": "viewed", "op": "view", "inputs": ["permuted"], "attrs": {"shape": []}},
      {"name": "one", "op": "view", "inputs": ["viewed"], "attrs": {"shape": [1, -1]}},
      {"name": "turned", "op": "transpose", "inputs": ["one"], "attrs": {"dim0": 0, "dim1": -1}},
      {"name": "spread", "op": "expand", "inputs": ["x"], "attrs": {"shape": [3, 2]}},
      {"name": "joined", "op": "cat", "inputs": ["turned", "one", "turned"], "attrs": {"dim": 1}},
      {"name": "part", "op": "slice", "inputs": ["joined"], "attrs": {"dim": 1, "start": 2}},
      {"name": "total", "op": "sum", "inputs": ["x"], "attrs": {"dim": []}},
      {"name": "high", "op": "amax", "inputs": ["spread"], "attrs": {"dim": []}},
      {"name": "soft", "op": "softmax", "inputs": ["one"], "attrs": {"dim": -1}},
      {"name": "bits", "op": "view", "inputs": ["x"], "attrs": {"dtype": "i32"}},
      {"name": "scalar", "op": "view", "inputs": ["y"], "attrs": {"shape": []}},
      {"name": "n", "op": "neg", "inputs": ["scalar"]})",
                             R"("permuted", "viewed", "turned", "spread", "joined", "part", "total",
                                "high", "soft", "bits", "n")");
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 2}}, 5));
}

// Behind the last row of the operand lies a guard page.
TEST(Views, OneValueTwiceInACat) {
  const Graph graph = parsed(R"(, {"name": "row", "dtype": "i32", "shape": [40]})", R"(
      {"name": "rows", "op": "expand", "inputs": ["row"], "attrs": {"shape": [9, 40]}},
      {"name": "above", "op": "clamp", "inputs": ["rows"], "attrs": {"min": 3}},
      {"name": "twice", "op": "cat", "inputs": ["above", "above"], "attrs": {"dim": 1}})",
                             R"("twice")");
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 2}}, 7));
}

TEST(Views, CollectivesOfScalars) {
  const Graph graph = parsed("", R"(
      {"name": "c", "op": "all_reduce", "inputs": ["x"], "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "sum", "op": "wait_tensor", "inputs": ["c"]},
      {"name": "b", "op": "broadcast", "inputs": ["x"], "attrs": {"src": 1, "group": "tp"}},
      {"name": "sent", "op": "wait_tensor", "inputs": ["b"]},
      {"name": "g", "op": "all_gather_into_tensor", "inputs": ["y"], "attrs": {"group": "tp"}},
      {"name": "both", "op": "wait_tensor", "inputs": ["g"]},
      {"name": "own", "op": "shard", "inputs": ["both"], "attrs": {"group": "tp", "dim": 0}})",
                             R"("sum", "sent", "both", "own")");
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 2}}, 6));
}

// Views of an input, of a kernel's result, of a part, of a gathered value; computed on and
// returned.
TEST(Views, OfAnotherDType) {
  const Graph graph =
      parsed(R"(, {"name": "f", "dtype": "f8e4m3", "shape": ["T", 6], "per_rank": true},
                  {"name": "h", "dtype": "f32", "shape": ["T", 4], "per_rank": true})",
             R"(
      {"name": "u", "op": "view", "inputs": ["f"], "attrs": {"dtype": "u8"}},
      {"name": "g", "op": "all_gather_into_tensor", "inputs": ["u"], "attrs": {"group": "tp"}},
      {"name": "w", "op": "wait_tensor", "inputs": ["g"]},
      {"name": "back", "op": "view", "inputs": ["w"], "attrs": {"dtype": "f8e4m3"}},
      {"name": "wide", "op": "to", "inputs": ["back"], "attrs": {"dtype": "f32"}},
      {"name": "e", "op": "neg", "inputs": ["h"]},
      {"name": "ei", "op": "view", "inputs": ["e"], "attrs": {"dtype": "i32"}},
      {"name": "n", "op": "maximum", "inputs": ["ei", "ei"]},
      {"name": "right", "op": "slice", "inputs": ["h"], "attrs": {"dim": 1, "start": 1}},
      {"name": "eb", "op": "view", "inputs": ["right"], "attrs": {"dtype": "u8"}},
      {"name": "ew", "op": "to", "inputs": ["eb"], "attrs": {"dtype": "i32"}},
      {"name": "long", "op": "view", "inputs": ["ei"], "attrs": {"dtype": "u8"}})",
             R"("back", "wide", "w", "n", "eb", "ew", "long")");
  for (const std::int64_t t : {2, 10}) {
    EXPECT_TRUE(testing::matches_reference(graph, {{"T", t}}, 7)) << t;
  }
}

TEST(Views, PartsThatOnlyMultipleOfDivides) {
  const Graph graph =
      parsed(R"(, {"name": "h", "dtype": "f32", "shape": ["T", 40], "per_rank": true})", R"(
      {"name": "r", "op": "reduce_scatter_tensor", "inputs": ["h"],
       "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "part", "op": "wait_tensor", "inputs": ["r"]},
      {"name": "own", "op": "shard", "inputs": ["h"], "attrs": {"group": "tp"}},
      {"name": "s", "op": "add", "inputs": ["part", "own"]},
      {"name": "m", "op": "softmax", "inputs": ["s"], "attrs": {"dim": -1}},
      {"name": "pairs", "op": "view", "inputs": ["h"], "attrs": {"shape": ["T/2", 80]}},
      {"name": "z", "op": "neg", "inputs": ["pairs"]},
      {"name": "a", "op": "all_to_all_single", "inputs": ["h"], "attrs": {"group": "tp"}},
      {"name": "all", "op": "wait_tensor", "inputs": ["a"]},
      {"name": "even", "op": "slice", "inputs": ["h"], "attrs": {"dim": 0, "step": 2}},
      {"name": "e", "op": "exp", "inputs": ["even"]})",
             R"("s", "m", "z", "all", "e")");
  for (const std::int64_t t : {2, 14}) {
    EXPECT_TRUE(testing::matches_reference(graph, {{"T", t}}, 8)) << t;
  }
}

TEST(Views, ScaledMatmulWithABias) {
  const Graph graph =
      parsed(R"(, {"name": "a", "dtype": "f8e4m3", "shape": ["T", 40], "per_rank": true},
                  {"name": "w", "dtype": "f8e4m3", "shape": [40, 24], "per_rank": true},
                  {"name": "sa", "dtype": "f32", "shape": ["T", 1], "per_rank": true},
                  {"name": "bias", "dtype": "bf16", "shape": [24], "per_rank": true})",
             R"(
      {"name": "m", "op": "scaled_mm", "inputs": ["a", "w", "sa", "x", "bias"]},
      {"name": "f", "op": "fused_scaled_matmul_reduce_scatter",
       "inputs": ["a", "w", "sa", "x", "bias"],
       "attrs": {"reduce_op": "sum", "scatter_dim": 0, "group": "tp", "bias": true}})",
             R"("m", "f")");
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 6}}, 9));
}

}  // namespace
}  // namespace braid
