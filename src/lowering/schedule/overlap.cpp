#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "ir/mapped.h"
#include "ir/op_registry.h"
#include "lowering/passes.h"
#include "lowering/schedule/overlap_bound.h"
#include "lowering/schedule/overlap_search.h"

// overlap: finds the order with the least exposed communication. Only the order of nodes changes.
//
// Time is that of overlap_timeline.h: compute nodes one after the other, and beside them
// asynchronous collectives, one after the other in their given order. What the waits take is
// exposed. The memory peak stays within a share (overlap-peak-memory-budget) of the peak before the
// first scheduling pass; by default it does not grow.
//
// Candidates are the results of the other scheduling passes and their compositions, and list
// schedules that respect the limit as they go (overlap_list.h, memory_guard.h). The best one is
// improved by dynamic programming over sets of nodes (overlap_sets.cpp), which finds the optimum
// where the program is narrow, and says so. All of this is bounded by numbers of nodes, not by a
// clock, so every rank finds the same order. The order stays as it is where none exposes less.
namespace braid {
namespace {

constexpr std::string_view kPass = "overlap";

constexpr ReasonCode kExposed{
    "overlap.exposed",
    "exposed communication {now:.1f} us of {all:.1f}, {before:.1f} before; {least:.1f} or more in "
    "any order within the limit of {limit} bytes, so at most {gap:.2f} % of the time could be "
    "saved still; {free:.1f} or more without the limit; peak memory {peak} bytes, {base} before"};

struct OverlapOptions {
  double peak_memory_budget = 0;
};

using Sequence = std::vector<const Pass*>;

/// The passes to try, alone and composed.
std::vector<Sequence> compositions(std::size_t nodes) {
  const std::array<const Pass*, 5> passes{&sink_waits, &raise_comms, &reorder_compute_for_overlap,
                                          &reorder_communication_preserving_peak_memory,
                                          &sink_waits_iterative};
  constexpr std::size_t kSmall = 200, kLarge = 2000;
  std::vector<Sequence> result;
  if (nodes > kLarge) return result;
  for (const Pass* first : passes) {
    result.push_back({first});
    if (nodes > kSmall) continue;
    for (const Pass* second : passes) {
      if (first != second) result.push_back({first, second});
    }
  }
  result.push_back({&reorder_compute_for_overlap, &sink_waits, &raise_comms});
  result.push_back({passes[3], passes[4], passes[3]});
  return result;
}

/// The places of `graph`'s nodes in another graph with the same nodes.
std::vector<NodeId> order_in(const Graph& graph, const Graph& other) {
  std::map<std::string_view, NodeId> ids;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    ids.emplace(graph.nodes()[id].name, static_cast<NodeId>(id));
  }
  return mapped(other.nodes(), [&](const Node& node) { return ids.at(node.name); });
}

/// The orders of the compositions, within that budget, with or without estimates.
std::vector<std::vector<NodeId>> orders_of_others(const Graph& graph, const PassContext& context,
                                                  double budget) {
  std::vector<std::vector<NodeId>> orders;
  for (const bool by_estimates : {false, true}) {
    PassContext reference;
    reference.target = context.target;
    reference.config = context.config;
    reference.base_peak = context.base_peak;
    for (const std::string pass : {"reorder-iterative-", "sink-iterative-"}) {
      set_pass_option(reference.config, pass + "peak-memory-budget", write_value(budget));
      set_pass_option(reference.config, pass + "use-runtime-estimations",
                      write_value(by_estimates));
    }
    reference.config.options.erase("reorder-iterative-unsafe-collectives-reorder");
    reference.config.options.erase("sink-waits-iterative-unsafe-collectives-reorder");
    for (const Sequence& passes : compositions(graph.nodes().size())) {
      std::optional<Graph> now;
      for (const Pass* pass : passes) {
        if (auto next = pass->run(now ? *now : graph, reference)) now = std::move(next);
      }
      if (now) orders.push_back(order_in(graph, *now));
    }
  }
  return orders;
}

/// The memory limit in bytes; the given order keeps it.
std::int64_t limit_of(const OverlapProblem& problem, const Graph& graph, PassContext& context,
                      double budget) {
  const std::int64_t given = peak_memory(problem.use, given_order(graph));
  return std::max(given, memory_limit(base_peak(problem.use, graph, context), budget));
}

/// For each asynchronous collective the time of its first wait.
std::vector<double> exposed_of_each(const OverlapProblem& problem, std::span<const NodeId> order) {
  std::vector<double> exposed(problem.size(), 0);
  OverlapClock clock(problem.estimates, problem.waited);
  for (NodeId id : order) {
    const double before = clock.exposed_ns();
    static_cast<void>(clock.run(id));
    const NodeId waited = problem.waited[id];
    if (waited >= 0) exposed[waited] += clock.exposed_ns() - before;
  }
  return exposed;
}

void add_records(const Graph& graph, const OverlapProblem& problem, std::span<const NodeId> order,
                 std::vector<MoveRecord>& records) {
  const std::vector<NodeId> given = given_order(graph);
  const std::vector<double> was = exposed_of_each(problem, given);
  const std::vector<double> now = exposed_of_each(problem, order);
  const std::vector<int> beside_was = nodes_between(graph, given);
  const std::vector<int> beside_now = nodes_between(graph, order);
  for (std::size_t id = 0; id < problem.size(); ++id) {
    if (!problem.estimates[id].asynchronous) continue;
    MoveRecord& record = records.emplace_back();
    record.pass = kPass;
    record.node = graph.nodes()[id].name;
    record.moves = std::abs(beside_now[id] - beside_was[id]);
    record.comm_ns = problem.estimates[id].ns;
    record.comp_ns = record.comm_ns - now[id];
    record.initial_exposed_ns = was[id];
    record.final_exposed_ns = now[id];
  }
}

std::optional<Graph> run(const Graph& graph, PassContext& context) {
  const bool none = std::ranges::none_of(graph.nodes(), is_asynchronous);
  if (none) return std::nullopt;
  const double budget = read_options<OverlapOptions>(overlap, context.config).peak_memory_budget;
  const OverlapProblem problem(graph, context.target);
  const LongestPaths paths = longest_paths(problem);
  double least_ns = least_total_ns(problem);
  const std::int64_t limit = limit_of(problem, graph, context, budget);
  const std::vector<NodeId> given = given_order(graph);
  const OrderCost before = problem.cost(given);
  OverlapOrder best = search_overlap(
      problem, paths, given, [&] { return orders_of_others(graph, context, budget); }, limit,
      least_ns);
  const double compute_ns = problem.compute_ns();
  const bool improved = takes_less(best.cost.total_ns, before.total_ns);
  if (improved) spread_apart(problem, best);
  // What the search says of all orders, where nothing was refused for its memory.
  const double free_ns = best.is_best && !best.is_limited ? best.cost.total_ns : least_ns;
  if (best.is_best) least_ns = best.cost.total_ns;
  Reason reason(kExposed, (best.cost.total_ns - compute_ns) / kNsPerUs,
                problem.comm_ns() / kNsPerUs, (before.total_ns - compute_ns) / kNsPerUs,
                (least_ns - compute_ns) / kNsPerUs, limit,
                100 * (1 - least_ns / best.cost.total_ns), (free_ns - compute_ns) / kNsPerUs,
                best.cost.peak, before.peak);
  if (context.move_records != nullptr) {
    add_records(graph, problem, improved ? best.order : given, *context.move_records);
  }
  if (!improved) {
    context.missed(kPass, graph.name(), std::move(reason));
    return std::nullopt;
  }
  context.applied(kPass, graph.name(), std::move(reason));
  return scheduled(graph, best.order);
}

constexpr PassOption kOptions[] = {
    {.name = "overlap-peak-memory-budget",
     .variable = kVariable<&OverlapOptions::peak_memory_budget>,
     .meaning = "share by which the peak of memory may grow over that before all scheduling"}};

}  // namespace

constinit const Pass overlap{
    .name = kPass,
    .summary = "the order of the least exposed communication that is found, within a memory budget",
    .run = run,
    .schedules = true,
    .options = kOptions};

}  // namespace braid
