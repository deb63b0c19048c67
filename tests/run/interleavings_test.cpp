// Every order of synchronising operations, and orders that hold somebody back: on kernels whose
// number of orders is known, and on braid's own all-reduces.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "findings.h"
#include "run/run_graph.h"
#include "runtime/compile/compiler.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

struct Explored {
  std::uint64_t runs = 0;
  std::vector<Finding> findings;
  std::set<std::vector<int>> results;  ///< of the 16 words, afterwards
};

/// Runs a kernel `k(int* words)` on 16 words of zeros, which all ranks share.
Explored explore(const std::string& body, std::uint32_t blocks, const std::string& schedule,
                 int world = 1, std::uint64_t most = 10000) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = world;
  options.sanitize = kCheckAll;
  options.schedule = parse_schedule(schedule);
  const World opened = World::open(options);
  Device& device = opened.device();
  const std::string text =
      "extern \"C\" __global__ void k(int* p, int rank) { const int block = blockIdx.x; " + body +
      " }";
  const auto compiled = compile_kernel({"k", text}, Target::parse("sm_80"), nullptr, true);
  const auto words = device.allocate(0, 64);
  const std::uint64_t address = words->address();
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int rank = 0; rank < world; ++rank) {
    modules.push_back(device.load(rank, compiled.image));
    streams.push_back(device.create_stream(rank));
  }
  Explored explored;
  std::vector<int> result(16);
  do {
    streams[0]->fill(address, 0, 64);
    streams[0]->synchronize();
    for (int rank = 0; rank < world; ++rank) {
      const void* const arguments[] = {&address, &rank};
      streams[static_cast<std::size_t>(rank)]->launch(
          modules[static_cast<std::size_t>(rank)]->function("k"), {{blocks}, {32}}, arguments);
    }
    for (const auto& stream : streams) {
      try {
        stream->synchronize();
      } catch (const Error&) {
        EXPECT_FALSE(found_by(device).empty());
      }
    }
    streams[0]->copy_to_host(result.data(), address, 64);
    streams[0]->synchronize();
    explored.results.insert(result);
    ++explored.runs;
    explored.findings = found_by(device);
  } while (explored.findings.empty() && explored.runs < most &&
           device.inspector()->next_interleaving());
  return explored;
}

constexpr const char* kThreadZero = "if (threadIdx.x == 0) ";

TEST(AllInterleavings, OneWordHasAsManyAsItHasOrders) {
  const Explored explored =
      explore(fmt::format("{} p[1 + atomicAdd(p, 1)] = block;", kThreadZero), 4, "all");
  EXPECT_EQ(explored.runs, 24);
  EXPECT_EQ(explored.results.size(), 24);
  EXPECT_TRUE(explored.findings.empty());
}

TEST(AllInterleavings, DifferentWordsHaveOne) {
  EXPECT_EQ(explore(fmt::format("{} atomicAdd(p + block, 1);", kThreadZero), 8, "all").runs, 1);
}

TEST(AllInterleavings, IndependentPairsMultiply) {
  // Blocks 0 and 1 meet in word 0, 2 and 3 in word 1.
  const Explored explored =
      explore(fmt::format("{} atomicExch(p + block / 2, block);", kThreadZero), 4, "all");
  EXPECT_EQ(explored.runs, 4);
  EXPECT_EQ(explored.results.size(), 4);
}

TEST(AllInterleavings, TwoOperationsEachOfTwoRanks) {
  // Two each in program order, all on one word: 4! / (2! 2!).
  const Explored explored =
      explore(fmt::format("{} {{ atomicAdd_system(p, 1); atomicAdd_system(p, 1); }}", kThreadZero),
              1, "all", 2);
  EXPECT_EQ(explored.runs, 6);
  EXPECT_EQ(explored.results.size(), 1);
}

TEST(AllInterleavings, StoreBufferingHasThreeResults) {
  // Sequentially consistent accesses: both see nothing never happens.
  const Explored explored = explore(
      fmt::format(
          "{} p[2 + block] = 1 + atomicAdd(p + block, 1) * 0 + atomicAdd(p + 1 - block, 0);",
          kThreadZero),
      2, "all");
  EXPECT_EQ(explored.results.size(), 3);
}

/// Block 1 looks once whether block 0 was there; if it was not, it waits for what never comes.
const std::string kLooksOnce = fmt::format(R"({}
  {{
    if (block == 0) atomicExch(p, 1);
    if (block == 1 && atomicAdd(p, 0) == 0) while (atomicAdd(p + 1, 0) == 0) {{}}
  }})",
                                           kThreadZero);

TEST(AllInterleavings, FindADeadlockOfOneOrder) {
  const Explored explored = explore(kLooksOnce, 2, "all");
  ASSERT_EQ(explored.findings.size(), 1);
  EXPECT_EQ(explored.findings[0].kind, "deadlock");
  EXPECT_LE(explored.runs, 3);
}

TEST(DelayedInterleavings, FindADeadlockOfOneOrder) {
  // In turns block 0 comes first; held back, block 1 does.
  EXPECT_TRUE(explore(kLooksOnce, 2, "").findings.empty());
  int found = 0;
  for (int seed = 1; seed <= 6; ++seed) {
    found += explore(kLooksOnce, 2, fmt::format("delay:{}", seed)).findings.empty() ? 0 : 1;
  }
  EXPECT_GE(found, 1);
  EXPECT_LE(found, 5);
}

