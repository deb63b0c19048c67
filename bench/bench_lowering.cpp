// The time from JSON text to Program, for chains of decoder layers with a given number of nodes and
// for shapes that a pass may be slow at; then each pass by itself, all of them enabled. The
// counters split the time, in seconds per iteration.

#include <benchmark/benchmark.h>

#include <chrono>
#include <map>
#include <string>

#include "graphs.h"
#include "lowering/passes.h"

namespace braid::bench {
namespace {

void json_to_program(benchmark::State& state, std::string (*shape)(std::int64_t)) {
  const std::string text = shape(state.range(0));
  std::chrono::duration<double> parsing{}, lowering{};
  std::size_t nodes = 0, steps = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const Graph graph = parse_graph(text);
    const auto parsed = std::chrono::steady_clock::now();
    PassContext context;
    const Program program = lower(graph, context);
    parsing += parsed - start;
    lowering += std::chrono::steady_clock::now() - parsed;
    nodes = graph.nodes().size();
    steps = program.steps.size();
  }
  using benchmark::Counter;
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["steps"] = static_cast<double>(steps);
  state.counters["parse_s"] = Counter(parsing.count(), Counter::kAvgIterations);
  state.counters["lower_s"] = Counter(lowering.count(), Counter::kAvgIterations);
}
void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(json_to_program, decoder, decoder_chain_json)->Apply(sizes);
BENCHMARK_CAPTURE(json_to_program, pointwise_chain, pointwise_chain_json)->Apply(sizes);
BENCHMARK_CAPTURE(json_to_program, fan_out, fan_out_json)->Apply(sizes);
BENCHMARK_CAPTURE(json_to_program, chains, chains_json)->Apply(sizes);

void each_pass(benchmark::State& state) {
  const Graph graph = parse_graph(decoder_chain_json(state.range(0)));
  std::map<std::string, double> seconds;
  for (auto _ : state) {
    PassContext context;
    context.config.always_pipeline = true;
    Graph now = graph;
    for (const Pass* pass : all_passes()) {
      const auto start = std::chrono::steady_clock::now();
      if (auto next = pass->run(now, context)) now = std::move(*next);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      seconds[std::string(pass->name)] += time.count();
    }
  }
  using benchmark::Counter;
  state.counters["nodes"] = static_cast<double>(graph.nodes().size());
  for (const auto& [pass, time] : seconds) {
    state.counters[pass + "_s"] = Counter(time, Counter::kAvgIterations);
  }
}
BENCHMARK(each_pass)->Apply(sizes);

}  // namespace
}  // namespace braid::bench

BENCHMARK_MAIN();
