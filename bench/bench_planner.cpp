// The memory planner: hard instances, cut out of a full rectangle, with 0 to 6 % of room above it,
// each of them once; plans of many buffers. The counters say how near a plan came to the most bytes
// that live at one time, without the search and with it.

#include <benchmark/benchmark.h>

#include <random>

#include "lowering/plan/plan_memory.h"
#include "pack/cut_rectangle.h"
#include "pack/heuristics.h"
#include "pack/pack.h"

namespace braid::bench {
namespace {

constexpr std::int64_t kNodes = 100'000;  ///< as many as `braid plan-buffers` takes

double ratio(std::int64_t total, std::int64_t bound) {
  return static_cast<double>(total) / static_cast<double>(bound);
}

void cut_rectangle(benchmark::State& state, bool pinwheels) {
  const auto seed = static_cast<std::uint64_t>(state.range(0));
  const std::vector<Interval> intervals =
      testing::RectangleCutter(seed, pinwheels).cut(150 + 37 * seed % 301);
  const std::int64_t room = testing::kRectangleBytes * static_cast<std::int64_t>(seed % 7) / 100;
  const std::int64_t capacity = testing::kRectangleBytes + room;
  PackResult result;
  for (auto _ : state) result = pack(intervals, {.capacity = capacity, .nodes = kNodes});
  state.counters["buffers"] = static_cast<double>(intervals.size());
  state.counters["quickly"] = ratio(pack_quickly(intervals).total, result.bound);
  state.counters["searched"] = ratio(result.packing.total, result.bound);
  state.counters["nodes"] = static_cast<double>(result.nodes);
  state.counters["met"] = result.packing.total <= capacity ? 1 : 0;
}
void seeds(benchmark::internal::Benchmark* benchmark) {
  benchmark->DenseRange(0, 49)->Iterations(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(cut_rectangle, straight, false)->Apply(seeds);
BENCHMARK_CAPTURE(cut_rectangle, pinwheels, true)->Apply(seeds);

/// Lives of up to 40 steps, as of activations, and sizes of any kind.
void many_buffers(benchmark::State& state) {
  const auto count = static_cast<int>(state.range(0));
  std::mt19937_64 random(1);
  std::vector<Lifetime> buffers;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<int>(random() % static_cast<std::uint64_t>(count));
    const auto length = static_cast<int>(random() % 40);
    buffers.push_back({static_cast<std::int64_t>(random() % 1'000'000), first, first + length});
  }
  MemoryPlan plan;
  for (auto _ : state) plan = plan_memory(buffers);
  state.counters["buffers"] = count;
  state.counters["searched"] = ratio(plan.total, plan.bound);
}
BENCHMARK(many_buffers)->Arg(1'000)->Arg(62'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid::bench

BENCHMARK_MAIN();
