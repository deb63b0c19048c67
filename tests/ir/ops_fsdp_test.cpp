#include <cmath>

#include "support.h"

namespace braid {
namespace {

Attrs sizes(std::vector<std::int64_t> values, std::int64_t dim = 0) {
  return {{"split_sizes", std::move(values)}, {"dim", dim}};
}
Attrs chunks(std::int64_t count, std::int64_t dim = 0) {
  return {{"num_chunks", count}, {"dim", dim}};
}
Attrs size(std::int64_t bytes) { return {{"size", bytes}}; }

TEST(ResizeStorageBytes, FreedMemoryReadsAsNothingKnown) {
  Graph graph = graph_with({{DType::kF32, {2}}, {DType::kI32, {2}}}, 1, true);
  const std::vector<ValueId> inputs = graph.input_values();
  for (ValueId input : inputs) {
    graph.add_node("", "resize_storage_bytes_", {input}, size(0));
    graph.add_node("", "resize_storage_bytes_", {input}, size(8));
    graph.add_output(input);
  }
  verify(graph);
  const RankTensors found = evaluate(graph,
                                     {{HostTensor::from_doubles(DType::kF32, {2}, {1, 2}),
                                       HostTensor::from_doubles(DType::kI32, {2}, {1, 2})}},
                                     {{"T", 1}, {"S", 1}});
  for (double x : found[0][0].to_doubles()) EXPECT_TRUE(std::isnan(x));
  EXPECT_EQ(found[0][1].to_doubles(), (Values{0, 0}));
}

TEST(ResizeStorageBytes, KeepsWhatIsThereWithoutBeingFreed) {
  EXPECT_EQ(computed_one({{DType::kF32, {2}}}, "resize_storage_bytes_", size(8), {{1, 2}}),
            (Values{1, 2}));
}

TEST(ResizeStorageBytes, RefusesASizeThatHoldsNoTensor) {
  for (std::int64_t bytes : {-4, 7}) {
    EXPECT_TRUE(is_error(refused({{DType::kBF16, {4}}}, "resize_storage_bytes_", size(bytes)),
                         "n/attrs/size", "expected 0, or at least the 8 of bf16[4]"));
  }
  // A symbol counts at its maximum, here 256.
  EXPECT_TRUE(is_error(refused({{DType::kBF16, {sym("T")}}}, "resize_storage_bytes_", size(511)),
                       "n/attrs/size", "at least the 512"));
}

TEST(FsdpCopy, OverwritesAsCopyDoes) {
  Graph graph = graph_with({{DType::kF32, {2}}, {DType::kF32, {2}}}, 1, true);
  graph.add_node("k", "fsdp.copy_", graph.input_values());
  graph.add_output(graph.input_values()[0]);
  verify(graph);
  const RankTensors found = evaluate(graph,
                                     {{HostTensor::from_doubles(DType::kF32, {2}, {1, 2}),
                                       HostTensor::from_doubles(DType::kF32, {2}, {3, 4})}},
                                     {{"T", 1}, {"S", 1}});
  EXPECT_EQ(found[0][0].to_doubles(), (Values{3, 4}));
  EXPECT_TRUE(is_error(refused({{DType::kF32, {2}}, {DType::kF16, {2}}}, "fsdp.copy_"),
                       "n/inputs/1", "f16[2] does not fit into f32[2]"));
}

TEST(AllGatherCopyIn, PutsTheOperandsAtTheRanksPlace) {
  const std::vector<TensorType> types{
      {DType::kF32, {1, 2}}, {DType::kF32, {1}}, {DType::kF32, {6}}};
  EXPECT_EQ(inferred(types, "fsdp.all_gather_copy_in", group()), "f32[3] f32[6]");
  const Values buffer{7, 7, 7, 7, 7, 7};
  const auto results = computed(types, "fsdp.all_gather_copy_in", group(),
                                {{{1, 2}, {3}, buffer}, {{4, 5}, {6}, buffer}});
  EXPECT_EQ(results[0], (std::vector<Values>{{1, 2, 3}, {1, 2, 3, 7, 7, 7}}));
  EXPECT_EQ(results[1], (std::vector<Values>{{4, 5, 6}, {7, 7, 7, 4, 5, 6}}));
}

TEST(AllGatherCopyIn, TheOutputBufferHoldsThePart) {
  Graph graph = graph_with({{DType::kF32, {1}}, {DType::kF32, {2}}}, 2, true);
  graph.add_node("c", "fsdp.all_gather_copy_in", graph.input_values(), group());
  graph.add_output(graph.input_values()[1]);
  verify(graph);
  RankTensors inputs;
  for (double x : {1, 2}) {
    inputs.push_back({HostTensor::from_doubles(DType::kF32, {1}, {x}),
                      HostTensor::from_doubles(DType::kF32, {2}, {8, 9})});
  }
  const RankTensors found = evaluate(graph, inputs, {{"T", 1}, {"S", 1}});
  EXPECT_EQ(found[0][0].to_doubles(), (Values{1, 9}));
  EXPECT_EQ(found[1][0].to_doubles(), (Values{8, 2}));
}

TEST(AllGatherCopyIn, TakesTheRankWithinTheGroup) {
  Graph graph("mesh");
  graph.add_group("dp", {2, true, {{0, 2}, {3, 1}}});
  graph.add_input({"x", {DType::kF32, {1}}, InputKind::kActivation, true});
  graph.add_input({"b", {DType::kF32, {2}}, InputKind::kActivation, true});
  const NodeId copy_in = graph.add_node("c", "fsdp.all_gather_copy_in", graph.input_values(),
                                        {{"group", std::string("dp")}});
  graph.add_output(graph.node(copy_in).outputs[1]);
  RankTensors inputs(4, {HostTensor::from_doubles(DType::kF32, {1}, {1}),
                         HostTensor::from_doubles(DType::kF32, {2}, {0, 0})});
  std::vector<Values> found;
  for (const auto& rank : evaluate(graph, inputs, {})) found.push_back(rank[0].to_doubles());
  EXPECT_EQ(found, (std::vector<Values>{{1, 0}, {0, 1}, {0, 1}, {1, 0}}));
}

TEST(AllGatherCopyIn, RefusesBuffersOfAnotherSizeOrType) {
  const TensorType x{DType::kF32, {3}};
  EXPECT_TRUE(is_error(refused({x, {DType::kF32, {5}}}, "fsdp.all_gather_copy_in", group()),
                       "n/inputs/1", "the output buffer is f32[5]; expected f32[6]"));
  EXPECT_TRUE(is_error(refused({x, {DType::kBF16, {6}}}, "fsdp.all_gather_copy_in", group()),
                       "n/inputs/1", "expected one dtype"));
  EXPECT_TRUE(is_error(
      refused({x, {DType::kF32, {6}}}, "fsdp.all_gather_copy_in", {{"group", std::string("dp")}}),
      "n/attrs/group", "unknown group \"dp\""));
  EXPECT_TRUE(is_error(
      refused({{DType::kF32, {sym("T"), sym("S")}}, x}, "fsdp.all_gather_copy_in", group()),
      "n/inputs/0", "expected an affine number"));
}

TEST(SplitWithSizesCopy, GivesTheParts) {
  const TensorType x{DType::kF32, {2, 3}};
  EXPECT_EQ(inferred({x}, "fsdp.split_with_sizes_copy", sizes({1, 2}, -1)), "f32[2, 1] f32[2, 2]");
  const auto parts =
      computed({x}, "fsdp.split_with_sizes_copy", sizes({1, 2}, 1), {{{1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(parts[0], (std::vector<Values>{{1, 4}, {2, 3, 5, 6}}));
  const auto rows =
      computed({x}, "fsdp.split_with_sizes_copy", sizes({1, 1}), {{{1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(rows[0], (std::vector<Values>{{1, 2, 3}, {4, 5, 6}}));
}

TEST(SplitWithSizesCopy, ItsPartsAreMemoryOfTheirOwn) {
  Graph graph = graph_with({{DType::kF32, {2}}, {DType::kF32, {2}}}, 1, true);
  const ValueId x = graph.input_values()[0];
  const NodeId split = graph.add_node("s", "fsdp.split_with_sizes_copy", {x}, sizes({1, 1}));
  graph.add_node("k", "copy_", graph.input_values());
  graph.add_output(graph.node(split).outputs[1]);
  verify(graph);
  const RankTensors found = evaluate(graph,
                                     {{HostTensor::from_doubles(DType::kF32, {2}, {1, 2}),
                                       HostTensor::from_doubles(DType::kF32, {2}, {3, 4})}},
                                     {{"T", 1}, {"S", 1}});
  EXPECT_EQ(found[0][0].to_doubles(), Values{2});
}

TEST(SplitWithSizesCopy, RefusesSizesThatDoNotSum) {
  const TensorType x{DType::kF32, {2, 3}};
  EXPECT_TRUE(is_error(refused({x}, "fsdp.split_with_sizes_copy", sizes({1, 1}, 1)),
                       "n/attrs/split_sizes", "the sizes sum to 2; expected 3"));
  EXPECT_TRUE(is_error(refused({x}, "fsdp.split_with_sizes_copy", sizes({3, 0}, 1)),
                       "n/attrs/split_sizes", "size 1 is 0"));
  EXPECT_TRUE(is_error(refused({x}, "fsdp.split_with_sizes_copy", sizes({}, 1)),
                       "n/attrs/split_sizes", "the sizes sum to 0"));
  EXPECT_TRUE(
      is_error(refused({x}, "fsdp.split_with_sizes_copy", sizes({3}, 2)), "n/attrs/dim", "2"));
}

// Like torch._chunk_cat: chunk i of every operand, flattened, side by side in row i.
TEST(ChunkCat, PutsTheChunksSideBySide) {
  const TensorType a{DType::kF32, {4, 1}}, b{DType::kF32, {2, 3}};
  EXPECT_EQ(inferred({a, b}, "fsdp.chunk_cat", chunks(2)), "f32[2, 5]");
  EXPECT_EQ(computed_one({a, b}, "fsdp.chunk_cat", chunks(2), {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10}}),
            (Values{1, 2, 5, 6, 7, 3, 4, 8, 9, 10}));
  const TensorType c{DType::kF32, {2, 2}}, d{DType::kF32, {2, 4}};
  EXPECT_EQ(inferred({c, d}, "fsdp.chunk_cat", chunks(2, -1)), "f32[2, 2, 3]");
  EXPECT_EQ(computed_one({c, d}, "fsdp.chunk_cat", chunks(2, 1),
                         {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10, 11, 12}}),
            (Values{1, 5, 6, 2, 7, 8, 3, 9, 10, 4, 11, 12}));
}

TEST(ChunkCat, RefusesWhatDoesNotDivide) {
  const TensorType a{DType::kF32, {3, 2}};
  EXPECT_TRUE(is_error(refused({a}, "fsdp.chunk_cat", chunks(2)), "n/inputs/0",
                       "dim 0 of f32[3, 2] does not divide into 2 chunks"));
  EXPECT_TRUE(is_error(refused({a}, "fsdp.chunk_cat", chunks(0)), "n/attrs/num_chunks", "0"));
  EXPECT_TRUE(is_error(refused({a, {DType::kF32, {2, 2}}}, "fsdp.chunk_cat", chunks(2, 1)),
                       "n/inputs/1", "equal extents before dim 1"));
  EXPECT_TRUE(is_error(refused({a}, "fsdp.chunk_cat", chunks(2, 2)), "n/attrs/dim", "2"));
}

}  // namespace
}  // namespace braid
