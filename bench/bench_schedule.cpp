// How much communication the order of nodes hides, for decoders of 32 layers on H100 by the cost
// model: as given, by each scheduling pass and their usual compositions, by `overlap`, and the
// lower bound of any order; then how long `overlap` takes for 1,000, 10,000 and 100,000 nodes.

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graphs.h"
#include "lowering/passes.h"
#include "lowering/schedule/overlap_bound.h"

namespace braid::bench {
namespace {

using nlohmann::ordered_json;

struct Model {
  const char* name;
  bool sharded;
  std::int64_t batches;
};
constexpr Model kModels[] = {{"gathered weights", true, 1},
                             {"all-reduces, one batch", false, 1},
                             {"all-reduces, two batches", false, 2}};

struct Way {
  const char* name;
  std::vector<std::string> passes;
  bool by_estimates = false;
  double budget = 0;
};

const std::vector<Way>& ways() {
  const std::string reorder = "reorder_communication_preserving_peak_memory";
  const std::string sink = "sink_waits_iterative";
  static const std::vector<Way> all{
      {"program order", {}},
      {"sink_waits", {"sink_waits"}},
      {"raise_comms", {"raise_comms"}},
      {"reorder_compute_for_overlap", {"reorder_compute_for_overlap"}},
      {"all three", {"reorder_compute_for_overlap", "sink_waits", "raise_comms"}},
      {"reorder, sink", {reorder, sink}, false},
      {"reorder, sink; by estimates", {reorder, sink}, true},
      {"reorder, sink; by estimates, memory + 20 %", {reorder, sink}, true, 0.2},
      {"overlap", {"overlap"}},
      {"overlap; memory + 20 %", {"overlap"}, false, 0.2}};
  return all;
}

/// Kernels and collectives, as the scheduling passes find them.
Graph ready_to_schedule(const DecoderForm& form, PassContext& context) {
  context.target = Target::parse("H100");
  std::vector<std::string> passes;
  for (const Pass* pass : all_passes()) {
    if (pass->by_default && !pass->schedules) passes.emplace_back(pass->name);
  }
  return run_passes(decoder_graph(form), passes, context);
}

ordered_json row(const Graph& graph, const PassContext& context, const Way& way) {
  PassContext own;
  own.target = context.target;
  own.config.options["reorder-iterative-use-runtime-estimations"] = write_value(way.by_estimates);
  own.config.options["sink-iterative-use-runtime-estimations"] = write_value(way.by_estimates);
  own.config.options["reorder-iterative-peak-memory-budget"] = write_value(way.budget);
  own.config.options["sink-iterative-peak-memory-budget"] = write_value(way.budget);
  own.config.options["overlap-peak-memory-budget"] = write_value(way.budget);
  const Graph after = run_passes(graph, way.passes, own);
  const OverlapProblem problem(after, context.target);
  const OrderCost cost = problem.cost(given_order(after));
  return {{"order", way.name}, {"exposed_us", cost.exposed_ns / 1e3}, {"peak_bytes", cost.peak}};
}

ordered_json model(const Model& model, std::int64_t ranks) {
  PassContext context;
  const Graph graph = ready_to_schedule({32, ranks, model.sharded, model.batches}, context);
  const OverlapProblem problem(graph, context.target);
  ordered_json result = {{"model", model.name},
                         {"ranks", ranks},
                         {"nodes", graph.nodes().size()},
                         {"compute_us", problem.compute_ns() / 1e3},
                         {"comm_us", problem.comm_ns() / 1e3},
                         {"bound_us", (least_total_ns(problem) - problem.compute_ns()) / 1e3},
                         {"orders", ordered_json::array()}};
  for (const Way& way : ways()) result["orders"].push_back(row(graph, context, way));
  return result;
}

ordered_json time_of(const Model& model, std::int64_t nodes) {
  PassContext context;
  const auto size = [&](std::int64_t layers) {
    return ready_to_schedule({layers, 4, model.sharded, model.batches}, context).nodes().size();
  };
  const auto layers = nodes / static_cast<std::int64_t>(size(2) - size(1));
  const Graph graph = ready_to_schedule({layers, 4, model.sharded, model.batches}, context);
  const std::clock_t start = std::clock();
  const Graph after = run_passes(graph, std::vector<std::string>{"overlap"}, context);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return {{"model", model.name}, {"nodes", after.nodes().size()}, {"cpu_seconds", seconds}};
}

int bench() {
  ordered_json document = {{"models", ordered_json::array()}, {"times", ordered_json::array()}};
  for (const Model& form : kModels) {
    for (const std::int64_t ranks : {4, 8}) document["models"].push_back(model(form, ranks));
  }
  for (const Model& form : kModels) {
    for (const std::int64_t nodes : {1'000, 10'000, 100'000}) {
      document["times"].push_back(time_of(form, nodes));
    }
  }
  fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace
}  // namespace braid::bench

int main() {
  try {
    return braid::bench::bench();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_schedule: {}\n", error.what());
    return 1;
  }
}
