// Reductions over ranks within the kernel of the matmul that computes their operand: equal to the
// reference, and bit for bit to the matmul and the collective as kernels of their own.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "codegen/kernel/spec.h"
#include "codegen/tile/remote.h"
#include "findings.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"
#include "run/tile_probe.h"

namespace braid {
namespace {

using testing::GraphBuilder;

const Dim kT = Dim::symbol("T");

struct Case {
  std::int64_t world;
  DType dtype;
  std::int64_t k, n;
  const char* reduce_op;
  std::vector<std::int64_t> rows;  ///< of a rank
  bool all = false;                ///< an all-reduce, not a scatter
  [[nodiscard]] Dim operand_rows() const { return all ? kT : kT * world; }
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << fmt::format("{}x{}{}", c.world, dtype_name(c.dtype), c.all ? "_all" : "");
}

ValueId reduced(GraphBuilder& b, ValueId product, const Case& c, const char* algorithm) {
  b.graph().set_comm_group(product, "tp");
  return b.op(c.all ? "all_reduce" : "reduce_scatter_tensor", {product},
              {{"group", std::string("tp")},
               {"reduce_op", std::string(c.reduce_op)},
               {"algorithm", std::string(algorithm)}});
}

/// Epilogue: a bias and a residual, an activation.
Graph with_bias(const Case& c, const char* algorithm) {
  GraphBuilder b(100, c.world);
  const ValueId product =
      b.op("mm", {b.in(c.dtype, {c.operand_rows(), c.k}), b.in(c.dtype, {c.k, c.n}, "w")});
  const ValueId y = reduced(b, product, c, algorithm);
  const ValueId sum =
      b.op("add", {b.op("add", {y, b.in(c.dtype, {c.n}, "bias")}), b.in(c.dtype, {kT, c.n}, "r")});
  return b.take({b.op("silu", {sum}), sum});
}

/// Epilogue: a norm of whole rows, which are quantised.
Graph with_norm(const Case& c, const char* algorithm) {
  GraphBuilder b(100, c.world);
  const ValueId product =
      b.op("mm", {b.in(c.dtype, {c.operand_rows(), c.k}), b.in(c.dtype, {c.k, c.n}, "w")});
  const ValueId sum =
      b.op("add", {reduced(b, product, c, algorithm), b.in(c.dtype, {kT, c.n}, "r")});
  const ValueId norm = b.op("rms_norm", {sum, b.in(c.dtype, {c.n}, "g")}, {{"eps", 1e-5}});
  return b.take({b.op("to", {norm}, {{"dtype", DType::kF8E4M3}}), norm, sum});
}

/// The product of float8 with a scale for each row and column.
Graph scaled(const Case& c, const char* algorithm) {
  GraphBuilder b(100, c.world);
  const auto f8 = [&](Shape shape) {
    return b.op("to", {b.in(DType::kBF16, std::move(shape))}, {{"dtype", DType::kF8E4M3}});
  };
  const ValueId product =
      b.op("scaled_mm",
           {f8({c.operand_rows(), 64}), f8({64, c.n}), b.in(DType::kF32, {c.operand_rows(), 1}),
            b.in(DType::kF32, {1, c.n})},
           {{"out_dtype", c.dtype}});
  return b.take({b.op("relu", {reduced(b, product, c, algorithm)})});
}

using Made = Graph (*)(const Case&, const char*);

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

std::string kernels_of(const Graph& graph) {
  const World world = World::open(testing::world_options(world_size(graph)));
  std::string names;
  for (const KernelReport& kernel : Executable::compile(graph, world).kernels()) {
    names += fmt::format("{}:{} ", kernel.template_name, kernel.ops);
  }
  return names;
}

class GemmReduce : public ::testing::TestWithParam<Case> {};

TEST_P(GemmReduce, EqualsTheReferenceAndTheKernelsApart) {
  for (const std::int64_t rows : GetParam().rows) {
    for (const Made make : {with_bias, with_norm, scaled}) {
      if (make == scaled && GetParam().dtype == DType::kF32) continue;
      SCOPED_TRACE(fmt::format("{} rows", rows));
      const Graph graph = make(GetParam(), "in_kernel");
      EXPECT_TRUE(testing::matches_reference(graph, {{"T", rows}}, 3));
      expect_same_bits(graph, make(GetParam(), "one_shot"), rows);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, GemmReduce,
                         ::testing::Values(Case{2, DType::kF32, 33, 40, "sum", {1, 20}},
                                           Case{3, DType::kBF16, 72, 130, "avg", {65}},
                                           Case{4, DType::kF16, 128, 64, "sum", {16, 90}},
                                           Case{6, DType::kBF16, 40, 33, "avg", {3}},
                                           Case{8, DType::kBF16, 64, 24, "sum", {7}},
                                           Case{2, DType::kF16, 40, 72, "sum", {1, 70}, true},
                                           Case{3, DType::kF32, 33, 40, "avg", {5}, true},
                                           Case{8, DType::kBF16, 64, 24, "sum", {33}, true}),
                         [](const auto& info) { return ::testing::PrintToString(info.param); });

TEST(GemmReduceKernel, IsOneWithItsMatmulAndWhatFollows) {
  const Case c{2, DType::kBF16, 64, 64, "sum", {}};
  EXPECT_EQ(kernels_of(with_bias(c, "in_kernel")),
            "gemm_reduce:mm+reduce_scatter_tensor+add+add+silu ");
  EXPECT_EQ(kernels_of(with_norm(c, "in_kernel")),
            "gemm_reduce:mm+reduce_scatter_tensor+add+rms_norm+to ");
  EXPECT_EQ(kernels_of(scaled(c, "in_kernel")),
            "elementwise:to elementwise:to gemm_reduce:scaled_mm+reduce_scatter_tensor+relu ");
  EXPECT_EQ(kernels_of(with_norm({2, DType::kBF16, 64, 64, "sum", {}, true}, "in_kernel")),
            "gemm_reduce:mm+all_reduce+add+rms_norm+to ");
}

/// The result of micro_pipeline and lower_collectives for a matmul of three dims and its scatter.
TEST(GemmReduceKernel, AFusedNodeBecomesOne) {
  for (const std::int64_t dim : {0, 1}) {
    GraphBuilder b(100, 2);
    Shape rows{1, 1, 64};
    rows[static_cast<std::size_t>(dim)] = kT * 2;
    if (dim == 0) rows[1] = 3;
    const Node fused = b.node(
        "fused_matmul_reduce_scatter", {b.in(DType::kBF16, rows), b.in(DType::kBF16, {64, 48})},
        {{"group", std::string("tp")}, {"scatter_dim", dim}, {"reduce_op", std::string("avg")}});
    const Graph graph = b.take({b.op("silu", {fused.outputs[0]})});
    PassConfig config;
    config.in_kernel = true;
    const World world = World::open(testing::world_options(2));
    Executable executable = Executable::compile(graph, world, config);
    ASSERT_EQ(executable.kernels().size(), 1);
    EXPECT_EQ(executable.kernels()[0].template_name, "gemm_reduce");
    EXPECT_EQ(executable.kernels()[0].ops, "view+mm+reduce_scatter_tensor+view+silu");
    const Bindings bindings{{"T", 70}};
    const RankTensors inputs = random_inputs(graph, bindings, 6);
    EXPECT_TRUE(testing::same_as_reference(graph,
                                           testing::run_once(executable, graph, bindings, inputs),
                                           evaluate(graph, inputs, bindings)));
  }
}

TEST(GemmReduceKernel, RunsCleanUnderTheSanitizer) {
  for (const Made make : {with_bias, with_norm}) {
    for (const bool all : {false, true}) {
      EXPECT_TRUE(testing::runs_clean(make({2, DType::kBF16, 72, 40, "sum", {}, all}, "in_kernel"),
                                      {{"T", 70}}, 4));
    }
  }
}

// Rows of 4096 elements are added up by 16 warps.
TEST(GemmReduceKernel, LeavesLongRowsToAnotherKernel) {
  EXPECT_EQ(kernels_of(with_norm({2, DType::kBF16, 32, 4096, "sum", {}}, "in_kernel")),
            "gemm_reduce:mm+reduce_scatter_tensor+add elementwise:rms_norm+to ");
}

// The links carry everything except each rank's own part once, and a flag per block and barrier.
TEST(GemmReduceKernel, MovesNoMoreBytesThanItMust) {
  constexpr std::int64_t kRanks = 4, kRows = 33, kColumns = 64;
  const Graph graph = with_bias({kRanks, DType::kBF16, 16, kColumns, "sum", {}}, "in_kernel");
  WorldOptions options = testing::cpu_world_options(kRanks);
  options.count = true;
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", kRows}};
  static_cast<void>(
      testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, 3)));
  std::int64_t moved = 0;
  for (const KernelCounts& kernel : world.device().inspector()->counts()) {
    moved += static_cast<std::int64_t>(kernel.total.peer_bytes);
  }
  const std::int64_t flags = executable.kernels()[0].grid * kRanks * (kRanks - 1) * 4;
  EXPECT_EQ(moved, kRanks * (kRanks - 1) * kRows * kColumns * 2 + 2 * flags);
}

/// The same for an all-reduce, which micro_pipeline fuses into one node.
TEST(GemmReduceKernel, AnAllReduceOfAMatmulBecomesOne) {
  for (const bool scaled : {false, true}) {
    GraphBuilder b(64, 2);
    const auto operand = [&](Shape shape) {
      const ValueId x = b.in(DType::kBF16, std::move(shape));
      return scaled ? b.op("to", {x}, {{"dtype", DType::kF8E4M3}}) : x;
    };
    std::vector<ValueId> inputs{operand({kT, 512}), operand({512, 4096})};
    if (scaled) inputs.insert(inputs.end(), {b.in(DType::kF32, {}), b.in(DType::kF32, {})});
    const ValueId product = b.op(scaled ? "scaled_mm" : "mm", inputs);
    const ValueId sum = b.op("all_reduce", {product},
                             {{"group", std::string("tp")}, {"reduce_op", std::string("sum")}});
    const Graph graph = b.take({b.op("relu", {b.op("wait_tensor", {sum})})});
    PassConfig config;
    config.enable = {"micro_pipeline"};
    config.in_kernel = true;
    const World world = World::open(testing::world_options(2));
    Executable executable = Executable::compile(graph, world, config);
    EXPECT_EQ(executable.kernels().back().template_name, "gemm_reduce");
    EXPECT_EQ(executable.kernels().back().ops,
              fmt::format("{}mm+all_reduce+relu", scaled ? "scaled_" : ""));
    const Bindings bindings{{"T", 33}};
    const RankTensors values = random_inputs(graph, bindings, 6);
    EXPECT_TRUE(testing::same_as_reference(graph,
                                           testing::run_once(executable, graph, bindings, values),
                                           evaluate(graph, values, bindings)));
  }
}

/// A product that split_reductions cuts along K, summed over two ranks; whole where `algorithm` is
/// given, for then the product lies in a communication buffer.
Graph of_long_rows(const char* op, const char* algorithm) {
  GraphBuilder b(64, 2);
  const ValueId product =
      b.op("mm", {b.in(DType::kF32, {kT * 2, 4096}), b.in(DType::kF32, {4096, 64})});
  Attrs attrs{{"group", std::string("tp")}, {"reduce_op", std::string("sum")}};
  if (*algorithm == 0) {
    return b.take({b.op("wait_tensor", {b.op(op, {product}, std::move(attrs))})});
  }
  b.graph().set_comm_group(product, "tp");
  attrs.emplace("algorithm", std::string(algorithm));
  return b.take({b.op(op, {product}, std::move(attrs))});
}

// Apart it may be cut, which gives other bits.
TEST(GemmReduceKernel, AFusedMatmulIsOneChainHoweverItRuns) {
  const World world = World::open(testing::world_options(2));
  const Bindings bindings{{"T", 9}};
  const auto bits = [&](const Graph& graph, const PassConfig& config) {
    Executable executable = Executable::compile(graph, world, config);
    return testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, 5))[0][0]
        .data;
  };
  for (const char* op : {"reduce_scatter_tensor", "all_reduce"}) {
    const Graph graph = of_long_rows(op, "");
    const auto whole = bits(of_long_rows(op, "one_shot"), {});
    EXPECT_NE(bits(graph, {}), whole) << op << " is not cut";
    PassConfig config;
    config.enable = {"micro_pipeline"};
    config.always_pipeline = true;  // in chunks, where there are any
    EXPECT_EQ(bits(graph, config), whole) << op;
    config.in_kernel = true;
    EXPECT_EQ(bits(graph, config), whole) << op;
  }
}

