#include "support.h"

namespace braid {
namespace {

Attrs attributes(const char* reduce_op = "sum", const char* group = "tp") {
  return {{"reduce_op", std::string(reduce_op)}, {"group", std::string(group)}};
}

TEST(AllReduce, InfersTheOperandsType) {
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 8}}}, "all_reduce", attributes()), "bf16[T, 8]");
}

TEST(AllReduce, RefusesBadAttributes) {
  const TensorType x{DType::kF32, {2}};
  EXPECT_TRUE(is_error(refused({x}, "all_reduce", attributes("median")), "n/attrs/reduce_op",
                       "found \"median\"; expected one of \"sum\", \"avg\", \"max\", \"min\""));
  EXPECT_TRUE(is_error(refused({x}, "all_reduce", attributes("sum", "dp")), "n/attrs/group",
                       "unknown group \"dp\"; expected \"tp\""));
  EXPECT_TRUE(is_error(refused({x}, "all_reduce", {{"reduce_op", std::string("sum")}}),
                       "n/attrs/group", "missing"));
  EXPECT_TRUE(is_error(refused({{DType::kBool, {2}}}, "all_reduce", attributes()), "n/inputs/0",
                       "expected a number"));
}

TEST(AllReduce, SumsOverTheRanks) {
  const TensorType x{DType::kF32, {2}};
  const auto results =
      computed({x}, "all_reduce", attributes(), {{{1, 10}}, {{2, 20}}, {{3, 30}}, {{4, 40}}});
  for (const auto& rank : results) EXPECT_EQ(rank[0], (Values{10, 100}));
}

TEST(AllReduce, RoundsOnce) {
  const auto results =
      computed({{DType::kBF16, {1}}}, "all_reduce", attributes(), {{{256}}, {{1}}, {{1}}});
  for (const auto& rank : results) EXPECT_EQ(rank[0], Values{258});
}

TEST(AllReduce, StaysInsideEachInstanceOfTheGroup) {
  Graph graph("mesh");
  graph.add_group("tp", {2, true, {{0, 2}, {1, 3}}});
  const ValueId x = graph.add_input({"x", {DType::kF32, {1}}, InputKind::kActivation, true});
  const NodeId sum = graph.add_node("c", "all_reduce", {x}, attributes());
  const NodeId done = graph.add_node("w", "wait_tensor", graph.node(sum).outputs);
  graph.add_output(graph.node(done).outputs[0]);
  RankTensors inputs;
  for (double value : {1, 2, 4, 8})
    inputs.push_back({HostTensor::from_doubles(DType::kF32, {1}, {value})});
  const RankTensors outputs = evaluate(graph, inputs, {});
  Values found;
  for (const auto& rank : outputs) found.push_back(rank[0].to_doubles()[0]);
  EXPECT_EQ(found, (Values{5, 10, 5, 10}));
}

TEST(AllReduce, GroupOfOneIsTheIdentity) {
  EXPECT_EQ(computed_one({{DType::kF32, {2}}}, "all_reduce", attributes(), {{3, 4}}),
            (Values{3, 4}));
}

Attrs with(Attrs attrs, Attrs more) {
  attrs.insert(more.begin(), more.end());
  return attrs;
}
Attrs integer(const char* key, std::int64_t value) { return {{key, value}}; }
Attrs sizes(const char* key, std::vector<std::int64_t> values) { return {{key, values}}; }

/// The first result of each rank.
std::vector<Values> on_ranks(const std::vector<TensorType>& types, const char* op,
                             const Attrs& attrs, const std::vector<std::vector<Values>>& values) {
  std::vector<Values> results;
  for (const auto& rank : computed(types, op, attrs, values)) results.push_back(rank[0]);
  return results;
}

TEST(AllReduce, ReducesByEveryOperation) {
  const TensorType x{DType::kF32, {1}};
  const auto reduced = [&](const char* op) {
    const auto results = on_ranks({x}, "all_reduce", attributes(op), {{{3}}, {{-2}}, {{5}}});
    EXPECT_EQ(results[0], results[2]);
    return results[1][0];
  };
  EXPECT_EQ(reduced("avg"), 2);
  EXPECT_EQ(reduced("max"), 5);
  EXPECT_EQ(reduced("min"), -2);
  EXPECT_EQ(reduced("product"), -30);
  EXPECT_TRUE(is_error(refused({{DType::kI32, {2}}}, "all_reduce", attributes("avg")), "n/inputs/0",
                       "avg of i32[2]; expected a floating-point dtype"));
}

