// All-gathers inside the kernel of the matmuls that read them: equal to the reference, and bitwise
// equal to the gather and the matmuls as separate kernels.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "braid/error.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"
#include "runtime/device_loader.h"
#include "runtime/prepare_with_zeros.h"

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

/// The result of micro_pipeline and lower_collectives for a gather and its matmul, and for scales.
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

/// Rank 0's trace, where rank 1, in a world of its own, comes so much later.
std::vector<StepTime> trace_of_the_first(const Graph& graph, const PassConfig& config,
                                         std::chrono::milliseconds later) {
  testing::need_cpu_device();
  const std::shared_ptr<Device> device = open_device(DeviceKind::kCpu, {.world = 2, .threads = 2});
  const auto ends = meet_in_process({{0}, {1}}, 60);
  const auto open = [&](std::size_t rank) {
    WorldOptions options;
    options.rendezvous = ends[rank];
    return World::open(options, device);
  };
  const Bindings bindings{{"T", 130}};
  std::thread second([&] {
    const World world = open(1);
    Executable executable = Executable::compile(graph, world, config);
    prepare_with_zeros(executable, world, bindings);
    std::this_thread::sleep_for(later);
    executable.run();
    executable.synchronize();
  });
  const World world = open(0);
  Executable executable = Executable::compile(graph, world, config);
  prepare_with_zeros(executable, world, bindings);
  std::vector<StepTime> steps = executable.trace();
  second.join();
  return steps;
}

// A trace shows own rows being multiplied before the last rows of the other rank have arrived.
TEST(GatherGemmTrace, OwnRowsDoNotWaitForTheOthers) {
  const Graph graph = silu_of_product({2, DType::kBF16, 64, 72, {}}, "in_kernel");
  PassConfig config;
  config.mark_blocks = true;
  double first_own = 1, last_copy = 0;
  // A machine may have no time for rank 0 for long.
  for (const int later : {100, 1000, 10000}) {
    if (first_own < last_copy) break;
    std::map<std::pair<int, int>, StepTime> copies;  // by rank and panel
    std::vector<StepTime> products;
    for (const StepTime& step :
         trace_of_the_first(graph, config, std::chrono::milliseconds(later))) {
      if (step.what == "copy") copies[{step.of_rank, step.panel}] = step;
      if (step.what == "multiply") products.push_back(step);
    }
    ASSERT_EQ(copies.size(), 14U);    // own rows, too; 7 panels of each rank, the last ones empty
    ASSERT_EQ(products.size(), 30U);  // of 2 ranks, 5 panels and 3 columns of tiles
    first_own = 1e30, last_copy = 0;
    for (const StepTime& product : products) {
      EXPECT_LE(product.begin_us, product.end_us);
      if (product.of_rank == 0) {
        first_own = std::min(first_own, product.begin_us);
        continue;
      }
      const StepTime& copy = copies.at({1, product.panel});
      EXPECT_GE(product.begin_us, copy.begin_us);
      last_copy = std::max(last_copy, copy.end_us);
    }
  }
  EXPECT_LT(first_own, last_copy);
}

// Marks do not change what is computed, and what one run noted does not stay for the next.
TEST(GatherGemmTrace, MarksAreOfOneRun) {
  const Graph graph = gated({2, DType::kBF16, 64, 72, {}}, "in_kernel");
  PassConfig config;
  config.mark_blocks = true;
  const World world = World::open(testing::world_options(2));
  Executable executable = Executable::compile(graph, world, config);
  const Bindings many{{"T", 200}}, few{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, many, 8);
  EXPECT_TRUE(testing::same_as_reference(graph, testing::run_once(executable, graph, many, inputs),
                                         evaluate(graph, inputs, many)));
  executable.prepare(few);
  const std::vector<StepTime> steps = executable.trace();
  const auto is_product = [](const StepTime& step) { return step.what == "multiply"; };
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(), is_product), 12);  // 6 on each rank
  Executable another = Executable::compile(graph, world, config);
  prepare_with_zeros(another, world, few);
  EXPECT_EQ(another.trace().size(), steps.size());
}

}  // namespace
}  // namespace braid
