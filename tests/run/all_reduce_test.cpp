// All-reduces with every algorithm, with prologues and epilogues in one kernel, in worlds of 2 to
// 8.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "codegen/device_model.h"
#include "lowering/plan/kernel_estimate.h"
#include "run/changing_device.h"
#include "run/run_graph.h"
#include "runtime/device_loader.h"

namespace braid {
namespace {

struct Case {
  std::int64_t world;
  const char* front;  ///< what the operand is
  const char* back;   ///< what is computed from the sum
  std::int64_t hidden;
  std::int64_t tokens;
  DType dtype;
  const char* algorithm;
};
constexpr std::int64_t kMostTokens = 64;

class Body {
 public:
  Body(const Case& c, bool constant_rows, std::vector<Bucket> buckets = {}) : case_(c) {
    if (constant_rows) tokens_ = c.tokens;
    graph_.add_symbol("T", {.min = 1, .max = kMostTokens, .buckets = std::move(buckets)});
    graph_.add_group("tp", {c.world, true, {}});
  }

  Graph build() {
    ValueId sum =
        op("wait_tensor",
           {op("all_reduce", {operand(case_.front)}, {{"reduce_op", "sum"}, {"group", "tp"}})});
    graph_.add_output(result(case_.back, sum));
    return std::move(graph_);
  }

 private:
  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph_.node(graph_.add_node("", name, std::move(inputs), std::move(attrs))).outputs[0];
  }
  ValueId input(Shape shape, bool per_rank = false) {
    return graph_.add_input({fmt::format("in{}", graph_.inputs().size()),
                             {case_.dtype, std::move(shape)},
                             InputKind::kActivation,
                             per_rank});
  }
  ValueId rows(bool per_rank) { return input({tokens_, case_.hidden}, per_rank); }

  ValueId operand(std::string_view front) {
    if (front == "input") return rows(true);
    if (front == "scaled") return op("silu", {op("mul", {rows(true), input({case_.hidden})})});
    if (front == "matmul") {
      return op("mm", {input({tokens_, 64}), input({64, case_.hidden}, true)});
    }
    if (front == "norm") return op("softmax", {rows(true)});
    const ValueId x = op("neg", {rows(true)});  // "shared": read again behind
    shared_ = x;
    return x;
  }

  ValueId result(std::string_view back, ValueId sum) {
    if (shared_ >= 0) sum = op("add", {sum, shared_});
    if (back == "norm") {
      return op("rms_norm", {op("add", {sum, rows(false)}), input({case_.hidden})},
                {{"eps", 1e-5}});
    }
    if (back == "total") {
      return op("sum", {op("gelu", {sum})}, {{"dim", std::vector<std::int64_t>{-1}}});
    }
    if (back == "softmax") return op("softmax", {sum});
    if (back == "bias") return op("relu", {op("add", {sum, input({case_.hidden})})});
    return sum;
  }

