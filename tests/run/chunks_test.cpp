// Fused collectives and matmuls in chunks: copies from peers on a stream of their own while the
// chunks that are there are multiplied.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

const Dim kT = Dim::symbol("T");
constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16, kF8 = DType::kF8E4M3;

PassConfig chunked() {
  PassConfig config;
  config.always_pipeline = true;
  return config;
}

/// Of the graph in chunks: the reference's values, twice in a row, and the bits of the graph with
/// its collectives and matmuls apart.
void expect_right(const Graph& graph, const Bindings& bindings, std::uint64_t seed) {
  const World world = World::open(testing::world_options(world_size(graph)));
  Executable in_chunks = Executable::compile(graph, world, chunked());
  EXPECT_NE(in_chunks.program_json().find("event_wait"), std::string::npos);
  Executable apart = Executable::compile(graph, world);
  EXPECT_EQ(apart.program_json().find("event_wait"), std::string::npos);
  for (const std::uint64_t run : {seed, seed + 1}) {
    const RankTensors inputs = random_inputs(graph, bindings, run);
    const RankTensors got = testing::run_once(in_chunks, graph, bindings, inputs);
    EXPECT_TRUE(testing::same_as_reference(graph, got, evaluate(graph, inputs, bindings)));
    const RankTensors expected = testing::run_once(apart, graph, bindings, inputs);
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
    const Graph graph = builder_.take(outputs);
    for (const std::int64_t tokens : {1, 7}) {
      SCOPED_TRACE(tokens);
      braid::expect_right(graph, {{"T", tokens}}, static_cast<std::uint64_t>(tokens));
    }
  }

  testing::GraphBuilder builder_;
};

Attrs gathering(std::int64_t dim, bool return_a) {
  return {{"group", std::string("tp")}, {"gather_dim", dim}, {"return_A", return_a}};
}
Attrs scattering(std::int64_t dim, const char* reduce_op, bool return_mm) {
  return {{"group", std::string("tp")},
          {"scatter_dim", dim},
          {"reduce_op", std::string(reduce_op)},
          {"return_mm", return_mm}};
}

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

INSTANTIATE_TEST_SUITE_P(Small, Chunks,
                         ::testing::Values(Case{2, kF32, 40, 33}, Case{2, kBF16, 24, 40},
                                           Case{3, kF32, 20, 36}, Case{3, kBF16, 33, 17},
                                           Case{4, kF32, 17, 8}, Case{4, kBF16, 64, 72}),
                         [](const auto& info) {
                           return fmt::format("{}x{}_{}_{}", info.param.world,
                                              dtype_name(info.param.dtype), info.param.k,
                                              info.param.n);
                         });

}  // namespace
}  // namespace braid
