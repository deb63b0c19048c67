// One executable for the whole range of a symbol, with kernels of their own for parts of it, on the
// cpu device.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "braid/executable.h"
#include "braid/reference.h"
#include "findings.h"
#include "runtime/error_of.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kMost = 64;
constexpr std::int64_t kHidden = 64;
constexpr const char* kBuckets = R"(, "buckets": [1, 6, {"max": 48, "multiple_of": 16}, 48])";

// Two matmuls of a row, their sum over the ranks, and a norm: y and r of x and res.
Graph mlp(std::string_view buckets) {
  constexpr const char* kText = R"({{
    "braid": 1, "name": "mlp",
    "symbols": {{"T": {{"min": 1, "max": {0}{2}}}}},
    "groups": {{"tp": {{"size": 2}}}},
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
  return parse_graph(fmt::format(kText, kMost, kHidden, buckets));
}

World open_world(Checks sanitize = kCheckNothing) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = 2;
  options.threads = 2;
  options.sanitize = sanitize;
  return World::open(options);
}

/// The first rows of a tensor.
HostTensor rows_of(const HostTensor& tensor, std::int64_t rows) {
  HostTensor part = tensor;
  part.data.resize(part.data.size() / static_cast<std::size_t>(part.shape[0]) *
                   static_cast<std::size_t>(rows));
  part.shape[0] = rows;
  return part;
}

/// Inputs for all rows, of which runs take the first.
class Rows {
 public:
  explicit Rows(const Graph& graph)
      : graph_(graph), inputs_(random_inputs(graph, {{"T", kMost}}, 3)) {}

  [[nodiscard]] RankTensors run(Executable& executable, std::int64_t tokens) const {
    executable.prepare({{"T", tokens}});
    for (int rank = 0; rank < 2; ++rank) {
      for (std::size_t i = 0; i < inputs_[0].size(); ++i) {
        const GraphInput& input = graph_.inputs()[i];
        const HostTensor& all = inputs_[static_cast<std::size_t>(rank)][i];
        executable.set_input(rank, input.name,
                             input.kind == InputKind::kParameter ? all : rows_of(all, tokens));
      }
    }
    executable.poison_outputs();
    executable.run();
    RankTensors outputs(2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (const char* name : {"y", "r"}) {
        outputs[rank].push_back(executable.output(static_cast<int>(rank), name));
      }
    }
    return outputs;
  }

  [[nodiscard]] RankTensors reference() const { return evaluate(graph_, inputs_, {{"T", kMost}}); }

 private:
  Graph graph_;
  RankTensors inputs_;
};

void expect_first_rows(const RankTensors& got, const RankTensors& all, std::int64_t tokens) {
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got[rank][i].data, rows_of(all[rank][i], tokens).data)
          << tokens << " rows, rank " << rank << ", output " << i;
    }
  }
}

class Buckets : public ::testing::TestWithParam<const char*> {};

TEST_P(Buckets, RowsHaveTheBitsOfTheWholeRange) {
  const Graph graph = mlp(kBuckets);
  World world = open_world();
  Executable executable = Executable::compile(graph, world, {.all_reduce = GetParam()});
  Executable plain = Executable::compile(mlp(""), world, {.all_reduce = GetParam()});
  EXPECT_NE(executable.program_hash(), plain.program_hash());
  EXPECT_GT(executable.kernels().size(), plain.kernels().size());
  const WorldMetrics compiled = world.metrics();
  const Rows rows(graph);
  const RankTensors all = rows.run(plain, kMost);
  EXPECT_LT(relative_error(all[1][0], rows.reference()[1][0]), 1e-3);
  for (std::int64_t tokens = kMost; tokens >= 1; --tokens) {
    expect_first_rows(rows.run(executable, tokens), all, tokens);
  }
  const WorldMetrics now = world.metrics();
  EXPECT_EQ(now.kernels_compiled, compiled.kernels_compiled);
  EXPECT_EQ(now.kernels_from_cache, compiled.kernels_from_cache);
}

INSTANTIATE_TEST_SUITE_P(AllReduce, Buckets, ::testing::Values("one_shot", "two_shot", "ll"),
                         [](const auto& info) { return std::string(info.param); });