/// Gathers and scatters within the kernels of their matmuls, in turn.
Graph layers(std::int64_t world) {
  const Case c{.world = world, .reduce_op = "sum"};
  GraphBuilder b(40, world);
  ValueId x = b.in(DType::kBF16, {kT, 32});
  const ValueId up = b.in(DType::kBF16, {32, 48}, "up");
  const ValueId down = b.in(DType::kBF16, {48, 32}, "down");
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId shard = b.op("silu", {x});
    b.graph().set_comm_group(shard, "tp");
    const ValueId all =
        b.op("all_gather_into_tensor", {shard},
             {{"group", std::string("tp")}, {"algorithm", std::string("in_kernel")}});
    b.graph().set_comm_group(all, "tp");
    const ValueId wide = b.op("relu", {b.op("mm", {all, up})});
    x = b.op("add", {reduced(b, b.op("mm", {wide, down}), c, "in_kernel"), x});
  }
  return b.take({x});
}

TEST(GemmReduceKernel, OfEverySizeBackToBack) {
  constexpr std::int64_t kSizes[] = {40, 1, 17};
  for (const std::int64_t ranks : {2, 3}) {
    const Graph graph = layers(ranks);
    const World world = World::open(testing::world_options(ranks));
    Executable executable = Executable::compile(graph, world);
    const RankTensors inputs = random_inputs(graph, {{"T", 40}}, 5);
    std::vector<Executable::Plan> plans;
    for (const std::int64_t rows : kSizes) plans.push_back(executable.prepare({{"T", rows}}));
    const RankTensors expected = testing::run_once(executable, graph, {{"T", 40}}, inputs);
    EXPECT_TRUE(testing::same_as_reference(graph, expected, evaluate(graph, inputs, {{"T", 40}})));
    std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
    const std::string& name = graph.value(graph.outputs()[0]).name;
    for (int batch = 0; batch < 4; ++batch) {
      for (int run = 0; run < 25; ++run) executable.run(plans[random() % std::size(kSizes)]);
      executable.run(plans[0]);
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(executable.output(rank, name).data,
                  expected[static_cast<std::size_t>(rank)][0].data)
            << "batch " << batch << ", rank " << rank;
      }
    }
  }
}

