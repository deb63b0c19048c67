// How pipelines in chunks run: what overlaps, what follows what, and whose memory it is.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "braid/error.h"
#include "codegen/graph_target.h"
#include "findings.h"
#include "lowering/passes.h"
#include "run/chunks.h"
#include "run/graph_builder.h"
#include "run/run_graph.h"
#include "runtime/compile/compile_program.h"
#include "runtime/exec/executable_impl.h"
#include "runtime/prepare_with_zeros.h"

namespace braid::testing {
namespace {

// Chunks of an output are those of the memory that the caller gave for it.
TEST(BoundChunks, LieInTheCallersMemory) {
  GraphBuilder b(8, 2);
  const ValueId y = b.op("fused_all_gather_matmul", {b.in(kF32, {kT, 8}), b.in(kF32, {8, 4})},
                         gathering(0, false));
  const Graph graph = b.take({y});
  const Bindings bindings{{"T", 4}};
  const World world = World::open(world_options(2));
  Executable executable = Executable::compile(graph, world, chunked());
  const std::string& name = graph.value(y).name;
  constexpr std::size_t kBytes = 8 * 4 * sizeof(float);
  std::vector<std::unique_ptr<Memory>> given;
  for (int rank = 0; rank < 2; ++rank) {
    given.push_back(world.device().allocate(rank, kBytes));
    executable.bind(rank, name, {given.back()->address(), kF32, {8, 4}});
  }
  const RankTensors inputs = random_inputs(graph, bindings, 3);
  run_once(executable, graph, bindings, inputs);
  const RankTensors expected = evaluate(graph, inputs, bindings);
  for (int rank = 0; rank < 2; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    HostTensor got = expected[r][0];
    const std::unique_ptr<Stream> stream = world.device().create_stream(rank);
    stream->copy_to_host(got.data.data(), given[r]->address(), kBytes);
    stream->synchronize();
    EXPECT_LE(relative_error(got, expected[r][0]), 1e-5);
  }
}

// A trace shows work on the own chunk before the last one of the others has arrived: on a busy
// machine not each one, but none would if the work waited.
TEST(ChunkedTrace, TheOwnChunkDoesNotWaitForTheOthers) {
  GraphBuilder b(40, 3);
  const ValueId x = b.op("silu", {b.in(kF32, {kT, 64})});
  const ValueId y = b.op("fused_all_gather_matmul", {x, b.in(kF32, {64, 64})}, gathering(0, false));
  const Graph graph = b.take({y});
  // Ranks that share a GPU wait for its multiprocessors, too.
  const World world = World::open(cpu_world_options(3));
  Executable executable = Executable::compile(graph, world, chunked());
  prepare_with_zeros(executable, world, {{"T", 32}});
  std::set<int> early;
  for (int run = 0; run < 50 && early.size() < 3; ++run) {
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
      if (matmuls[0].begin_us < copies[1].end_us) early.insert(rank);
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(copies[k].stream, 1);
        EXPECT_GE(matmuls[k + 1].begin_us, copies[k].end_us);
      }
    }
  }
  EXPECT_EQ(early.size(), 3);
}

/// Two pipelines, the second on what the first one made, and no host in between.
Graph two_layers() {
  GraphBuilder b(4, 2);
  const ValueId w = b.in(kF32, {4, 4});
  ValueId x = b.in(kF32, {kT, 4});
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId y = b.op("fused_all_gather_matmul", {b.op("silu", {x}), w}, gathering(0, false));
    x = b.op("fused_matmul_reduce_scatter", {b.op("relu", {y}), w}, scattering(0, "sum", false));
  }
  return b.take({x});
}

/// The same without matmuls, for gathers and scatters as copies.
Graph two_layers_of_collectives() {
  GraphBuilder b(4, 2);
  ValueId x = b.in(kF32, {kT, 4});
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId gather = b.op("all_gather_into_tensor", {b.op("silu", {x})}, kTp);
    const ValueId all = b.op("relu", {b.op("wait_tensor", {gather})});
    x = b.op("wait_tensor", {b.op("reduce_scatter_tensor", {all}, scattered("sum"))});
  }
  return b.take({x});
}

struct Layers {
  const char* name;
  Graph (*graph)();
  PassConfig (*config)();
  int needed;  ///< barriers, and records and waits of a copy's event
};
class ChunkedRuns : public ::testing::TestWithParam<Layers> {};
INSTANTIATE_TEST_SUITE_P(Of, ChunkedRuns,
                         ::testing::Values(Layers{"Matmuls", two_layers, chunked, 4 + 2 * 4},
                                           Layers{"Collectives", two_layers_of_collectives,
                                                  by_copies, 4 + 2 * 4}),
                         [](const auto& info) { return info.param.name; });

// Sizes in turn, one run upon the other: chunks lie elsewhere each time.
TEST_P(ChunkedRuns, OfSeveralSizesFollowEachOther) {
  const Graph graph = GetParam().graph();
  const World world = World::open(world_options(2));
  Executable executable = Executable::compile(graph, world, GetParam().config());
  std::vector<Executable::Plan> plans;
  for (const std::int64_t tokens : {1, 3, 4}) plans.push_back(executable.prepare({{"T", tokens}}));
  const RankTensors inputs = random_inputs(graph, {{"T", 4}}, 5);
  set_inputs(executable, graph, inputs);
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

/// The error of runs of the program that overtake each other; empty if there is none.
std::string verdict(const Graph& graph, const Program& program, const ProgramCode& code,
                    const std::string& schedule) {
  WorldOptions options = cpu_world_options(2);
  options.sanitize = kCheckAll;
  options.schedule = parse_schedule(schedule);
  const World world = World::open(options);
  Executable executable = Executable::Impl::make(world, program, code);
  const Bindings bindings{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  try {
    const RankTensors got = run_once(executable, graph, bindings, inputs);
    const auto right = same_as_reference(graph, got, evaluate(graph, inputs, bindings));
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
  const std::vector<Finding> findings = found_by(world.device());
  return findings.empty() ? "" : findings[0].text();
}

Program program_of(const Graph& graph, const PassConfig& config) {
  PassContext context;
  context.target = least_target(graph);
  context.config = config;
  return lower(graph, context);
}

std::string schedule(int seed) {
  return seed % 2 == 0 ? fmt::format("delay:{}", seed) : std::to_string(seed);
}

// A4-06 [D]: runs overtake each other in many orders, and nobody reads too early or too late.
TEST_P(ChunkedRuns, AreRightInManyInterleavings) {
  const char* given = std::getenv("BRAID_SCHEDULES");
  const int schedules = given == nullptr ? 50 : std::atoi(given);
  const Graph graph = GetParam().graph();
  const Program program = program_of(graph, GetParam().config());
  const ProgramCode code = compile_program(program);
  for (int seed = 1; seed <= schedules; ++seed) {
    ASSERT_EQ(verdict(graph, program, code, schedule(seed)), "") << "schedule " << schedule(seed);
  }
}

// (Lowering refuses such plans.)
TEST_P(ChunkedRuns, AreWrongWithoutABarrierOrTheEventOfACopy) {
  const Graph graph = GetParam().graph();
  const Program program = program_of(graph, GetParam().config());
  const ProgramCode code = compile_program(program);
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
  EXPECT_EQ(removed, GetParam().needed);
}

}  // namespace
}  // namespace braid::testing
