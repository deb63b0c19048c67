// A server under load: many threads run several executables, of two programs, at changing batch
// sizes and in every way there is, for $BRAID_LOAD_SECONDS (5).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"

namespace braid {
namespace {

constexpr std::size_t kThreads = 64;
constexpr std::size_t kExecutables = 8;
constexpr std::int64_t kRows = 8;
constexpr std::size_t kMostGrowth = std::size_t{8} << 20;  // of memory, in bytes

// y = norm(x + all_reduce(silu(x) @ w)), with rows of so many numbers.
Graph layer(int width) {
  return parse_graph(fmt::format(R"({{
    "braid": 1, "name": "layer{0}",
    "symbols": {{"T": {{"min": 1, "max": {1}}}}},
    "groups": {{"tp": {{"size": 2}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", {0}]}},
               {{"name": "w", "dtype": "bf16", "shape": [{0}, {0}], "kind": "parameter",
                 "per_rank": true}}],
    "nodes": [{{"name": "a", "op": "silu", "inputs": ["x"]}},
              {{"name": "p", "op": "mm", "inputs": ["a", "w"]}},
              {{"name": "c", "op": "all_reduce", "inputs": ["p"],
               "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "r", "op": "add", "inputs": ["x", "s"]}},
              {{"name": "y", "op": "rms_norm", "inputs": ["r"], "attrs": {{"eps": 1e-5}}}}],
    "outputs": ["y"]}})",
                                 width, kRows));
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::chrono::duration<double> seconds_of_load() {
  const char* const text = std::getenv("BRAID_LOAD_SECONDS");
  return std::chrono::duration<double>(text == nullptr ? 5 : std::atof(text));
}

/// One of a server's executables, which one thread uses at a time.
class Served {
 public:
  Served(const World& world, Executable executable, const Graph& graph)
      : executable_(std::move(executable)) {
    for (int rank = 0; rank < 2; ++rank) {
      streams_.push_back(world.device().create_stream(rank));
      lanes_.push_back(streams_.back().get());
    }
    const RankTensors parameters = random_inputs(graph, {{"T", 1}}, 1);
    for (std::int64_t rows = 1; rows <= kRows; ++rows) {
      Batch& batch = batches_[rows];
      const Bindings bindings{{"T", rows}};
      batch.plan = executable_.prepare(bindings);
      RankTensors inputs = random_inputs(graph, bindings, static_cast<std::uint64_t>(rows));
      batch.x = inputs[0][0];
      for (std::size_t rank = 0; rank < 2; ++rank) {
        inputs[rank][1] = parameters[rank][1];
        executable_.set_input(static_cast<int>(rank), "x", batch.x);
        executable_.set_input(static_cast<int>(rank), "w", inputs[rank][1]);
      }
      batch.expected = evaluate(graph, inputs, bindings)[0][0];
      for (Stream* lane : lanes_) lane->begin_capture();
      executable_.run(batch.plan, lanes_);
      for (Stream* lane : lanes_) batch.graphs.push_back(lane->end_capture());
    }
  }

  /// A run of so many rows; returns its error.
  double serve(std::int64_t rows, std::size_t way) {
    const std::lock_guard lock(mutex_);
    Batch& batch = batches_.at(rows);
    if (way % 16 == 0) batch.plan = executable_.prepare({{"T", rows}});
    // Makes the plan the current one, and overwrites what the last run left.
    executable_.run(batch.plan);
    for (int rank = 0; rank < 2; ++rank) executable_.set_input(rank, "x", batch.x);
    executable_.poison_outputs();
    switch (way % 4) {
      case 0:
        executable_.run();
        break;
      case 1:
        executable_.run(batch.plan, lanes_);
        break;
      case 2:
        for (int rank = 0; rank < 2; ++rank) executable_.run_rank(batch.plan, rank);
        break;
      default:
        for (std::size_t rank = 0; rank < 2; ++rank) lanes_[rank]->replay(*batch.graphs[rank]);
        for (Stream* lane : lanes_) lane->synchronize();
    }
    return relative_error(executable_.output(static_cast<int>(way % 2), "y"), batch.expected);
  }

 private:
  struct Batch {
    Executable::Plan plan;
    HostTensor x, expected;
    std::vector<std::unique_ptr<RecordedGraph>> graphs;
  };
  std::mutex mutex_;
  Executable executable_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> lanes_;
  std::map<std::int64_t, Batch> batches_;
};

TEST(Load, ManyThreadsServeFromManyExecutables) {
  const World world = World::open({.device = DeviceKind::kCpu, .world = 2, .threads = 2});
  std::vector<std::unique_ptr<Served>> served;
  for (const int width : {64, 96}) {
    const Graph graph = layer(width);
    Executable first = Executable::compile(graph, world);
    for (std::size_t i = 1; i < kExecutables / 2; ++i) {
      served.push_back(std::make_unique<Served>(world, first.another(), graph));
    }
    served.push_back(std::make_unique<Served>(world, std::move(first), graph));
  }
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> runs = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t round = t; !stop; ++round) {
        try {
          const auto rows = static_cast<std::int64_t>(round * 5 % kRows) + 1;
          if (!(served[round % kExecutables]->serve(rows, round / 3) < 1e-3)) ++wrong;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
          stop = true;
        }
        ++runs;
      }
    });
  }
  while (!stop && runs < 4 * kThreads) std::this_thread::yield();  // warm
  const WorldMetrics before = world.metrics();
  const std::size_t runs_before = runs;
  const std::size_t bytes_before = resident_bytes();
  const auto end = std::chrono::steady_clock::now() + seconds_of_load();
  while (!stop && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::size_t bytes = resident_bytes();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const WorldMetrics after = world.metrics();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(after.failures, 0);
  EXPECT_GT(runs, runs_before);
  EXPECT_GT(after.plans, before.plans);
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(after.kernels_from_cache, before.kernels_from_cache);
  // ThreadSanitizer's own memory grows with what was touched.
  if (BRAID_THREAD_SANITIZER == 0) {
    EXPECT_LT(bytes, bytes_before + kMostGrowth);
  }
  std::printf("%zu runs, %zu KiB in use, %+.0f KiB since the first %zu\n", runs - runs_before,
              bytes >> 10, (static_cast<double>(bytes) - static_cast<double>(bytes_before)) / 1024,
              runs_before);
}

}  // namespace
}  // namespace braid