TEST(AllGather, PutsTheRanksChunksInOrderAlongTheDim) {
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 8}}}, "all_gather_into_tensor", group()),
            "bf16[2*T, 8]");
  EXPECT_EQ(inferred({{DType::kBF16, {sym("T"), 8}}}, "all_gather_into_tensor",
                     with(group(), integer("dim", -1))),
            "bf16[T, 16]");
  const TensorType x{DType::kF32, {2, 1}};
  const std::vector<std::vector<Values>> values = {{{1, 2}}, {{3, 4}}};
  EXPECT_EQ(on_ranks({x}, "all_gather_into_tensor", group(), values),
            (std::vector<Values>{{1, 2, 3, 4}, {1, 2, 3, 4}}));
  EXPECT_EQ(on_ranks({x}, "all_gather_into_tensor", with(group(), integer("dim", 1)), values),
            (std::vector<Values>{{1, 3, 2, 4}, {1, 3, 2, 4}}));
  EXPECT_TRUE(is_error(refused({x}, "all_gather_into_tensor", with(group(), integer("dim", 2))),
                       "n/attrs/dim", "dim 2 is out of range; expected an integer from -2 to 1"));
}

TEST(AllGather, OutMustFit) {
  const TensorType x{DType::kF32, {2}};
  EXPECT_EQ(inferred({x, {DType::kF32, {4}}}, "all_gather_into_tensor_out", group()), "f32[4]");
  EXPECT_TRUE(is_error(refused({x, {DType::kF32, {6}}}, "all_gather_into_tensor_out", group()),
                       "n/inputs/1", "`out` is f32[6]; expected f32[4]"));
}

TEST(ReduceScatter, LeavesEachRankItsChunkOfTheReduction) {
  const TensorType x{DType::kF32, {2, 2}};
  const std::vector<std::vector<Values>> values = {{{1, 2, 3, 4}}, {{10, 20, 30, 40}}};
  EXPECT_EQ(on_ranks({x}, "reduce_scatter_tensor", attributes(), values),
            (std::vector<Values>{{11, 22}, {33, 44}}));
  EXPECT_EQ(
      on_ranks({x}, "reduce_scatter_tensor", with(attributes("avg"), integer("dim", 1)), values),
      (std::vector<Values>{{5.5, 16.5}, {11, 22}}));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {3, 2}}}, "reduce_scatter_tensor", attributes()),
                       "n/inputs/0", "dim 0 is 3; expected a multiple of 2"));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {sym("T")}}}, "reduce_scatter_tensor", attributes()),
                       "n/inputs/0",
                       "dim 0 is T; expected a multiple of 2, the ranks of the group, "
                       "such as 2*T"));
}

TEST(AllToAll, EvenChunksGoToTheRanksInOrder) {
  const TensorType x{DType::kF32, {4}};
  const std::vector<std::vector<Values>> values = {{{1, 2, 3, 4}}, {{5, 6, 7, 8}}};
  const std::vector<Values> expected = {{1, 2, 5, 6}, {3, 4, 7, 8}};
  EXPECT_EQ(on_ranks({x}, "all_to_all_single", group(), values), expected);
  EXPECT_EQ(
      on_ranks({x}, "all_to_all_single", with(group(), sizes("input_split_sizes", {2, 2})), values),
      expected);
}

TEST(AllToAll, UnevenChunksAreGivenForEachRank) {
  const TensorType x{DType::kF32, {4}};
  const std::vector<std::vector<Values>> values = {{{1, 2, 3, 4}}, {{5, 6, 7, 8}}};
  const Attrs sent = sizes("input_split_sizes", {3, 1, 1, 3});
  const Attrs received = sizes("output_split_sizes", {3, 1, 1, 3});
  const std::vector<Values> expected = {{1, 2, 3, 5}, {4, 6, 7, 8}};
  EXPECT_EQ(on_ranks({x}, "all_to_all_single", with(group(), sent), values), expected);
  EXPECT_EQ(on_ranks({x}, "all_to_all_single", with(group(), received), values), expected);
  EXPECT_EQ(on_ranks({x}, "all_to_all_single", with(with(group(), sent), received), values),
            expected);
}

TEST(AllToAll, RefusesSplitsThatDoNotAddUp) {
  const TensorType x{DType::kF32, {4}};
  const auto refusal = [&](Attrs attrs) {
    return refused({x}, "all_to_all_single", with(group(), std::move(attrs)));
  };
  const char* in = "n/attrs/input_split_sizes";
  EXPECT_TRUE(is_error(refusal(sizes("input_split_sizes", {2, 3})), in, "run one program"));
  EXPECT_TRUE(is_error(refusal(sizes("input_split_sizes", {3, 3})), in, "sum to 6; expected 4"));
  EXPECT_TRUE(is_error(refusal(sizes("input_split_sizes", {1, 1, 2})), in, "3 sizes; expected 2"));
  EXPECT_TRUE(is_error(refusal(sizes("input_split_sizes", {5, -1})), in, "size 1 is -1"));
  EXPECT_TRUE(is_error(refusal(sizes("input_split_sizes", {3, 1, 2, 3})), in,
                       "rank 1 sends 5 rows in all; expected 4"));
  EXPECT_TRUE(is_error(refusal(sizes("input_split_sizes", {3, 1, 2, 2})), in,
                       "rank 0 receives 5 rows and rank 1 3"));
  EXPECT_TRUE(is_error(refusal(with(sizes("input_split_sizes", {3, 1, 1, 3}),
                                    sizes("output_split_sizes", {1, 3, 3, 1}))),
                       "n/attrs/output_split_sizes", "expected the sizes [3, 1, 1, 3]"));
}

