// Plans that were written and read back, or written by hand, run as those that were just made.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "codegen/graph_target.h"
#include "lowering/plan/program.h"
#include "runtime/compile/artifact.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

World open_world(std::int64_t ranks) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = static_cast<int>(ranks);
  return World::open(options);
}

RankTensors run(Executable& executable, const Graph& interface, const Bindings& bindings,
                const RankTensors& inputs, const std::vector<std::string>& outputs) {
  executable.prepare(bindings);
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < inputs[rank].size(); ++i) {
      executable.set_input(static_cast<int>(rank), interface.inputs()[i].name, inputs[rank][i]);
    }
  }
  executable.poison_outputs();
  executable.run();
  executable.synchronize();
  RankTensors results(inputs.size());
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (const std::string& name : outputs) {
      results[rank].push_back(executable.output(static_cast<int>(rank), name));
    }
  }
  return results;
}

void expect_same_bits(const RankTensors& a, const RankTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::size_t i = 0; i < a[rank].size(); ++i) {
      EXPECT_EQ(a[rank][i].data, b[rank][i].data) << "rank " << rank << ", output " << i;
    }
  }
}

class ProgramRun : public ::testing::TestWithParam<const char*> {};

TEST_P(ProgramRun, IsTheRunOfTheGraphBitForBit) {
  const TemporaryDirectory directory;
  const Graph graph = load_graph(fmt::format("{}/examples/{}.json", BRAID_SOURCE_DIR, GetParam()));
  Bindings bindings;
  for (const auto& [name, symbol] : graph.symbols()) bindings[name] = symbol.min;
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  std::vector<std::string> outputs;
  for (ValueId id : graph.outputs()) outputs.push_back(graph.value(id).name);

  const World world = open_world(world_size(graph));
  Executable direct = Executable::compile(graph, world);
  const RankTensors expected = run(direct, graph, bindings, inputs, outputs);

  (void)write_artifact(graph, least_target(graph), directory.path(), {});
  const std::string path = (directory.path() / "program.json").string();
  Executable loaded = Executable::load(path, world);
  EXPECT_EQ(loaded.program_hash(), direct.program_hash());
  for (const KernelReport& kernel : loaded.kernels()) EXPECT_EQ(kernel.compile_ms, 0);
  expect_same_bits(expected, run(loaded, graph, bindings, inputs, outputs));

  // Without its kernels, too.
  std::filesystem::remove(directory.path() / "code.json");
  Executable compiled = Executable::load(path, world);
  expect_same_bits(expected, run(compiled, graph, bindings, inputs, outputs));
}

INSTANTIATE_TEST_SUITE_P(Examples, ProgramRun,
                         ::testing::Values("tp_mlp", "llama_mlp", "bert_block", "vision_mlp"),
                         [](const auto& info) { return std::string(info.param); });

std::string problem(const std::string& path, const World& world) {
  try {
    (void)Executable::load(path, world);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  return "";
}

TEST(ProgramRun, DamagedKernelsAreRefused) {
  const TemporaryDirectory directory;
  const Graph graph = load_graph(fmt::format("{}/examples/tp_mlp.json", BRAID_SOURCE_DIR));
  (void)write_artifact(graph, least_target(graph), directory.path(), {});
  const World world = open_world(world_size(graph));
  const std::string path = (directory.path() / "program.json").string();
  std::filesystem::path ptx;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().extension() == ".ptx") ptx = entry.path();
  }
  std::ofstream(ptx, std::ios::app) << " ";
  EXPECT_THAT(problem(path, world), HasSubstr(ptx.string() + ": found a file with the hash"));
  std::filesystem::remove(ptx);
  EXPECT_THAT(problem(path, world), HasSubstr("no such file"));
  EXPECT_THAT(problem(path, open_world(2 * world_size(graph))), HasSubstr("the world has"));
}

std::string two_streams() {
  std::ifstream file(std::string(BRAID_SOURCE_DIR) + "/tests/run/two_streams.json");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Two products on two streams and their sum, written by hand.
TEST(TwoStreams, AHandWrittenPlanRuns) {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "program.json").string();
  std::ofstream(path) << two_streams();
  const World world = open_world(1);
  Executable executable = Executable::load(path, world);
  const Graph graph = parse_graph(R"({"braid": 1, "name": "two_streams",
    "inputs": [{"name": "x", "dtype": "f32", "shape": [32, 32]},
               {"name": "y", "dtype": "f32", "shape": [32, 32]},
               {"name": "w", "dtype": "f32", "shape": [32, 32], "kind": "parameter"}],
    "nodes": [{"name": "p", "op": "mm", "inputs": ["x", "w"]},
              {"name": "q", "op": "mm", "inputs": ["y", "w"]},
              {"name": "s", "op": "add", "inputs": ["p", "q"]}],
    "outputs": ["s"]})");
  const RankTensors inputs = random_inputs(graph, {}, 7);
  const RankTensors results = run(executable, graph, {}, inputs, {"s"});
  EXPECT_LE(relative_error(results[0][0], evaluate(graph, inputs, {})[0][0]), 1e-5);
}

TEST(TwoStreams, WithoutAnEventItIsRefused) {
  const std::string good = two_streams();
  EXPECT_NO_THROW((void)parse_program(good));
  for (const std::string_view kind : {"event_record", "event_wait"}) {
    std::string text = good;
    const std::size_t at = text.find(kind);
    ASSERT_NE(at, std::string::npos);
    const std::size_t from = text.rfind('\n', at);
    const std::size_t to = text.find('\n', at);
    text.erase(from, to - from);
    // One step less in every lifetime that reached the end.
    for (std::size_t last = 0; (last = text.find("\"last_step\": 4", last)) != text.npos;) {
      text[last + 13] = '3';
    }
    try {
      (void)parse_program(text);
      ADD_FAILURE() << "without " << kind;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), kind == "event_wait"
                                    ? HasSubstr("reads 'p' while step 0 'p' may still write it")
                                    : HasSubstr("waits for event 0, which no step before it"));
    }
  }
}

}  // namespace
}  // namespace braid