  const Case& case_;
  Dim tokens_ = Dim::symbol("T");
  Graph graph_;
  ValueId shared_ = -1;
};

PassConfig by(const char* algorithm) { return testing::all_reduce_by(algorithm); }

class AllReduce : public ::testing::TestWithParam<Case> {};

TEST_P(AllReduce, RunsCleanAndEqualsTheReferenceAndUnfused) {
  const Case& c = GetParam();
  const PassConfig config = by(c.algorithm);
  EXPECT_TRUE(testing::runs_clean_as_unfused(Body(c, false).build(), {{"T", c.tokens}}, 5, config));
  // One row that is known is another kernel than one that is not.
  if (c.tokens > 1) return;
  EXPECT_TRUE(testing::runs_clean_as_unfused(Body(c, true).build(), {{"T", 1}}, 5, config));
}

/// The first rows of every operand that has rows.
RankTensors first_rows(RankTensors tensors, std::int64_t rows) {
  for (auto& of_rank : tensors) {
    for (HostTensor& tensor : of_rank) {
      if (tensor.shape[0] != kMostTokens) continue;
      tensor.data.resize(tensor.data.size() / kMostTokens * static_cast<std::size_t>(rows));
      tensor.shape[0] = rows;
    }
  }
  return tensors;
}

// Bit by bit, on all ranks, and a row is the same in every batch.
class Algorithms : public ::testing::TestWithParam<Case> {};

TEST_P(Algorithms, GiveTheSameBitsInEveryBatch) {
  const Case& c = GetParam();
  const Graph graph = Body(c, false).build();
  const RankTensors inputs = random_inputs(graph, {{"T", kMostTokens}}, 7);
  World world = World::open(testing::world_options(c.world));
  std::vector<std::byte> all;
  for (const char* algorithm : {"one_shot", "two_shot", "ll"}) {
    Executable executable = Executable::compile(graph, world, by(algorithm));
    for (const std::int64_t tokens : {kMostTokens, std::int64_t{1}, c.tokens}) {
      const RankTensors results =
          testing::run_once(executable, graph, {{"T", tokens}}, first_rows(inputs, tokens));
      for (std::size_t rank = 0; rank < results.size(); ++rank) {
        const std::vector<std::byte>& rows = results[rank][0].data;
        if (all.empty()) all = rows;
        ASSERT_TRUE(std::equal(rows.begin(), rows.end(), all.begin()))
            << algorithm << ", rank " << rank << ", " << tokens << " tokens";
      }
    }
  }
}

// Over the links: what each rank takes of the others, or sends, and a flag of each block and
// barrier.
TEST(AllReduces, MoveNoMoreBytesThanTheyMust) {
  constexpr std::int64_t kRanks = 4;
  const Graph graph =
      Body({kRanks, "input", "sum", 256, kMostTokens, DType::kBF16, ""}, false).build();
  const Bindings bindings{{"T", kMostTokens}};
  const RankTensors inputs = random_inputs(graph, bindings, 3);
  constexpr std::int64_t kBytes = kMostTokens * 256 * 2;
  struct Expected {
    const char* algorithm;
    std::int64_t bytes, barriers;
  };
  for (const Expected& c : {Expected{"one_shot", kRanks * (kRanks - 1) * kBytes, 2},
                            Expected{"two_shot", 2 * (kRanks - 1) * kBytes, 3},
                            Expected{"ll", 2 * kRanks * (kRanks - 1) * kBytes, 0},
                            // Sums of 1/n to each rank, and all of them to all ranks.
                            Expected{"multimem", (1 + kRanks) * kBytes, 2}}) {
    WorldOptions options = testing::cpu_world_options(kRanks);
    options.count = true;
    options.target = testing::target_of(by(c.algorithm));
    World world = World::open(options);
    Executable executable = Executable::compile(graph, world, by(c.algorithm));
    static_cast<void>(testing::run_once(executable, graph, bindings, inputs));
    std::int64_t moved = 0;
    for (const KernelCounts& kernel : world.device().inspector()->counts()) {
      moved += static_cast<std::int64_t>(kernel.total.peer_bytes);
    }
    const std::int64_t flags = executable.kernels()[0].grid * kRanks * (kRanks - 1) * 4;
    EXPECT_EQ(moved, c.bytes + c.barriers * flags) << c.algorithm;
  }
}

// One block works on one row, whether other blocks of the grid have none or there are no others. So
// a bucket for one row changes nothing.
TEST(AllReduces, OfARowHaveOnePriceByCountsWithAndWithoutBuckets) {
  const Case one{4, "input", "norm", 2048, 1, DType::kBF16, "ll"};
  const Bindings bindings{{"T", 1}};
  const auto us = [&](std::vector<Bucket> buckets, std::int64_t grid) {
    const Graph graph = Body(one, false, std::move(buckets)).build();
    WorldOptions options = testing::cpu_world_options(one.world);
    options.count = true;
    World world = World::open(options);
    Executable executable = Executable::compile(graph, world, by("ll"));
    EXPECT_EQ(executable.kernels()[0].grid, grid);
    static_cast<void>(
        testing::run_once(executable, graph, bindings, random_inputs(graph, bindings, 3)));
    const DeviceModel& device = *find_device_model("H100");
    const KernelCounts counts = world.device().inspector()->counts().at(0);
    return (estimate_kernel(counts, device).ns - device.launch_ns) / 1e3;
  };
  const double without = us({}, 32), with = us({{.max = 1}, {.max = kMostTokens}}, 1);
  // The shares of accesses that miss L1 and L2 are those of all blocks, and blocks without a row
  // have others, since packets that they poll for pass L1 each time.
  EXPECT_NEAR(with, without, 0.2 * without);
}

/// All-reduces with each algorithm, one after the other.
Graph mixed(std::int64_t world) {
  Graph graph;
  graph.add_symbol("T", {1, kMostTokens});
  graph.add_group("tp", {world, true, {}});
  const TensorType type{DType::kF32, {Dim::symbol("T"), 33}};
  const ValueId x = graph.add_input({"x", type, InputKind::kActivation, true});
  const auto op = [&](const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph.node(graph.add_node("", name, std::move(inputs), std::move(attrs))).outputs[0];
  };
  ValueId last = x;
  for (const std::string algorithm : {"ll", "one_shot", "ll", "two_shot", "ll", "ll"}) {
    const ValueId operand = op("add", {op("neg", {last}), x});
    if (algorithm != "ll") graph.set_comm_group(operand, "tp");
    last = op("all_reduce", {operand},
              {{"reduce_op", std::string("avg")},
               {"group", std::string("tp")},
               {"algorithm", algorithm}});
  }
  graph.add_output(last);
  return graph;
}

// Warps stall at random, so that blocks and ranks overtake each other.
TEST(AllReduces, OfEveryAlgorithmAndSizeBackToBack) {
  testing::need_cpu_device();
  constexpr std::int64_t kSizes[] = {kMostTokens, 1, 33, 7};
  for (const std::int64_t ranks : {2, 3}) {
    const Graph graph = mixed(ranks);
    const RankTensors inputs = random_inputs(graph, {{"T", kMostTokens}}, 11);
    const auto device = std::make_shared<testing::ChangingDevice>(
        open_device(DeviceKind::kCpu, {.world = static_cast<int>(ranks)}), testing::stalling);
    const World world = World::open({}, device);
    Executable executable = Executable::compile(graph, world);
    std::vector<Executable::Plan> plans;
    std::vector<RankTensors> expected;
    for (const std::int64_t tokens : kSizes) {
      const RankTensors rows = first_rows(inputs, tokens);
      plans.push_back(executable.prepare({{"T", tokens}}));
      expected.push_back(testing::run_once(executable, graph, {{"T", tokens}}, rows));
      EXPECT_TRUE(testing::same_as_reference(graph, expected.back(),
                                             evaluate(graph, rows, {{"T", tokens}})));
    }
    static_cast<void>(testing::run_once(executable, graph, {{"T", kMostTokens}}, inputs));
    std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
    for (int run = 0; run < 500;) {
      std::size_t size = 0;
      for (std::uint64_t left = 1 + random() % 40; left > 0; --left, ++run) {
        size = random() % std::size(kSizes);
        executable.run(plans[size]);
      }
      const std::string name = graph.value(graph.outputs()[0]).name;
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ(executable.output(rank, name).data,
                  expected[size][static_cast<std::size_t>(rank)][0].data)
            << "run " << run << ", rank " << rank << ", " << kSizes[size] << " tokens";
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("w{}_{}_{}_h{}_t{}_{}{}{}", c.world, c.front, c.back, c.hidden, c.tokens,
                     dtype_name(c.dtype), *c.algorithm == 0 ? "" : "_", c.algorithm);
}

constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16;
constexpr const char* kOne = "one_shot";
constexpr const char* kTwo = "two_shot";
constexpr const char* kLl = "ll";
constexpr const char* kMm = "multimem";
INSTANTIATE_TEST_SUITE_P(
    Pairs, AllReduce,
    ::testing::Values(
        Case{2, "input", "sum", 96, 1, kBF16, kLl}, Case{2, "scaled", "norm", 1001, 7, kF16, kLl},
        Case{2, "matmul", "softmax", 96, 33, kF32, kOne},
        Case{3, "scaled", "softmax", 96, 7, kBF16, kOne},
        Case{3, "input", "norm", 20000, 2, kF32, kLl}, Case{3, "norm", "bias", 130, 33, kF16, kLl},
        Case{3, "input", "sum", 96, 33, kBF16, kTwo},
        Case{3, "matmul", "norm", 1001, 7, kF16, kTwo},
        Case{4, "scaled", "norm", 20000, 1, kBF16, kLl},
        Case{4, "matmul", "total", 1001, 7, kBF16, kOne},
        Case{4, "shared", "norm", 96, 33, kF32, kLl},
        Case{4, "scaled", "norm", 20000, 3, kBF16, kTwo},
        Case{5, "scaled", "total", 130, 33, kF32, kLl},
        Case{5, "input", "bias", 1001, 1, kF16, kOne},
        Case{5, "norm", "total", 130, 33, kF32, kTwo},
        Case{6, "matmul", "norm", 130, 7, kF16, kOne}, Case{6, "scaled", "sum", 96, 33, kBF16, kLl},
        Case{6, "scaled", "softmax", 96, 7, kF32, kTwo},
        Case{7, "input", "softmax", 1001, 7, kF32, kOne}, Case{7, "norm", "sum", 96, 1, kBF16, kLl},
        Case{7, "input", "norm", 1001, 1, kBF16, kTwo},
        Case{8, "scaled", "norm", 130, 33, kF32, kOne},
        Case{8, "shared", "total", 96, 7, kBF16, kLl},
        Case{8, "matmul", "bias", 1001, 2, kBF16, kLl},
        Case{8, "input", "total", 20000, 7, kF16, kOne},
        Case{8, "scaled", "bias", 1001, 33, kF16, kTwo},
        Case{2, "scaled", "total", 1001, 7, kF32, kMm}, Case{2, "input", "sum", 97, 33, kBF16, kMm},
        Case{3, "matmul", "norm", 1001, 7, kF16, kMm}, Case{3, "input", "sum", 96, 1, kF32, kMm},
        Case{4, "scaled", "norm", 20000, 3, kBF16, kMm},
        Case{6, "scaled", "softmax", 96, 7, kF16, kMm},
        Case{6, "matmul", "bias", 130, 2, kBF16, kMm}, Case{8, "norm", "bias", 1001, 33, kF32, kMm},
        Case{8, "input", "norm", 130, 5, kF16, kMm}, Case{18, "scaled", "norm", 70, 3, kF16, kLl}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Pairs, Algorithms,
                         ::testing::Values(Case{2, "input", "norm", 1001, 33, kF32, ""},
                                           Case{2, "scaled", "sum", 97, 7, kBF16, ""},
                                           Case{2, "input", "bias", 1, 5, kF16, ""},
                                           Case{3, "scaled", "bias", 130, 63, kF32, ""},
                                           Case{3, "input", "total", 1001, 2, kBF16, ""},
                                           Case{3, "scaled", "softmax", 1, 33, kF16, ""},
                                           Case{4, "input", "sum", 1001, 3, kF32, ""},
                                           Case{4, "scaled", "norm", 131, 47, kBF16, ""},
                                           Case{4, "input", "softmax", 1001, 9, kF16, ""},
                                           Case{6, "scaled", "total", 97, 21, kF32, ""},
                                           Case{6, "input", "norm", 96, 31, kBF16, ""},
                                           Case{6, "scaled", "sum", 1001, 5, kF16, ""},
                                           Case{8, "input", "softmax", 96, 63, kF32, ""},
                                           Case{8, "scaled", "bias", 1001, 11, kBF16, ""},
                                           Case{8, "input", "norm", 130, 33, kF16, ""}),
                         name_of);

}  // namespace
}  // namespace braid