TEST(DelayedInterleavings, AStoreIsHeldUntilNobodyElseCanGoOn) {
  // Four blocks store twice each. In every delayed run that holds back a store (seed 2 modulo 3),
  // one is last: the k-th that occurred.
  std::set<std::vector<int>> results;
  for (int k = 0; k < 8; ++k) {
    const Explored explored =
        explore(fmt::format("{} {{ atomicExch(p, 1 + block); atomicExch(p + 1, 1 + block); }}",
                            kThreadZero),
                4, fmt::format("delay:{}", 3 * k + 2));
    EXPECT_TRUE(explored.findings.empty());
    results.merge(std::set(explored.results));
  }
  EXPECT_GE(results.size(), 4);
}

TEST(Schedules, BadOnesAreRefused) {
  for (const char* text : {"x", "delay:", "delay:x", "-1", "7 ", "all:2"}) {
    try {
      (void)parse_schedule(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected a seed, delay:SEED or all"));
    }
  }
}

/// An all-reduce of one row: one block for 1024 columns or fewer.
std::string all_reduce_graph(int world, int columns, bool norm) {
  return fmt::format(R"({{
    "braid": 1, "name": "g", "groups": {{"tp": {{"size": {2}}}}},
    "inputs": [
      {{"name": "x", "dtype": "bf16", "shape": [1, {0}], "per_rank": true}},
      {{"name": "w", "dtype": "bf16", "shape": [{0}], "kind": "parameter"}}],
    "nodes": [
      {{"name": "c", "op": "all_reduce", "inputs": ["x"],
        "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
      {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
      {{"name": "y", {1}}}],
    "outputs": ["y"]}})",
                     columns,
                     norm ? R"("op": "rms_norm", "inputs": ["s", "w"], "attrs": {"eps": 1e-5})"
                          : R"("op": "mul", "inputs": ["s", "w"])",
                     world);
}

struct AllReduceCase {
  const char* name;
  const char* algorithm;
  int world;
  int columns;
  bool norm;
  int blocks;
  int runs;              ///< enqueued at once, so that ranks overtake each other
  std::uint64_t orders;  ///< that differ; some of them may be tried twice
};
void PrintTo(const AllReduceCase& c, std::ostream* out) { *out << c.name; }

class AllReduceInterleavings : public ::testing::TestWithParam<AllReduceCase> {};

TEST_P(AllReduceInterleavings, AllGiveTheSameBitsAndNoFinding) {
  const AllReduceCase& c = GetParam();
  const Graph graph = parse_graph(all_reduce_graph(c.world, c.columns, c.norm));
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = c.world;
  options.sanitize = kCheckAll;
  options.schedule = {.kind = Schedule::Kind::kAll};
  const PassConfig passes = testing::all_reduce_by(c.algorithm);
  options.target = testing::target_of(passes);
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world, passes);
  executable.prepare({});
  ASSERT_EQ(executable.kernels().size(), 1);
  EXPECT_EQ(executable.kernels()[0].grid, c.blocks);
  const RankTensors inputs = random_inputs(graph, {}, 7);
  const RankTensors expected = evaluate(graph, inputs, {});
  testing::set_inputs(executable, graph, inputs);
  std::uint64_t interleavings = 0;
  HostTensor first;
  do {
    executable.poison_outputs();
    for (int run = 0; run < c.runs; ++run) executable.run();
    executable.synchronize();
    for (int rank = 0; rank < c.world; ++rank) {
      const HostTensor y = executable.output(rank, "y");
      if (first.data.empty()) {
        first = y;
        EXPECT_LE(relative_error(y, expected[0][0]), 1e-3);
      }
      ASSERT_EQ(y.data, first.data) << "interleaving " << interleavings << ", rank " << rank;
    }
    ++interleavings;
    for (const Finding& finding : found_by(world.device())) FAIL() << finding.text();
  } while (world.device().inspector()->next_interleaving());
  RecordProperty("interleavings", std::to_string(interleavings));
  EXPECT_GE(interleavings, c.orders);
  EXPECT_LE(interleavings, 3 * c.orders);
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, AllReduceInterleavings,
    ::testing::Values(AllReduceCase{"one_block", "one_shot", 2, 512, false, 1, 1, 25},
                      AllReduceCase{"two_blocks", "one_shot", 2, 2048, false, 2, 1, 625},
                      AllReduceCase{"norm", "one_shot", 2, 512, true, 1, 1, 25},
                      AllReduceCase{"one_block_twice", "one_shot", 2, 512, false, 1, 2, 625},
                      // A warp's packets from a peer have come when it first looks, or not.
                      AllReduceCase{"ll", "ll", 2, 64, false, 1, 1, 4},
                      AllReduceCase{"ll_norm", "ll", 2, 64, true, 1, 1, 4},
                      AllReduceCase{"ll_three_runs", "ll", 2, 64, false, 1, 3, 16},
                      AllReduceCase{"ll_of_three", "ll", 3, 64, false, 1, 1, 27},
                      AllReduceCase{"ll_of_four_warps", "ll", 2, 512, false, 1, 1, 1024},
                      AllReduceCase{"multimem", "multimem", 2, 512, false, 1, 1, 25},
                      AllReduceCase{"multimem_norm", "multimem", 2, 512, true, 1, 1, 25}),
    [](const auto& info) { return info.param.name; });

// More orders than all others have together.
INSTANTIATE_TEST_SUITE_P(DISABLED_Long, AllReduceInterleavings,
                         ::testing::Values(AllReduceCase{"multimem_of_three", "multimem", 3, 512,
                                                         false, 1, 1, 6885}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace braid
