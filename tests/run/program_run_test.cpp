// Plans that were written and read back, or written by hand, run as those that were just made.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "codegen/graph_target.h"
#include "findings.h"
#include "ir/text_file.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/program.h"
#include "run/run_graph.h"
#include "runtime/compile/artifact.h"
#include "runtime/prepare_with_zeros.h"
#include "runtime/temporary_directory.h"
#include "source_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

World open_world(std::int64_t ranks, Checks sanitize = kCheckNothing) {
  WorldOptions options = testing::cpu_world_options(ranks);
  options.sanitize = sanitize;
  return World::open(options);
}

void run_on_its_own(Executable& executable) { executable.run(); }

RankTensors run(Executable& executable, const Graph& interface, const Bindings& bindings,
                const RankTensors& inputs, const std::vector<std::string>& outputs,
                const std::function<void(Executable&)>& start = run_on_its_own) {
  executable.prepare(bindings);
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < inputs[rank].size(); ++i) {
      executable.set_input(static_cast<int>(rank), interface.inputs()[i].name, inputs[rank][i]);
    }
  }
  executable.poison_outputs();
  start(executable);
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

TEST(MemoryEstimate, IsWhatIsAllocated) {
  const Graph graph =
      load_graph(fmt::format("{}/examples/llama_mlp.json", testing::source_directory()));
  const World world = open_world(world_size(graph));
  std::string estimated;
  std::string allocated;
  for (const ArenaReport& arena : Executable::memory_estimate(graph, world)) {
    estimated += fmt::format("{} {}\n", arena.name, arena.bytes);
  }
  for (const ArenaReport& arena : Executable::compile(graph, world).arenas()) {
    allocated += fmt::format("{} {}\n", arena.name, arena.bytes);
  }
  EXPECT_EQ(estimated, allocated);
  EXPECT_THAT(estimated, HasSubstr("symmetric:tp"));
}

TEST(PagesThatFit, FillTheBytesThatAreGiven) {
  const auto with_pages = [](std::int64_t pages) {
    const std::string path = testing::source_directory() + "/examples/llama_attention.json";
    std::string text = read_text(path, kMaxGraphBytes);
    const std::string old = "[32, 16, 2, 64]";
    for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old)) {
      text.replace(at, old.size(), fmt::format("[{},16, 2, 64]", pages));
    }
    return parse_graph(text);
  };
  const Graph graph = with_pages(32);
  const World world = open_world(world_size(graph));
  const auto needs = [&](std::int64_t pages) {
    std::int64_t bytes = 0;
    for (const ArenaReport& arena : Executable::memory_estimate(with_pages(pages), world)) {
      bytes += arena.bytes;
    }
    return bytes;
  };
  // 16 keys and 16 values, of 2 heads of 64 elements.
  EXPECT_EQ(needs(33) - needs(32), 2 * 16 * 2 * 64 * 2);
  for (const std::int64_t pages : {1, 32, 1000}) {
    const std::int64_t bytes = needs(pages);
    EXPECT_EQ(Executable::pages_that_fit(graph, world, bytes), pages);
    EXPECT_EQ(Executable::pages_that_fit(graph, world, bytes - 1), pages - 1);
    EXPECT_EQ(Executable::pages_that_fit(graph, world, needs(pages + 1) - 1), pages);
  }
  EXPECT_EQ(Executable::pages_that_fit(graph, world, 1000), 0);
  const Graph other =
      load_graph(fmt::format("{}/examples/llama_mlp.json", testing::source_directory()));
  EXPECT_EQ(testing::error_of([&] { (void)Executable::pages_that_fit(other, world, 1000); }),
            "llama_mlp: has no paged_attention; expected one");
}

class ProgramRun : public ::testing::TestWithParam<const char*> {};

