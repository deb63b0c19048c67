// All-gathers within the kernel of the matmuls that read them: equal to the reference, and bit for
// bit to the gather and the matmuls as kernels of their own.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"

namespace braid {
namespace {

using testing::GraphBuilder;

const Dim kT = Dim::symbol("T");

struct Case {
  std::int64_t world;
  DType dtype;
  std::int64_t k, n;
  std::vector<std::int64_t> rows;  ///< of a rank
};

/// The gather of what a kernel writes, which algorithm and epilogue lowering might have chosen.
struct Made {
  GraphBuilder b;
  ValueId gathered;
  Made(const Case& c, const char* algorithm) : b(200, c.world) {
    const ValueId x = b.op("neg", {b.in(c.dtype, {kT, c.k})});
    b.graph().set_comm_group(x, "tp");
    gathered = b.op("all_gather_into_tensor", {x},
                    {{"group", std::string("tp")}, {"algorithm", std::string(algorithm)}});
    if (std::string_view(algorithm) == "in_kernel") b.graph().set_comm_group(gathered, "tp");
  }
};

Graph silu_of_product(const Case& c, const char* algorithm) {
  Made made(c, algorithm);
  GraphBuilder& b = made.b;
  const ValueId y = b.op("mm", {made.gathered, b.in(c.dtype, {c.k, c.n}, "w")});
  return b.take({b.op("add", {b.op("silu", {y}), b.in(c.dtype, {kT * c.world, c.n}, "r")})});
}

/// A gated pair, whose gathered operand someone else wants, too.
Graph gated(const Case& c, const char* algorithm) {
  Made made(c, algorithm);
  GraphBuilder& b = made.b;
  const ValueId gate = b.op("mm", {made.gathered, b.in(c.dtype, {c.k, c.n}, "gate")});
  const ValueId up = b.op("mm", {made.gathered, b.in(c.dtype, {c.k, c.n}, "up")});
  const ValueId y = b.op("mul", {b.op("silu", {gate}), up});
  return b.take({y, b.op("exp", {made.gathered})});
}

/// Bits of all outputs at one size.
RankTensors outputs(const Graph& graph, std::int64_t rows, std::uint64_t seed) {
  const World world = World::open(testing::world_options(world_size(graph)));
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", rows}};
  return testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, seed));
}

void expect_same_bits(const Graph& one, const Graph& other, std::int64_t rows) {
  const RankTensors a = outputs(one, rows, 5);
  const RankTensors b = outputs(other, rows, 5);
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::size_t i = 0; i < a[rank].size(); ++i) {
      EXPECT_EQ(a[rank][i].data, b[rank][i].data) << "rank " << rank << ", output " << i;
    }
  }
}

std::string kernel_of(const Graph& graph) {
  const World world = World::open(testing::world_options(world_size(graph)));
  std::string names;
  for (const KernelReport& kernel : Executable::compile(graph, world).kernels()) {
    names += fmt::format("{}:{} ", kernel.template_name, kernel.ops);
  }
  return names;
}

class GatherGemm : public ::testing::TestWithParam<Case> {};

