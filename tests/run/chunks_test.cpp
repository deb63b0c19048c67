// Fused collectives and matmuls in chunks: copies from peers on a stream of their own while the
// chunks that are there are multiplied.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "braid/error.h"
#include "codegen/graph_target.h"
#include "lowering/passes.h"
#include "lowering/random_tp_graph.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"
#include "runtime/compile/compile_program.h"

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

// A4-14 to A4-16: the dim goes in front, by another name or by moving it.
TEST_P(Chunks, AlongTheSecondDim) {
  const auto [world, dtype, k, n] = GetParam();
  for (const std::int64_t batch : {1, 2}) {
    builder_ = testing::GraphBuilder(40, world);
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
    expect_right(graph, {{"T", 3}}, 9);
  }
}

// A trace shows work on the own chunk before the last one of the others has arrived.
TEST(ChunkedTrace, TheOwnChunkDoesNotWaitForTheOthers) {
  testing::GraphBuilder b(40, 3);
  const ValueId x = b.op("silu", {b.in(kF32, {kT, 64})});
  const ValueId y = b.op("fused_all_gather_matmul", {x, b.in(kF32, {64, 64})}, gathering(0, false));
  const Graph graph = b.take({y});
  const World world = World::open(testing::world_options(3));
  Executable executable = Executable::compile(graph, world, chunked());
  executable.prepare({{"T", 32}});
  const std::vector<StepTime> steps = executable.trace();
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<StepTime> matmuls, copies;
    for (const StepTime& step : steps) {
      if (step.rank != rank) continue;
      if (step.what == "gemm") matmuls.push_back(step);
      if (step.what == "copy") copies.push_back(step);
    }
    ASSERT_EQ(matmuls.size(), 3);
    ASSERT_EQ(copies.size(), 2);
    EXPECT_LT(matmuls[0].begin_us, copies[1].end_us);
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(copies[k].stream, 1);
      EXPECT_GE(matmuls[k + 1].begin_us, copies[k].end_us);
    }
  }
}

// Layers with residual streams, several matmuls on one gather, other dims and other readers.
TEST(RandomChunks, EqualTheReference) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = testing::random_tp_graph(seed, seed % 2 == 0 ? 2 : 4, false);
    const Bindings bindings{{"t", 2}};
    PassConfig config = chunked();
    config.enable = {"sequence_parallel", "micro_pipeline"};
    const World world = World::open(testing::world_options(world_size(graph)));
    Executable executable = Executable::compile(graph, world, config);
    const RankTensors inputs = random_inputs(graph, bindings, seed);
    EXPECT_TRUE(testing::same_as_reference(graph,
                                           testing::run_once(executable, graph, bindings, inputs),
                                           evaluate(graph, inputs, bindings)));
  }
}

/// Products of 8-bit floats, with scales for all of A, for the rows of A, and for those of a shard.
enum class Scale { kOne, kRows, kShardRows };

class ScaledChunks : public ::testing::TestWithParam<Scale> {
 protected:
  static ValueId scale(testing::GraphBuilder& b, const Shape& rows) {
    return b.in(kF32, GetParam() == Scale::kOne ? Shape{} : rows);
  }
};