TEST_P(ProgramRun, IsTheRunOfTheGraphBitForBit) {
  const TemporaryDirectory directory;
  const Graph graph =
      load_graph(fmt::format("{}/examples/{}.json", testing::source_directory(), GetParam()));
  Bindings bindings;
  for (const auto& [name, symbol] : graph.symbols()) bindings[name] = symbol.min;
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  std::vector<std::string> outputs;
  for (ValueId id : graph.outputs()) outputs.push_back(graph.value(id).name);

  const World world = open_world(world_size(graph));
  Executable direct = Executable::compile(graph, world);
  const RankTensors expected = run(direct, graph, bindings, inputs, outputs);

  direct.save(directory.path().string());
  const std::string path = (directory.path() / "program.json").string();
  Executable loaded = Executable::load(path, world);
  EXPECT_EQ(loaded.program_hash(), direct.program_hash());
  for (const KernelReport& kernel : loaded.kernels()) EXPECT_EQ(kernel.compile_ms, 0);
  expect_same_bits(expected, run(loaded, graph, bindings, inputs, outputs));

  // A plan that is read again is the plan that was written, kernels and all.
  const TemporaryDirectory again;
  loaded.save(again.path().string());
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(read_text((again.path() / name).string(), kMaxGraphBytes),
              read_text(entry.path().string(), kMaxGraphBytes))
        << name;
  }

  // Without its kernels, too.
  std::filesystem::remove(directory.path() / "code.json");
  Executable compiled = Executable::load(path, world);
  expect_same_bits(expected, run(compiled, graph, bindings, inputs, outputs));
}

INSTANTIATE_TEST_SUITE_P(Examples, ProgramRun,
                         ::testing::Values("tp_mlp", "llama_mlp", "bert_block", "vision_mlp",
                                           "llama_attention", "mixtral", "gpt_oss"),
                         [](const auto& info) { return std::string(info.param); });

