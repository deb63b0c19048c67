// Programs end to end on the cpu device: graph to PTX to virtual ranks, against the reference.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

// A tensor-parallel MLP with a small hidden size.
Graph tp_mlp(int world, int hidden) {
  constexpr const char* kText = R"({{
    "braid": 1, "name": "tp_mlp",
    "symbols": {{"T": {{"min": 1, "max": 40}}}},
    "groups": {{"tp": {{"size": {0}}}}},
    "inputs": [
      {{"name": "x", "dtype": "bf16", "shape": ["T", {1}]}},
      {{"name": "res", "dtype": "bf16", "shape": ["T", {1}]}},
      {{"name": "g", "dtype": "bf16", "shape": [{1}], "kind": "parameter"}},
      {{"name": "w1", "dtype": "bf16", "shape": [{1}, {1}], "kind": "parameter", "per_rank": true}},
      {{"name": "w2", "dtype": "bf16", "shape": [{1}, {1}], "kind": "parameter", "per_rank": true}}],
    "nodes": [
      {{"name": "h", "op": "mm", "inputs": ["x", "w1"]}},
      {{"name": "a", "op": "silu", "inputs": ["h"]}},
      {{"name": "p", "op": "mm", "inputs": ["a", "w2"]}},
      {{"name": "c", "op": "all_reduce", "inputs": ["p"],
        "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
      {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
      {{"name": "r", "op": "add", "inputs": ["s", "res"]}},
      {{"name": "y", "op": "rms_norm", "inputs": ["r", "g"], "attrs": {{"eps": 1e-5}}}}],
    "outputs": ["y", "r"]}})";
  return parse_graph(fmt::format(kText, world, hidden));
}

World open_world(int ranks) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = ranks;
  return World::open(options);
}

void set_inputs(Executable& executable, const Graph& graph, const RankTensors& inputs) {
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < inputs[rank].size(); ++i) {
      executable.set_input(static_cast<int>(rank), graph.inputs()[i].name, inputs[rank][i]);
    }
  }
}

struct Case {
  int world, hidden, tokens;
};

class TpMlp : public ::testing::TestWithParam<Case> {};