TEST_P(ScaledChunks, GatherAndScatter) {
  for (const std::int64_t world : {2, 3}) {
    testing::GraphBuilder b(40, world);
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
    const Graph graph = b.take(outputs);
    for (const std::int64_t tokens : {1, 8}) expect_right(graph, {{"T", tokens}}, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScaledChunks,
                         ::testing::Values(Scale::kOne, Scale::kRows, Scale::kShardRows),
                         [](const auto& info) {
                           return info.param == Scale::kOne    ? "one"
                                  : info.param == Scale::kRows ? "rows"
                                                               : "rows_of_a_shard";
                         });

/// Two pipelines, the second on what the first one made, and no host in between.
Graph two_layers() {
  testing::GraphBuilder b(4, 2);
  const ValueId w = b.in(kF32, {4, 4});
  ValueId x = b.in(kF32, {kT, 4});
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId y = b.op("fused_all_gather_matmul", {b.op("silu", {x}), w}, gathering(0, false));
    x = b.op("fused_matmul_reduce_scatter", {b.op("relu", {y}), w}, scattering(0, "sum", false));
  }
  return b.take({x});
}

// Sizes in turn, one run upon the other: chunks lie elsewhere each time.
TEST(ChunkedRuns, OfSeveralSizesFollowEachOther) {
  const Graph graph = two_layers();
  const World world = World::open(testing::world_options(2));
  Executable executable = Executable::compile(graph, world, chunked());
  std::vector<Executable::Plan> plans;
  for (const std::int64_t tokens : {1, 3, 4}) plans.push_back(executable.prepare({{"T", tokens}}));
  const RankTensors inputs = random_inputs(graph, {{"T", 4}}, 5);
  for (int rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(rank, graph.inputs()[i].name, inputs[static_cast<std::size_t>(rank)][i]);
    }
  }
  for (int run = 0; run < 300; ++run) executable.run(plans[static_cast<std::size_t>(run % 3)]);
  // The last one was of all four rows.
  const RankTensors expected = evaluate(graph, inputs, {{"T", 4}});
  const std::string& name = graph.value(graph.outputs()[0]).name;
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_LE(
        relative_error(executable.output(rank, name), expected[static_cast<std::size_t>(rank)][0]),
        1e-5);
  }
}

/// What is wrong with runs of the program that overtake each other; empty where nothing is.
std::string verdict(const Graph& graph, const Program& program, const ProgramCode& code,
                    const std::string& schedule) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.sanitize = kCheckAll;
  options.schedule = parse_schedule(schedule);
  const World world = World::open(options);
  Executable executable(world, program, code);
  const Bindings bindings{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  try {
    const RankTensors got = testing::run_once(executable, graph, bindings, inputs);
    const auto right = testing::same_as_reference(graph, got, evaluate(graph, inputs, bindings));
    if (!right) return right.message();
    for (int run = 0; run < 3; ++run) executable.run();
    for (int rank = 0; rank < 2; ++rank) {
      const std::string& name = graph.value(graph.outputs()[0]).name;
      if (executable.output(rank, name).data != got[static_cast<std::size_t>(rank)][0].data) {
        return "another run gives other values";
      }
    }
  } catch (const Error& error) {
    return error.what();
  }
  const std::vector<Finding> findings = world.device().findings();
  return findings.empty() ? "" : findings[0].text();
}

Program in_chunks(const Graph& graph) {
  PassContext context;
  context.target = least_target(graph);
  context.config = chunked();
  return lower(graph, context);
}

std::string schedule(int seed) {
  return seed % 2 == 0 ? fmt::format("delay:{}", seed) : std::to_string(seed);
}

// A4-06 [D]: runs overtake each other in many orders, and nobody reads too early or too late.
TEST(ChunkedRuns, AreRightInManyInterleavings) {
  const char* given = std::getenv("BRAID_SCHEDULES");
  const int schedules = given == nullptr ? 50 : std::atoi(given);
  const Graph graph = two_layers();
  const Program program = in_chunks(graph);
  const ProgramCode code = compile_program(program, nullptr, {});
  for (int seed = 1; seed <= schedules; ++seed) {
    ASSERT_EQ(verdict(graph, program, code, schedule(seed)), "") << "schedule " << schedule(seed);
  }
}

// (Lowering refuses such plans.)
TEST(ChunkedRuns, AreWrongWithoutABarrierOrTheEventOfACopy) {
  const Graph graph = two_layers();
  const Program program = in_chunks(graph);
  const ProgramCode code = compile_program(program, nullptr, {});
  int removed = 0;
  for (std::size_t s = 0; s + 1 < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    const bool record_of_copy = step.kind == Step::Kind::kEventRecord && step.stream == 1;
    const bool wait_for_copy = step.kind == Step::Kind::kEventWait && step.stream == 0;
    if (step.kind != Step::Kind::kBarrier && !record_of_copy && !wait_for_copy) continue;
    ++removed;
    Program without = program;
    without.steps.erase(without.steps.begin() + static_cast<std::ptrdiff_t>(s));
    std::string found;
    for (int seed = 1; seed <= 20 && found.empty(); ++seed) {
      found = verdict(graph, without, code, schedule(seed));
    }
    EXPECT_NE(found, "") << "without step " << s << ", " << step.name;
  }
  EXPECT_EQ(removed, 4 + 2 * 4);
}

}  // namespace
}  // namespace braid