/// One tile for each rank's rows, all in one block; runs that overtake each other.
void expect_right(int world_size, bool all, const std::string& schedule, std::uint64_t least) {
  const Graph graph = with_bias({world_size, DType::kF32, 8, 16, "sum", {}, all}, "in_kernel");
  WorldOptions options = testing::cpu_world_options(world_size);
  options.ranks_per_device = 108;
  options.sanitize = kCheckAll;
  options.schedule = parse_schedule(schedule);
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", 2}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  executable.prepare(bindings);
  testing::set_inputs(executable, graph, inputs);
  std::uint64_t interleavings = 0;
  do {
    executable.poison_outputs();
    executable.run();
    if (least == 0) executable.run();
    executable.synchronize();
    for (const Finding& finding : found_by(world.device())) FAIL() << finding.text();
    for (int rank = 0; rank < world_size; ++rank) {
      const std::string& name = graph.value(graph.outputs()[0]).name;
      ASSERT_LE(relative_error(executable.output(rank, name),
                               expected[static_cast<std::size_t>(rank)][0]),
                1e-5);
    }
    ++interleavings;
  } while (least > 0 && world.device().inspector()->next_interleaving());
  EXPECT_GE(interleavings, least);
}

TEST(GemmReduceKernel, IsRightInEveryInterleavingOfTwo) {
  for (const bool all : {false, true}) expect_right(2, all, "all", 25);
}

