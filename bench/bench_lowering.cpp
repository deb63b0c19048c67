// From JSON text to Program, for a chain of decoder layers of a given number of nodes. The counters
// split the time; they are seconds per iteration.

#include <benchmark/benchmark.h>

#include <chrono>

#include "graphs.h"
#include "lowering/passes.h"

namespace braid::bench {
namespace {

void json_to_program(benchmark::State& state) {
  const std::string text = decoder_chain_json(state.range(0));
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
BENCHMARK(json_to_program)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid::bench

BENCHMARK_MAIN();