TEST(AllToAll, RefusesSizesWhoseSumsOverflow) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  const auto refusal = [](const Dim& rows, std::vector<std::int64_t> list) {
    Attrs attrs = sizes("input_split_sizes", std::move(list));
    return refused({{DType::kF32, {rows}}}, "all_to_all_single", with(group(), std::move(attrs)));
  };
  const char* in = "n/attrs/input_split_sizes";
  // Modulo 2^64, these sum to the extent.
  EXPECT_TRUE(is_error(refusal(2, {kHalf, kHalf + 2, kHalf, kHalf}), in, "expected 0 to 2"));
  EXPECT_TRUE(is_error(refusal(4, {kHalf - 1 + kHalf, kHalf - 1 + kHalf, 3, 3}), in,
                       "size 0 is 9223372036854775807; expected 0 to 4, the extent of dim 0"));
  EXPECT_TRUE(is_error(refusal(sym("T"), {kHalf, kHalf}), "n", "does not fit 64 bits"));
  EXPECT_TRUE(is_error(refusal(sym("T"), {kHalf, kHalf, 1, 1}), "n", "does not fit 64 bits"));
}

TEST(Collective, OnlyLoweringChoosesAnAlgorithm) {
  const TensorType x{DType::kF32, {2}};
  const auto refusal = [&](const char* op, const char* algorithm) {
    return refused({x}, op, with(attributes(), {{"algorithm", std::string(algorithm)}}));
  };
  EXPECT_TRUE(is_error(refusal("all_reduce", "ring"), "n/attrs/algorithm",
                       "found \"ring\"; expected one of \"\", \"one_shot\""));
  EXPECT_EQ(refusal("all_reduce", "one_shot"), "no error");
  EXPECT_EQ(refusal("all_reduce", "nccl"), "no error");
  for (const char* op : {"all_reduce_", "all_reduce_coalesced", "all_reduce_coalesced_"}) {
    EXPECT_TRUE(is_error(refusal(op, "one_shot"), "n/attrs/algorithm", "expected \"\""));
  }
}

TEST(Broadcast, GivesEveryRankTheSources) {
  const TensorType x{DType::kF32, {1}};
  EXPECT_EQ(on_ranks({x}, "broadcast", with(group(), integer("src", 1)), {{{3}}, {{4}}, {{5}}}),
            (std::vector<Values>{{4}, {4}, {4}}));
  EXPECT_TRUE(is_error(refused({x}, "broadcast", with(group(), integer("src", 2))), "n/attrs/src",
                       "2; expected a rank of the group, 0 to 1"));
}

TEST(ShardDimAllToAll, MovesTheShardFromOneDimToAnother) {
  const TensorType x{DType::kF32, {1, 2}};
  const Attrs dims = with(with(group(), integer("gather_dim", 0)), integer("shard_dim", 1));
  EXPECT_EQ(inferred({x}, "shard_dim_alltoall", dims), "f32[2, 1]");
  EXPECT_EQ(on_ranks({x}, "shard_dim_alltoall", dims, {{{1, 2}}, {{3, 4}}}),
            (std::vector<Values>{{1, 3}, {2, 4}}));
  EXPECT_TRUE(
      is_error(refused({x}, "shard_dim_alltoall",
                       with(with(group(), integer("gather_dim", 0)), integer("shard_dim", -2))),
               "n/attrs/shard_dim", "-2, as gather_dim; expected another dim"));
}

TEST(Shard, IsTheRanksOwnChunk) {
  const TensorType x{DType::kF32, {2, 2}};
  const std::vector<std::vector<Values>> values = {{{1, 2, 3, 4}}, {{1, 2, 3, 4}}};
  EXPECT_EQ(on_ranks({x}, "shard", group(), values), (std::vector<Values>{{1, 2}, {3, 4}}));
  EXPECT_EQ(on_ranks({x}, "shard", with(group(), integer("dim", 1)), values),
            (std::vector<Values>{{1, 3}, {2, 4}}));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {3}}}, "shard", group()), "n/inputs/0",
                       "dim 0 is 3; expected a multiple of 2"));
}

TEST(Coalesced, GivesEachOperandItsResult) {
  const TensorType x{DType::kF32, {1}}, y{DType::kBF16, {2}};
  EXPECT_EQ(inferred({x, y}, "all_gather_into_tensor_coalesced", group()), "f32[2] bf16[4]");
  const auto results =
      computed({x, y}, "all_reduce_coalesced", attributes(), {{{1}, {2, 3}}, {{10}, {20, 30}}});
  EXPECT_EQ(results[1], (std::vector<Values>{{11}, {22, 33}}));
  EXPECT_EQ(inferred({y, y}, "reduce_scatter_tensor_coalesced", attributes()), "bf16[1] bf16[1]");
}

TEST(WaitTensor, IsTheIdentityOnAnything) {
  EXPECT_EQ(computed_one({{DType::kI32, {2}}}, "wait_tensor", {}, {{3, 4}}), (Values{3, 4}));
}

}  // namespace
}  // namespace braid