TEST(GemmReduceKernel, IsRightInManyInterleavingsOfThree) {
  for (int seed = 1; seed <= 20; ++seed) {
    expect_right(3, seed % 4 < 2,
                 seed % 2 == 0 ? fmt::format("delay:{}", seed) : std::to_string(seed), 0);
  }
}

constexpr std::size_t kRows = 20, kDepth = 8, kColumns = 80;  ///< rows of a rank

/// -(x @ w), reduced and scattered, and nothing else.
tile::Program scatter_of_floats(std::int64_t world) {
  Graph body;
  const auto dim = [](std::size_t n) { return Dim(static_cast<std::int64_t>(n)); };
  body.add_group("tp", {world, true, {}});
  const ValueId x = body.add_input({"x", {DType::kF32, {dim(kRows) * world, dim(kDepth)}}});
  const ValueId w = body.add_input({"w", {DType::kF32, {dim(kDepth), dim(kColumns)}}});
  const auto op = [&](const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return body.node(body.add_node("", name, std::move(inputs), std::move(attrs))).outputs[0];
  };
  const ValueId product = op("mm", {x, w});
  body.set_comm_group(product, "tp");
  const ValueId y = op("reduce_scatter_tensor", {product},
                       {{"reduce_op", std::string("sum")},
                        {"group", std::string("tp")},
                        {"algorithm", std::string("in_kernel")}});
  body.add_output(op("neg", {y}));
  body.add_output(product);
  const Target target = Target::parse("sm_80");
  const auto shared = std::make_shared<const Graph>(std::move(body));
  return tile_program({shared, default_config(*shared, target)}, target, 1);
}

