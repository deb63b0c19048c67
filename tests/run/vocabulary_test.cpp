// A vocabulary in shards, one for each rank: its embedding and its argmax, of ops that every graph
// has (docs/graph.md), equal those of the whole vocabulary.

#include <gtest/gtest.h>

#include <limits>

#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

constexpr DType kF32 = DType::kF32, kI64 = DType::kI64;
constexpr std::int64_t kWords = 96, kWidth = 40;
const Dim kT = Dim::symbol("T");
const Attrs kGroup = {{"group", std::string("tp")}};

class Build : public testing::GraphBuilder {
 public:
  explicit Build(std::int64_t world) : GraphBuilder(24, world), words_(kWords / world) {}

  /// The first word of this rank.
  ValueId first() {
    const ValueId words = op("arange", {}, {{"end", kWords}});
    Attrs chunk = kGroup;
    chunk["dim"] = std::int64_t{0};
    return op("slice", {op("shard", {words}, chunk)}, {{"end", std::int64_t{1}}});
  }
  ValueId embedding() {
    const ValueId ids = graph().add_input({"ids", {kI64, {kT}}});
    const ValueId rows = op("embedding", {in(kF32, {words_, kWidth}, "table"), ids}, kGroup);
    Attrs sum = kGroup;
    sum["reduce_op"] = std::string("sum");
    return op("wait_tensor", {op("all_reduce", {rows}, sum)});
  }
  ValueId argmax() {
    const ValueId logits = in(kF32, {kT, words_}, "logits");
    const Attrs last{{"dim", std::vector<std::int64_t>{-1}}};
    const ValueId word = op("add", {op("argmax", {logits}, last), first()});
    const ValueId words = gathered(word);
    const Attrs ranks{{"dim", std::vector<std::int64_t>{0}}, {"keepdim", true}};
    const ValueId best = op("argmax", {gathered(op("amax", {logits}, last))}, ranks);
    return op("gather", {words, best}, {{"dim", std::int64_t{0}}});
  }

 private:
  /// One row for each rank.
  ValueId gathered(ValueId of_rank) {
    const ValueId row = op("view", {of_rank}, {{"shape", Shape{1, kT}}});
    return op("wait_tensor", {op("all_gather_into_tensor", {row}, kGroup)});
  }

  std::int64_t words_;  ///< of a rank
};

class Vocabulary : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(Vocabulary, InShardsEqualsTheReference) {
  Build embedding(GetParam());
  EXPECT_TRUE(testing::matches_reference_and_unfused(embedding.take({embedding.embedding()}),
                                                     {{"T", 19}}, 3));
  Build argmax(GetParam());
  EXPECT_TRUE(
      testing::matches_reference_and_unfused(argmax.take({argmax.argmax()}), {{"T", 19}}, 4));
}

TEST_P(Vocabulary, InShardsGivesTheRowsOfTheWhole) {
  const std::int64_t world = GetParam();
  Build b(world);
  const Graph graph = b.take({b.embedding()});
  const std::vector<std::int64_t> ids = {0, 95, 47, 48, 23, 24, 71, 72};
  RankTensors inputs(static_cast<std::size_t>(world));
  for (std::int64_t rank = 0; rank < world; ++rank) {
    std::vector<double> table;
    for (std::int64_t i = 0; i < kWords / world * kWidth; ++i) {
      table.push_back(static_cast<double>(rank * kWords / world + i / kWidth));
    }
    inputs[static_cast<std::size_t>(rank)] = {
        HostTensor::from_integers(kI64, {8}, ids),
        HostTensor::from_doubles(kF32, {kWords / world, kWidth}, table)};
  }
  Executable executable = Executable::compile(graph, World::open(testing::world_options(world)));
  const auto out = testing::run_once(executable, graph, {{"T", 8}}, inputs);
  EXPECT_EQ(executable.launches(), 1);
  for (const auto& of_rank : out) {
    const std::vector<double> rows = of_rank[0].to_doubles();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i], static_cast<double>(ids[i / kWidth])) << i;
    }
  }
}

TEST_P(Vocabulary, HasNoWordBehindTheLast) {
  Build b(GetParam());
  const Graph graph = b.take({b.embedding()});
  RankTensors inputs = random_inputs(graph, {{"T", 2}}, 5);
  for (auto& of_rank : inputs) {
    of_rank[0] = HostTensor::from_integers(kI64, {2}, std::vector<std::int64_t>{95, 96});
  }
  Executable executable =
      Executable::compile(graph, World::open(testing::world_options(GetParam())));
  const char* expected = "index 96 is out of range; expected an integer from 0 to 95";
  for (const std::string& error : {testing::error_of([&] {
                                     (void)evaluate(graph, inputs, {{"T", 2}});
                                   }),
                                   testing::error_of([&] {
                                     (void)testing::run_once(executable, graph, {{"T", 2}}, inputs);
                                   })}) {
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
}

/// Of equal logits the first word, wherever it is; NaN is the largest.
TEST_P(Vocabulary, InShardsHasTheArgmaxOfTheWhole) {
  const std::int64_t world = GetParam();
  Build b(world);
  const Graph graph = b.take({b.argmax()});
  RankTensors inputs(static_cast<std::size_t>(world));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t words = kWords / world;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    std::vector<double> logits(static_cast<std::size_t>(4 * words), -1);
    const auto set = [&](std::int64_t row, std::int64_t word, double value) {
      if (word / words != rank) return;
      logits[static_cast<std::size_t>(row * words + word % words)] = value;
    };
    for (const std::int64_t word : {30, 31, 90}) set(0, word, 5);
    set(1, 95, 0);
    set(2, 10, 7), set(2, 50, nan), set(2, 80, nan);
    inputs[static_cast<std::size_t>(rank)] = {HostTensor::from_doubles(kF32, {4, words}, logits)};
  }
  Executable executable = Executable::compile(graph, World::open(testing::world_options(world)));
  const auto out = testing::run_once(executable, graph, {{"T", 4}}, inputs);
  for (const auto& of_rank : out) {
    EXPECT_EQ(of_rank[0].to_integers(), (std::vector<std::int64_t>{30, 95, 50, 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Vocabulary, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace braid