// Plans of all buckets follow each other without a word of the host: x becomes x + the sum of all x
// of its rows, and a bucket that another one's flags or packets confuse would hang or add wrongly.
TEST_P(Buckets, PlansFollowEachOtherOnAStream) {
  constexpr const char* kText = R"({{
    "braid": 1, "name": "sum", "symbols": {{"T": {{"min": 1, "max": 64{}}}}},
    "groups": {{"tp": {{"size": 2}}}},
    "inputs": [{{"name": "x", "dtype": "i32", "shape": ["T", 64], "per_rank": true}}],
    "nodes": [{{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "y", "op": "add", "inputs": ["x", "s"]}}],
    "outputs": ["y"]}})";
  const Graph graph = parse_graph(fmt::format(kText, kBuckets));
  World world = open_world();
  Executable executable = Executable::compile(graph, world, {.all_reduce = GetParam()});
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::vector<std::uint32_t>> expected(2, std::vector<std::uint32_t>(kMost));
  constexpr std::size_t kBytes = kMost * 64 * sizeof(std::uint32_t);
  for (int rank = 0; rank < 2; ++rank) {
    memory.push_back(world.device().allocate(rank, kBytes));
    auto* const x = reinterpret_cast<std::uint32_t*>(memory.back()->address());
    for (std::size_t i = 0; i < kMost * 64; ++i) {
      x[i] = static_cast<std::uint32_t>(rank + 1);
    }
    std::fill_n(expected[static_cast<std::size_t>(rank)].begin(), kMost,
                static_cast<std::uint32_t>(rank + 1));
    const DeviceTensor tensor{memory.back()->address(), DType::kI32, {kMost, 64}};
    executable.bind(rank, "x", tensor);
    executable.bind(rank, "y", tensor);
  }
  const std::vector<std::int64_t> sizes{1, 5, 16, 9, 48, 64};  // a bucket each
  std::vector<Executable::Plan> plans;
  for (const std::int64_t tokens : sizes) plans.push_back(executable.prepare({{"T", tokens}}));
  std::mt19937 random(7);
  for (int run = 0; run < 1000; ++run) {
    const std::size_t p = random() % plans.size();
    executable.run(plans[p]);
    for (std::size_t row = 0; row < static_cast<std::size_t>(sizes[p]); ++row) {
      const std::uint32_t sum = expected[0][row] + expected[1][row];
      expected[0][row] += sum;
      expected[1][row] += sum;
    }
  }
  executable.synchronize();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto* const x = reinterpret_cast<const std::uint32_t*>(memory[rank]->address());
    for (std::size_t i = 0; i < kMost * 64; ++i) {
      ASSERT_EQ(x[i], expected[rank][i / 64]) << "rank " << rank << ", row " << i / 64;
    }
  }
}

