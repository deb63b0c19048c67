// Fused collectives and matmuls in chunks: copies from peers on a stream of their own while the
// chunks that are there are multiplied.

#include "run/chunks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lowering/random_tp_graph.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid::testing {
namespace {

/// Checks the graph in chunks, for each of these values of its symbol: the reference's values,
/// twice in a row, and the bits of the graph with its collectives and matmuls separate.
void expect_right(const Graph& graph, const std::vector<std::int64_t>& tokens) {
  const World world = World::open(world_options(world_size(graph)));
  Executable in_chunks = Executable::compile(graph, world, chunked());
  EXPECT_NE(in_chunks.program_json().find("event_wait"), std::string::npos);
  Executable apart = Executable::compile(graph, world);
  EXPECT_EQ(apart.program_json().find("event_wait"), std::string::npos);
  for (std::size_t r = 0; r < 2 * tokens.size(); ++r) {
    const Bindings bindings{{"T", tokens[r / 2]}};
    SCOPED_TRACE(fmt::format("{} tokens, run {}", tokens[r / 2], r));
    const auto run = static_cast<std::uint64_t>(tokens[r / 2]) + r;
    const RankTensors inputs = random_inputs(graph, bindings, run);
    const RankTensors got = run_once(in_chunks, graph, bindings, inputs);
    EXPECT_TRUE(same_as_reference(graph, got, evaluate(graph, inputs, bindings)));
    const RankTensors expected = run_once(apart, graph, bindings, inputs);
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      for (std::size_t i = 0; i < got[rank].size(); ++i) {
        EXPECT_EQ(got[rank][i].data, expected[rank][i].data)
            << "rank " << rank << ", output " << i << ": relative difference "
            << relative_error(got[rank][i], expected[rank][i]);
      }
    }
  }
}

struct Case {
  std::int64_t world;
  DType dtype;
  std::int64_t k, n;  ///< with some n a chunk of the product is not aligned
};

class Chunks : public ::testing::TestWithParam<Case> {
 protected:
  Chunks() : builder_(40, GetParam().world) {}
  ValueId in(Shape shape) { return builder_.in(GetParam().dtype, std::move(shape)); }
  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return builder_.op(name, std::move(inputs), std::move(attrs));
  }
  void expect_right(const std::vector<ValueId>& outputs) {
    testing::expect_right(builder_.take(outputs), {1, 7});
  }

  GraphBuilder builder_;
};

TEST_P(Chunks, GatherAnInputForTwoMatmuls) {
  const auto [world, dtype, k, n] = GetParam();
  const Node fused = builder_.node("fused_all_gather_matmul",
                                   {in({kT, k}), in({k, n}), in({k, 2 * n})}, gathering(0, false));
  expect_right({fused.outputs[0], op("silu", {fused.outputs[1]})});
}

TEST_P(Chunks, GatherAComputedValueThatIsReturned) {
  const auto [world, dtype, k, n] = GetParam();
  const ValueId x = op("silu", {in({kT, k})});
  const Node fused = builder_.node("fused_all_gather_matmul", {x, in({k, n})}, gathering(0, true));
  expect_right({fused.outputs[0], fused.outputs[1], op("neg", {x})});
}

TEST_P(Chunks, ScatterAProduct) {
  const auto [world, dtype, k, n] = GetParam();
  const Node fused = builder_.node("fused_matmul_reduce_scatter", {in({kT * world, k}), in({k, n})},
                                   scattering(0, "sum", false));
  expect_right({op("add", {fused.outputs[0], in({kT, n})})});
}

TEST_P(Chunks, ScatterTheMeanOfAProductThatIsReturned) {
  const auto [world, dtype, k, n] = GetParam();
  const ValueId x = op("silu", {in({kT * world, k})});
  const Node fused =
      builder_.node("fused_matmul_reduce_scatter", {x, in({k, n})}, scattering(0, "avg", true));
  expect_right({fused.outputs[0], fused.outputs[1]});
}

// A4-14 to A4-16: the dim goes in front, by another name or by moving it.
TEST_P(Chunks, AlongTheSecondDim) {
  const auto [world, dtype, k, n] = GetParam();
  for (const std::int64_t batch : {1, 2}) {
    builder_ = GraphBuilder(40, world);
    const ValueId w = in({k, n});
    const Node gathered =
        builder_.node("fused_all_gather_matmul", {in({batch, kT, k}), w}, gathering(1, true));
    const ValueId scattered = op("fused_matmul_reduce_scatter", {in({batch, kT * world, k}), w},
                                 scattering(-2, "sum", false));
    expect_right({gathered.outputs[0], gathered.outputs[1], scattered});
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}x{}_{}_{}", c.world, dtype_name(c.dtype), c.k, c.n);
}