TEST(GemmReduceKernel, WritesItsProductIntoThePeersAndMeetsAll) {
  const tile::Program program = scatter_of_floats(3);
  EXPECT_TRUE(tile::meets(program));
  EXPECT_EQ(program.scratch_bytes, 0);
  EXPECT_EQ(tile::remote_accesses(program), (std::vector<RemoteAccess>{{true, 1, true}}));
  EXPECT_EQ(tile::clobbered_operands(program), (std::vector<Clobbered>{{true, 1}}));
}

TEST(GemmReduceKernel, EpochsGoPastZero) {
  for (const int ranks : {2, 3}) {
    const tile::Program program = scatter_of_floats(ranks);
    const auto world = static_cast<std::size_t>(ranks);
    testing::ProbeWorld probe(program, testing::compiled(program), {.world = ranks});
    const auto words =
        static_cast<std::size_t>(program.grid.evaluate({}) + program.flag_slots * program.world);
    // Integers: sums are exact. In run k rank r has the number r + k everywhere.
    constexpr std::size_t kRuns = 5;
    for (int r = 0; r < ranks; ++r) {
      for (std::size_t run = 0; run < kRuns; ++run) {
        const auto number = static_cast<float>(static_cast<std::size_t>(r) + run);
        probe.add_input(r, testing::Floats(world * kRows * kDepth, number));
        probe.add_input(r, testing::Floats(kDepth * kColumns, 1));
        probe.add_output(r, kRows * kColumns);
        probe.add_output(r, 1);  // in the arena
      }
      probe.write_arena(r, testing::kFlagsAt, std::vector<std::uint32_t>(words, 0xfffffffdU));
    }
    for (std::size_t run = 0; run < kRuns; ++run) probe.launch(2 * run, 2 * run);
    ASSERT_TRUE(probe.synchronize());
    for (const Finding& finding : probe.findings()) FAIL() << finding.text();
    for (std::size_t run = 0; run < kRuns; ++run) {
      const std::size_t sum = world * (world - 1) / 2 + world * run;
      const testing::Floats expected(kRows * kColumns, -static_cast<float>(kDepth * sum));
      for (int r = 0; r < ranks; ++r) {
        EXPECT_EQ(probe.output(r, 2 * run, kRows * kColumns), expected) << run << " of " << r;
      }
    }
    EXPECT_EQ(probe.arena_words(0, testing::kFlagsAt, words), std::vector<std::uint32_t>(words, 2));
  }
}

}  // namespace
}  // namespace braid