TEST_P(TpMlp, EqualsTheReferenceOnEveryRank) {
  const auto [ranks, hidden, tokens] = GetParam();
  const Graph graph = tp_mlp(ranks, hidden);
  World world = open_world(ranks);
  Executable executable = Executable::compile(graph, world);
  EXPECT_LE(executable.launches(), 3);
  const Bindings bindings{{"T", tokens}};
  executable.prepare(bindings);
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  const RankTensors reference = evaluate(graph, inputs, bindings);
  set_inputs(executable, graph, inputs);
  executable.run();
  for (int rank = 0; rank < ranks; ++rank) {
    const char* names[] = {"y", "r"};
    for (std::size_t i = 0; i < 2; ++i) {
      const HostTensor output = executable.output(rank, names[i]);
      EXPECT_LT(relative_error(output, reference[static_cast<std::size_t>(rank)][i]), 1e-3)
          << "rank " << rank << " " << names[i];
      EXPECT_EQ(output.data, executable.output(0, names[i]).data) << "rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, TpMlp,
                         ::testing::Values(Case{2, 64, 7}, Case{4, 64, 1}, Case{3, 77, 8},
                                           Case{2, 130, 33}),
                         [](const auto& info) {
                           return fmt::format("Ranks{}Hidden{}Tokens{}", info.param.world,
                                              info.param.hidden, info.param.tokens);
                         });

// y of one run is x of the next, so that a run that overtakes another changes the result.
TEST(ExecutableOnCpu, HundredRunsWithoutSynchronisation) {
  constexpr int kRanks = 4;
  constexpr int kHidden = 64;
  constexpr int kTokens = 5;
  const Graph graph = tp_mlp(kRanks, kHidden);
  const Bindings bindings{{"T", kTokens}};
  const RankTensors inputs = random_inputs(graph, bindings, 3);
  World world = open_world(kRanks);
  std::vector<std::unique_ptr<Memory>> memory;
  Executable executable = Executable::compile(graph, world);
  for (int rank = 0; rank < kRanks; ++rank) {
    memory.push_back(world.device().allocate(rank, kTokens * kHidden * 2));
    const DeviceTensor tensor{memory.back()->address(), DType::kBF16, {kTokens, kHidden}};
    executable.bind(rank, "x", tensor);
    executable.bind(rank, "y", tensor);
  }
  executable.prepare(bindings);
  const auto chain = [&](bool synchronize) {
    set_inputs(executable, graph, inputs);
    for (int i = 0; i < 100; ++i) {
      executable.run();
      if (synchronize) executable.synchronize();
    }
    std::vector<HostTensor> outputs;
    for (int rank = 0; rank < kRanks; ++rank) outputs.push_back(executable.output(rank, "y"));
    return outputs;
  };
  const auto expected = chain(true);
  const auto got = chain(false);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(got[rank].data, expected[rank].data) << "rank " << rank;
    EXPECT_EQ(got[rank].data, expected[0].data) << "rank " << rank;
  }
}

TEST(ExecutableOnCpu, OtherBindingsKeepEveryOffset) {
  const Graph graph = tp_mlp(2, 64);
  World world = open_world(2);
  Executable executable = Executable::compile(graph, world);
  const auto offsets = [&] {
    std::vector<std::int64_t> result;
    for (const BufferReport& buffer : executable.buffers()) result.push_back(buffer.offset);
    return result;
  };
  const auto before = offsets();
  for (const std::int64_t tokens : {33, 1, 40}) {
    const Bindings bindings{{"T", tokens}};
    executable.prepare(bindings);
    const RankTensors inputs = random_inputs(graph, bindings, 5);
    set_inputs(executable, graph, inputs);
    executable.run();
    EXPECT_LT(relative_error(executable.output(1, "y"), evaluate(graph, inputs, bindings)[1][0]),
              1e-3);
    EXPECT_EQ(offsets(), before);
  }
}

TEST(ExecutableOnCpu, OutlivesTheHandleOfItsWorld) {
  const Graph graph = tp_mlp(2, 64);
  const Bindings bindings{{"T", 3}};
  const RankTensors inputs = random_inputs(graph, bindings, 5);
  std::optional<World> world = open_world(2);
  std::vector<Executable> executables;
  for (int i = 0; i < 2; ++i) executables.push_back(Executable::compile(graph, *world));
  world.reset();
  executables.erase(executables.begin());
  executables[0].prepare(bindings);
  set_inputs(executables[0], graph, inputs);
  executables[0].run();
  EXPECT_LT(relative_error(executables[0].output(1, "y"), evaluate(graph, inputs, bindings)[1][0]),
            1e-3);
}

// A peer that never comes: the launch of one rank waits past its deadline. The world has two ranks;
// the deadline is so short that no rank can make it.
TEST(ExecutableOnCpu, DeadlineEndsInANamedError) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.threads = 1;
  options.timeout_s = 1e-9;
  World world = World::open(options);
  const Graph graph = tp_mlp(2, 64);
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", 3}};
  executable.prepare(bindings);
  set_inputs(executable, graph, random_inputs(graph, bindings, 1));
  executable.run();
  try {
    executable.synchronize();
    GTEST_SKIP() << "every rank was there in a nanosecond";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("waited for rank"));
  }
  EXPECT_THROW((void)executable.output(0, "y"), Error);
}

// A rank whose kernel faults does not come where the others wait for it.
TEST(ExecutableOnCpu, AFaultOfOneRankEndsTheCollectiveOfAll) {
  const Graph graph = parse_graph(R"({
    "braid": 1, "name": "fault", "groups": {"tp": {"size": 2}},
    "inputs": [{"name": "x", "dtype": "f32", "shape": [64, 1024], "per_rank": true}],
    "nodes": [{"name": "e", "op": "exp", "inputs": ["x"]},
              {"name": "c", "op": "all_reduce", "inputs": ["e"],
               "attrs": {"reduce_op": "sum", "group": "tp"}},
              {"name": "y", "op": "wait_tensor", "inputs": ["c"]}],
    "outputs": ["y"]})");
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.threads = 2;
  options.timeout_s = 60;
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  const auto whole = world.device().allocate(1, 64 * 1024 * 4);
  const RankTensors inputs = random_inputs(graph, {}, 9);
  const RankTensors expected = evaluate(graph, inputs, {});
  for (int round = 0; round < 2; ++round) {
    const auto bind_x = [&](const Memory& memory) {
      executable.bind(1, "x", {memory.address(), DType::kF32, {64, 1024}});
    };
    bind_x(*world.device().allocate(1, 64 * 1024 * 4));  // and gone
    executable.prepare({});
    executable.set_input(0, "x", inputs[0][0]);
    const auto start = std::chrono::steady_clock::now();
    try {
      executable.run();
      executable.synchronize();
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::ContainsRegex("an access to 0x[0-9a-f]+.*: rank 1"));
      bool named = false;
      for (const KernelReport& kernel : executable.kernels()) {
        named = named || std::string_view(error.what()).find(kernel.name) != std::string_view::npos;
      }
      EXPECT_TRUE(named) << error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    bind_x(*whole);
    executable.prepare({});
    set_inputs(executable, graph, inputs);
    executable.run();
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_LT(relative_error(executable.output(rank, "y"), expected[0][0]), 1e-6) << rank;
    }
  }
}

}  // namespace
}  // namespace braid
