// Properties of every scheduling pass on every program.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "braid/reference.h"
#include "lowering/analysis/dependences.h"
#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/random_tp_graph.h"
#include "lowering/schedule/estimates.h"
#include "lowering/schedule/memory_timeline.h"
#include "lowering/schedule/order.h"
#include "lowering/schedule/overlap_timeline.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

// The soak sets BRAID_GRAPHS=5000.
int graph_count() {
  const char* given = std::getenv("BRAID_GRAPHS");
  return given == nullptr ? 500 : std::atoi(given);
}

std::vector<std::string> collectives(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (contains_collective(node)) names.push_back(node.name);
  }
  return names;
}

/// Checks for the same nodes, with dependent ones in the same order.
void expect_legal(const Graph& before, const Graph& after) {
  verify(after);
  std::map<std::string, int> place;
  for (const Node& node : after.nodes()) place.emplace(node.name, static_cast<int>(place.size()));
  ASSERT_EQ(place.size(), before.nodes().size());
  ASSERT_EQ(after.nodes().size(), before.nodes().size());
  for (const auto& [first, second] : dependences(before)) {
    ASSERT_LT(place.at(before.node(first).name), place.at(before.node(second).name));
  }
}

std::int64_t peak_of(const Graph& graph) {
  return peak_memory(MemoryUse(graph), given_order(graph));
}

struct Options {
  double budget;
  bool by_estimates, unsafe = false, through = false;
};

PassContext context_of(const Options& options) {
  PassContext context = sm80();
  PassConfig& config = context.config;
  config.options["reorder-iterative-debug-memory-recompute"] = "true";
  config.options["reorder-iterative-peak-memory-budget"] = write_value(options.budget);
  config.options["sink-iterative-peak-memory-budget"] = write_value(options.budget);
  config.options["overlap-peak-memory-budget"] = write_value(options.budget);
  config.options["reorder-iterative-use-runtime-estimations"] = write_value(options.by_estimates);
  config.options["sink-iterative-use-runtime-estimations"] = write_value(options.by_estimates);
  config.options["reorder-iterative-unsafe-collectives-reorder"] = write_value(options.unsafe);
  config.options["sink-waits-iterative-unsafe-collectives-reorder"] = write_value(options.unsafe);
  config.options["reorder-iterative-group-with-collectives"] = write_value(options.through);
  config.options["sink-waits-iterative-swap-with-collectives"] = write_value(options.through);
  return context;
}

Graph run_all(const Graph& graph, const std::vector<const Pass*>& passes, const Options& options) {
  PassContext context = context_of(options);
  Graph now = graph;
  for (const Pass* pass : passes) now = (*pass)(now, context);
  return now;
}

// three passes, one base.
void check_budgeted(const Graph& graph, const Options& options, int& moved) {
  const Pass* const reorder = &reorder_communication_preserving_peak_memory;
  const std::vector<const Pass*> passes{reorder, &sink_waits_iterative, reorder};
  const Graph result = run_all(graph, passes, options);
  expect_legal(graph, result);
  const auto base = static_cast<double>(peak_of(graph));
  EXPECT_LE(static_cast<double>(peak_of(result)), base * (1 + options.budget));
  if (!options.unsafe) {
    EXPECT_EQ(collectives(graph), collectives(result));
  }
  EXPECT_EQ(to_json(result), to_json(run_all(graph, passes, options))) << "a second run";
  if (node_names(result) != node_names(graph)) ++moved;
}

double total_ns(const Graph& graph) {
  return overlap_timeline(graph, estimate_nodes(graph, sm80().target)).total_ns;
}

// It need not be a better order, but none of those that others find within its limit.
void check_overlap(const Graph& graph, Options options, bool with_others, int& moved) {
  const Graph result = run_all(graph, {&overlap}, options);
  expect_legal(graph, result);
  const double limit = static_cast<double>(peak_of(graph)) * (1 + options.budget);
  EXPECT_LE(static_cast<double>(peak_of(result)), limit);
  EXPECT_EQ(collectives(graph), collectives(result));
  EXPECT_EQ(to_json(result), to_json(run_all(graph, {&overlap}, options))) << "a second run";
  if (node_names(result) != node_names(graph)) ++moved;
  const std::vector<const Pass*> others{&sink_waits, &raise_comms, &reorder_compute_for_overlap,
                                        &reorder_communication_preserving_peak_memory,
                                        &sink_waits_iterative};
  const double found_ns = total_ns(result);
  EXPECT_LE(found_ns, total_ns(graph) * (1 + 1e-9));
  if (!with_others) return;
  options.unsafe = options.through = false;
  for (const bool by_estimates : {false, true}) {
    options.by_estimates = by_estimates;
    for (const Pass* first : others) {
      for (const Pass* second : others) {
        const Graph other = run_all(graph, {first, second}, options);
        if (static_cast<double>(peak_of(other)) > limit) continue;
        EXPECT_LE(found_ns, total_ns(other) * (1 + 1e-9)) << first->name << ", " << second->name;
      }
    }
  }
}

TEST(ScheduleProperty, OverlapIsNoWorseThanOtherPasses) {
  const int count = graph_count();
  int moved = 0;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const Graph graph =
        random_costs(static_cast<std::uint64_t>(i), 10 + static_cast<int>(random() % 50));
    constexpr double kBudgets[] = {0, 0, 0.05, 1};
    check_overlap(graph, {.budget = kBudgets[random() % 4], .by_estimates = false}, i % 10 == 0,
                  moved);
  }
  EXPECT_GT(moved, count / 2);
}

TEST(ScheduleProperty, OrdersAreLegalAndKeepWithinTheBudget) {
  const int count = graph_count();
  int moved = 0;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const Graph graph =
        random_costs(static_cast<std::uint64_t>(i), 10 + static_cast<int>(random() % 50));
    constexpr double kBudgets[] = {0, 0.05, 0.2, 1};
    const Options options{.budget = kBudgets[random() % 4],
                          .by_estimates = random() % 2 == 0,
                          .unsafe = random() % 2 == 0,
                          .through = random() % 2 == 0};
    check_budgeted(graph, options, moved);
    for (const Pass* pass : {&sink_waits, &raise_comms, &reorder_compute_for_overlap}) {
      const Graph result = run_all(graph, {pass}, options);
      expect_legal(graph, result);
      EXPECT_EQ(collectives(graph), collectives(result)) << pass->name;
    }
  }
  EXPECT_GT(moved, count / 2);
}

TEST(ScheduleProperty, ProgramsKeepTheirValues) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = random_tp_graph(seed, 2, seed % 2 == 1);
    const Options options{
        .budget = 1, .by_estimates = false, .unsafe = seed % 3 == 0, .through = seed % 3 == 0};
    const Graph result = run_all(
        graph, {&reorder_communication_preserving_peak_memory, &sink_waits_iterative}, options);
    if (node_names(result) != node_names(graph)) ++moved;
    const Bindings bindings{{"t", 2}};
    const RankTensors inputs = random_inputs(graph, bindings, seed);
    const RankTensors expected = evaluate(graph, inputs, bindings);
    const RankTensors got = evaluate(result, inputs, bindings);
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      for (std::size_t i = 0; i < got[rank].size(); ++i) {
        EXPECT_EQ(got[rank][i].data, expected[rank][i].data);
      }
    }
  }
  EXPECT_GT(moved, 30);
}

}  // namespace
}  // namespace braid::testing