// What peers write outlives runs where no barrier comes before it.
TEST(BucketsInKernels, RowsHaveTheBitsOfTheWholeRange) {
  constexpr const char* kText = R"({{
    "braid": 1, "name": "scatter",
    "symbols": {{"T": {{"min": 2, "max": 64, "multiple_of": 2{}}}}},
    "groups": {{"tp": {{"size": 2}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", 64], "per_rank": true}},
               {{"name": "w", "dtype": "bf16", "shape": [64, 64], "kind": "parameter"}}],
    "nodes": [{{"name": "g", "op": "all_gather_into_tensor", "inputs": ["x"],
                "attrs": {{"group": "tp"}}}},
              {{"name": "a", "op": "wait_tensor", "inputs": ["g"]}},
              {{"name": "m", "op": "mm", "inputs": ["a", "w"]}},
              {{"name": "c", "op": "reduce_scatter_tensor", "inputs": ["m"],
                "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "y", "op": "wait_tensor", "inputs": ["c"]}}],
    "outputs": ["y"]}})";
  const Graph graph = parse_graph(fmt::format(kText, R"(, "buckets": [4, 16])"));
  World world = open_world();
  const PassConfig passes{.enable = {"micro_pipeline"}, .always_pipeline = true, .in_kernel = true};
  Executable executable = Executable::compile(graph, world, passes);
  const RankTensors inputs = random_inputs(graph, {{"T", kMost}}, 3);
  std::vector<HostTensor> all;
  std::vector<std::int64_t> sizes{64, 2, 16, 4, 30, 6};
  for (int round = 0; round < 20; ++round) {
    for (const std::int64_t tokens : sizes) {
      executable.prepare({{"T", tokens}});
      for (int rank = 0; rank < 2; ++rank) {
        const auto& own = inputs[static_cast<std::size_t>(rank)];
        executable.set_input(rank, "x", rows_of(own[0], tokens));
        executable.set_input(rank, "w", own[1]);
      }
      executable.poison_outputs();
      executable.run();
      for (int rank = 0; rank < 2; ++rank) {
        const HostTensor y = executable.output(rank, "y");
        if (all.size() < 2) {
          all.push_back(y);
        } else {
          EXPECT_EQ(y.data, rows_of(all[static_cast<std::size_t>(rank)], tokens).data) << tokens;
        }
      }
    }
  }
  const RankTensors reference = evaluate(graph, inputs, {{"T", kMost}});
  EXPECT_LT(relative_error(all[1], reference[1][0]), 1e-3);
}

TEST(BucketsOnCpu, NothingMovesAndNothingIsFoundWhereVariantsTakeTurns) {
  const Graph graph = mlp(kBuckets);
  World world = open_world(kCheckAll);
  Executable executable = Executable::compile(graph, world);
  const Rows rows(graph);
  const RankTensors all = rows.run(executable, 17);
  for (const std::int64_t tokens : {1, 16, 7}) {
    expect_first_rows(rows.run(executable, tokens), all, tokens);
  }
  EXPECT_THAT(found_by(world.device()), IsEmpty());
  std::map<std::string, std::int64_t> tensors;  // each has one place
  for (const BufferReport& buffer : executable.buffers()) {
    if (buffer.arena != "io") continue;
    EXPECT_TRUE(tensors.emplace(buffer.name, buffer.offset).second) << buffer.name;
  }
  EXPECT_EQ(tensors.size(), 4);
}

TEST(BucketsOnCpu, TakeTheMemoryOfTheLargestAndTheirFlags) {
  const World world = open_world();
  const auto bytes = [&](const char* buckets) {
    std::map<std::string, std::int64_t> result;
    for (const ArenaReport& arena : Executable::memory_estimate(mlp(buckets), world)) {
      result[arena.name] = arena.bytes;
    }
    return result;
  };
  const auto some = bytes(kBuckets);
  EXPECT_EQ(some, bytes(""));  // flags fit into what an arena is rounded up to
  std::map<std::string, std::int64_t> allocated;
  for (const ArenaReport& arena : Executable::compile(mlp(kBuckets), world).arenas()) {
    allocated[arena.name] = arena.bytes;
  }
  EXPECT_EQ(allocated, some);
}

TEST(BucketsOnCpu, AreSavedAndLoaded) {
  const Graph graph = mlp(kBuckets);
  World world = open_world();
  const TemporaryDirectory directory;
  std::string hash;
  {
    const Executable executable = Executable::compile(graph, world);
    executable.save(directory.path());
    hash = executable.program_hash();
  }
  const std::uint64_t compiled = world.metrics().kernels_compiled;
  Executable loaded = Executable::load(directory.path() / "program.json", world);
  EXPECT_EQ(loaded.program_hash(), hash);
  EXPECT_EQ(world.metrics().kernels_compiled, compiled);
  const Rows rows(graph);
  const RankTensors all = rows.run(loaded, kMost);
  EXPECT_LT(relative_error(all[1][0], rows.reference()[1][0]), 1e-3);
  for (const std::int64_t tokens : {48, 39, 1, 3}) {
    expect_first_rows(rows.run(loaded, tokens), all, tokens);
  }
}

TEST(BucketsOnCpu, KernelsOfOtherBucketsAreNotLaunched) {
  const World world = open_world();
  Executable executable = Executable::compile(mlp(kBuckets), world);
  for (const std::int64_t tokens : {1, 64}) {
    executable.prepare({{"T", tokens}});
    int launches = 0;
    bool idle = false;
    for (const KernelReport& kernel : executable.kernels()) {
      launches += kernel.launches;
      idle = idle || kernel.launches == 0;
    }
    EXPECT_EQ(launches, executable.launches());
    EXPECT_TRUE(idle);
  }
  EXPECT_THAT(error_of([&] {
                executable.prepare({{"T", 65}});
              }).second,
              HasSubstr("is 65; expected an integer from 1 to 64"));
}

}  // namespace
}  // namespace braid