TEST_P(GatherGemm, EqualsTheReferenceAndTheKernelsApart) {
  for (const std::int64_t rows : GetParam().rows) {
    SCOPED_TRACE(fmt::format("{} rows", rows));
    const Graph silu = silu_of_product(GetParam(), "in_kernel");
    EXPECT_TRUE(testing::matches_reference(silu, {{"T", rows}}, 3));
    expect_same_bits(silu, silu_of_product(GetParam(), "one_shot"), rows);
    const Graph pair = gated(GetParam(), "in_kernel");
    EXPECT_TRUE(testing::matches_reference(pair, {{"T", rows}}, 3));
    expect_same_bits(pair, gated(GetParam(), "one_shot"), rows);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, GatherGemm,
    ::testing::Values(Case{2, DType::kF32, 33, 40, {1, 20}}, Case{3, DType::kBF16, 72, 130, {65}},
                      Case{4, DType::kF16, 128, 64, {16, 100}}, Case{8, DType::kBF16, 64, 24, {7}}),
    [](const auto& info) {
      return fmt::format("{}x{}", info.param.world, dtype_name(info.param.dtype));
    });

TEST(GatherGemmKernel, IsOneWithItsMatmulsAndWhatFollows) {
  const Case c{2, DType::kBF16, 64, 64, {}};
  EXPECT_EQ(kernel_of(silu_of_product(c, "in_kernel")),
            "elementwise:neg gather_gemm:all_gather_into_tensor+mm+silu+add ");
  EXPECT_EQ(kernel_of(gated(c, "in_kernel")),
            "elementwise:neg gather_gemm:all_gather_into_tensor+mm+mm+silu+mul elementwise:exp ");
}

TEST(GatherGemmKernel, RunsCleanUnderTheSanitizer) {
  const Case c{2, DType::kBF16, 72, 40, {}};
  EXPECT_TRUE(testing::runs_clean(gated(c, "in_kernel"), {{"T", 70}}, 4));
}

/// What micro_pipeline and lower_collectives make of a gather and its matmul, and of scales too.
TEST(GatherGemmKernel, AFusedNodeBecomesOne) {
  GraphBuilder b(100, 2);
  const ValueId x = b.op("to", {b.in(DType::kBF16, {kT, 64})}, {{"dtype", DType::kF8E4M3}});
  const ValueId w = b.op("to", {b.in(DType::kBF16, {64, 48})}, {{"dtype", DType::kF8E4M3}});
  const Node fused = b.node("fused_all_gather_scaled_matmul",
                            {x, w, b.in(DType::kF32, {kT, 1}), b.in(DType::kF32, {1, 48})},
                            {{"group", std::string("tp")},
                             {"gather_dim", std::int64_t{0}},
                             {"return_A", false},
                             {"out_dtype", DType::kBF16}});
  const ValueId y = b.op("silu", {fused.outputs[0]});
  const Node plain =
      b.node("fused_all_gather_matmul",
             {b.op("neg", {b.in(DType::kBF16, {kT, 64})}), b.in(DType::kBF16, {64, 48})},
             {{"group", std::string("tp")}, {"gather_dim", std::int64_t{0}}, {"return_A", true}});
  const Graph graph = b.take({y, plain.outputs[0], plain.outputs[1]});
  PassConfig config;
  config.in_kernel = true;
  const World world = World::open(testing::world_options(2));
  Executable executable = Executable::compile(graph, world, config);
  int fused_kernels = 0;
  for (const KernelReport& kernel : executable.kernels()) {
    if (kernel.template_name == "gather_gemm") fused_kernels += kernel.launches;
  }
  EXPECT_EQ(fused_kernels, 2);
  for (const std::int64_t rows : {1, 70}) {
    const Bindings bindings{{"T", rows}};
    const RankTensors inputs = random_inputs(graph, bindings, 6);
    EXPECT_TRUE(testing::same_as_reference(graph,
                                           testing::run_once(executable, graph, bindings, inputs),
                                           evaluate(graph, inputs, bindings)));
  }
}

/// Two in a row without the host between them, whose operands share the arena.
TEST(GatherGemmKernel, OneAfterTheOther) {
  GraphBuilder b(100, 3);
  ValueId x = b.in(DType::kBF16, {kT, 64});
  const auto gathered = [&](ValueId v) {
    b.graph().set_comm_group(v, "tp");
    const ValueId g = b.op("all_gather_into_tensor", {v},
                           {{"group", std::string("tp")}, {"algorithm", std::string("in_kernel")}});
    b.graph().set_comm_group(g, "tp");
    return g;
  };
  for (int i = 0; i < 3; ++i) {
    const ValueId y = b.op("mm", {gathered(b.op("neg", {x})), b.in(DType::kBF16, {64, 64})});
    // This rank's rows again.
    x = b.op("shard", {y}, {{"group", std::string("tp")}, {"dim", std::int64_t{0}}});
  }
  const Graph graph = b.take({x});
  EXPECT_TRUE(testing::matches_reference(graph, {{"T", 37}}, 3));
  EXPECT_TRUE(testing::runs_clean(graph, {{"T", 37}}, 4));
}

}  // namespace
}  // namespace braid