INSTANTIATE_TEST_SUITE_P(Small, Chunks,
                         ::testing::Values(Case{2, kF32, 40, 33}, Case{2, kBF16, 24, 40},
                                           Case{3, kF32, 20, 36}, Case{3, kBF16, 33, 17},
                                           Case{4, kF32, 17, 8}, Case{4, kBF16, 64, 72},
                                           Case{6, kF16, 40, 9}, Case{8, kF16, 24, 16}),
                         name_of);

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t world : {2, 3, 4, 6, 8}) {
    for (const DType dtype : {kF32, kBF16, kF16}) {
      for (const std::int64_t k : {40, 129}) {
        for (const std::int64_t n : {33, 64}) cases.push_back({world, dtype, k, n});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(DISABLED_Full, Chunks, ::testing::ValuesIn(all_cases()), name_of);

// The chunk of a rank is that of its place in its own instance of the group.
TEST(MeshChunks, AreThoseOfTheGroup) {
  for (const bool rows : {false, true}) {
    Graph graph("mesh");
    graph.add_symbol("T", {1, 8});
    const auto ranks = [&](bool of_rows) -> std::vector<std::vector<std::int64_t>> {
      if (of_rows) return {{0, 1}, {2, 3}};
      return {{0, 2}, {1, 3}};
    };
    graph.add_group("tp", {2, true, ranks(rows)});
    graph.add_group("dp", {2, true, ranks(!rows)});
    const auto in = [&](const char* name, Shape shape) {
      return graph.add_input({name, {kF32, std::move(shape)}, InputKind::kActivation, true});
    };
    const NodeId gather = graph.add_node("g", "fused_all_gather_matmul",
                                         {in("x", {kT, 8}), in("w", {8, 4})}, gathering(0, true));
    Attrs attrs = scattering(0, "sum", false);
    attrs.insert_or_assign("group", std::string("dp"));
    const NodeId scatter = graph.add_node("r", "fused_matmul_reduce_scatter",
                                          {graph.node(gather).outputs[1], in("v", {4, 8})}, attrs);
    graph.add_output(graph.node(gather).outputs[0]);
    graph.add_output(graph.node(scatter).outputs[0]);
    expect_right(graph, {3});
  }
}

// Layers with residual streams, several matmuls on one gather, other dims and other readers.
TEST(RandomChunks, EqualTheReference) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_tp_graph(seed, seed % 2 == 0 ? 2 : 4, false);
    const Bindings bindings{{"t", 2}};
    PassConfig config = chunked();
    config.enable = {"sequence_parallel", "micro_pipeline"};
    const World world = World::open(world_options(world_size(graph)));
    Executable executable = Executable::compile(graph, world, config);
    const RankTensors inputs = random_inputs(graph, bindings, seed);
    EXPECT_TRUE(same_as_reference(graph, run_once(executable, graph, bindings, inputs),
                                  evaluate(graph, inputs, bindings)));
  }
}

/// Products of 8-bit floats, with scales for all of A, for the rows of A, and for those of a shard.
enum class Scale { kOne, kRows, kShardRows };

class ScaledChunks : public ::testing::TestWithParam<Scale> {
 protected:
  static ValueId scale(GraphBuilder& b, const Shape& rows) {
    return b.in(kF32, GetParam() == Scale::kOne ? Shape{} : rows);
  }
};

TEST_P(ScaledChunks, GatherAndScatter) {
  for (const std::int64_t world : {2, 3}) {
    GraphBuilder b(40, world);
    const ValueId w = b.in(kF8, {32, 24});
    const ValueId of_w = b.in(kF32, {1, 24});
    const Dim rows = GetParam() == Scale::kShardRows ? kT : kT * world;
    std::vector<ValueId> outputs = {b.op("fused_all_gather_scaled_matmul",
                                         {b.in(kF8, {kT, 32}), w, scale(b, {rows, 1}), of_w},
                                         gathering(0, false))};
    if (GetParam() != Scale::kShardRows) {
      Attrs attrs = scattering(0, "sum", false);
      attrs.emplace("bias", true);
      outputs.push_back(b.op(
          "fused_scaled_matmul_reduce_scatter",
          {b.in(kF8, {kT * world, 32}), w, scale(b, {rows, 1}), of_w, b.in(kBF16, {24})}, attrs));
    }
    expect_right(b.take(outputs), {1, 8});
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScaledChunks,
                         ::testing::Values(Scale::kOne, Scale::kRows, Scale::kShardRows),
                         [](const auto& info) {
                           return info.param == Scale::kOne    ? "one"
                                  : info.param == Scale::kRows ? "rows"
                                                               : "rows_of_a_shard";
                         });

}  // namespace
}  // namespace braid::testing