template <class Load>
std::string refusal_of(const Load& load) {
  try {
    load();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  return "";
}

std::string problem(const std::string& path, const World& world) {
  return refusal_of([&] { (void)Executable::load(path, world); });
}

std::string refusal(const std::string& text) {
  return refusal_of([&] { (void)parse_program(text); });
}

TEST(ProgramRun, DamagedKernelsAreRefused) {
  const TemporaryDirectory directory;
  const Graph graph =
      load_graph(fmt::format("{}/examples/tp_mlp.json", testing::source_directory()));
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

std::string by_hand(const std::string& name) {
  std::ifstream file(fmt::format("{}/tests/run/{}.json", testing::source_directory(), name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Two products on two streams and their sum, written by hand.
TEST(TwoStreams, AHandWrittenPlanRuns) {
  const std::string path = testing::source_directory() + "/tests/run/two_streams.json";
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

/// Begins are when the stream came to the step: s waited for p, which is on another stream.
TEST(TwoStreams, ATraceSaysWhenEachStepRan) {
  const std::string path = testing::source_directory() + "/tests/run/two_streams.json";
  const World world = open_world(1);
  Executable executable = Executable::load(path, world);
  EXPECT_THROW((void)executable.trace(), Error) << "before prepare";
  prepare_with_zeros(executable, world, {});
  for (int run = 0; run < 2; ++run) {
    const std::vector<StepTime> steps = executable.trace();
    ASSERT_EQ(steps.size(), 3);
    std::map<std::string, StepTime> by_name;
    for (const StepTime& step : steps) {
      EXPECT_EQ(step.rank, 0);
      EXPECT_GE(step.begin_us, 0);
      EXPECT_GT(step.end_us, step.begin_us);
      by_name.emplace(step.name, step);
    }
    EXPECT_EQ(by_name.at("p").stream, 1);
    EXPECT_EQ(by_name.at("q").stream, 0);
    EXPECT_EQ(by_name.at("p").what, "gemm");
    EXPECT_EQ(by_name.at("s").ops, "add");
    EXPECT_GE(by_name.at("s").begin_us, by_name.at("p").end_us);
    EXPECT_GE(by_name.at("s").begin_us, by_name.at("q").end_us);
  }
}

TEST(TwoStreams, WithoutAnEventItIsRefused) {
  const std::string good = by_hand("two_streams");
  EXPECT_EQ(refusal(good), "");
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
    EXPECT_THAT(refusal(text), kind == "event_wait"
                                   ? HasSubstr("reads 'p' while step 0 'p' may still write it")
                                   : HasSubstr("waits for event 0, which no step before it"));
  }
}

/// An all-gather by copies alone: into the arena, a barrier, out of the peers' arenas.
class GatherByCopies {
 public:
  explicit GatherByCopies(Checks sanitize)
      : world_(open_world(3, sanitize)),
        executable_(Executable::load(
            testing::source_directory() + "/tests/run/gather_by_copies.json", world_)) {}

  void run_and_compare(std::uint64_t seed,
                       const std::function<void(Executable&)>& start = run_on_its_own) {
    const Graph interface = parse_graph(R"({"braid": 1, "groups": {"tp": {"size": 3}},
      "inputs": [{"name": "x", "dtype": "f32", "shape": [64], "per_rank": true}],
      "nodes": [], "outputs": ["x"]})");
    const RankTensors inputs = random_inputs(interface, {}, seed);
    const RankTensors results = run(executable_, interface, {}, inputs, {"y0", "y1", "y2"}, start);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      for (std::size_t shift = 0; shift < 3; ++shift) {
        EXPECT_TRUE(results[rank][shift].data == inputs[(rank + shift) % 3][0].data)
            << "rank " << rank << ", the shard " << shift << " ranks on";
      }
    }
  }
  World& world() { return world_; }
  Executable& executable() { return executable_; }

 private:
  World world_;
  Executable executable_;
};

TEST(Barriers, AHandWrittenPlanGathersByCopies) {
  GatherByCopies plan(kCheckAll);
  EXPECT_EQ(plan.executable().launches(), 2);
  EXPECT_EQ(plan.executable().kernels().at(0).template_name, "barrier");
  for (const std::uint64_t seed : {1, 2, 3}) plan.run_and_compare(seed);  // on the same flags
  for (const Finding& finding : found_by(plan.world().device())) ADD_FAILURE() << finding.text();
}

TEST(Barriers, NobodyReadsWhileOneIsLate) {
  GatherByCopies plan(kCheckNothing);
  plan.run_and_compare(1);
  Device& device = plan.world().device();
  const std::unique_ptr<Memory> gate = device.allocate(1, 4);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Stream*> lanes;
  for (int rank = 0; rank < 3; ++rank) {
    streams.push_back(device.create_stream(rank));
    lanes.push_back(streams.back().get());
  }
  streams[1]->fill(gate->address(), 0, 4);
  streams[1]->synchronize();
  streams[1]->wait_value(gate->address(), 1);
  plan.run_and_compare(2, [&](Executable& executable) {
    executable.run(lanes);
    // The others have time to do what they may: without a barrier, to take what is there of before.
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    device.create_stream(0)->write_value(gate->address(), 1);
  });
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Barriers, APlanWithoutOneIsRefused) {
  const Program good = parse_program(by_hand("gather_by_copies"));
  EXPECT_EQ(refusal(to_json(good)), "");
  const auto without = [&](int step) {
    Program program = good;
    program.steps.erase(program.steps.begin() + step);
    const std::vector<StepRange> ranges = lifetimes(program, StepOrder(program.steps));
    for (std::size_t b = 0; b < ranges.size(); ++b) {
      program.buffers[b].first_step = ranges[b].first;
      program.buffers[b].last_step = ranges[b].last;
    }
    return refusal(to_json(program, /*with_hash=*/false));
  };
  EXPECT_THAT(without(1), HasSubstr("step 2 'of the next' reads 'shard' of a peer where step 0 "
                                    "'put' may not be done: no barrier of 'tp' between"));
  EXPECT_THAT(without(5), HasSubstr("step 3 is the last that reads or writes remotely in 'tp'"));
}

TEST(Barriers, WhatIsNoneIsRefused) {
  const std::string good = by_hand("gather_by_copies");
  const auto broken = [&](std::string_view from, std::string_view to) {
    return refusal(replaced(good, from, to));
  };
  EXPECT_THAT(broken(R"("groups": {"tp": {"size": 3}}, "inputs")", R"("inputs")"),
              HasSubstr("an empty body is a barrier of one group, found 0"));
  EXPECT_THAT(broken(R"({"tp": {"size": 3}}, "inputs")", R"({"tp": {"size": 2}}, "inputs")"),
              HasSubstr("the body's group \"tp\" is not that of the program"));
  EXPECT_THAT(broken(R"("num_warps": 1)", R"("num_warps": 3)"), HasSubstr("found 3; expected a"));
  EXPECT_THAT(broken(R"("flags": 5)", R"("flags": 5, "closing_barrier": true)"),
              HasSubstr("step 1 has a closing barrier, which its kernel does not know"));
  EXPECT_THAT(broken(R"("flags": 5)", R"("flags": 6)"), HasSubstr("shares its flags"));
}

}  // namespace
}  // namespace braid
