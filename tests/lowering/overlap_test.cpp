// The order that `overlap` finds, and the bounds that it reports.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "lowering/lowering_testing.h"
#include "lowering/passes.h"
#include "lowering/schedule/overlap_bound.h"
#include "lowering/schedule/overlap_search.h"
#include "lowering/schedule_testing.h"

namespace braid::testing {
namespace {

// The soak sets BRAID_GRAPHS.
int graph_count(int standard) {
  const char* given = std::getenv("BRAID_GRAPHS");
  return given == nullptr ? standard : std::atoi(given);
}

/// Tries all orders of a problem: the least time, and an order within the limit that takes it.
class Exhaustive {
 public:
  Exhaustive(const OverlapProblem& problem, std::int64_t limit)
      : problem_(problem), limit_(limit), missing_(problem.size()) {
    for (std::size_t id = 0; id < problem.size(); ++id) {
      missing_[id] = problem.needs(static_cast<NodeId>(id)).size();
    }
    go();
  }
  double least_ns = std::numeric_limits<double>::infinity();
  double least_within_ns = least_ns;

 private:
  void go() {
    if (order_.size() == problem_.size()) {
      const OrderCost cost = problem_.cost(order_);
      least_ns = std::min(least_ns, cost.total_ns);
      if (cost.peak <= limit_) least_within_ns = std::min(least_within_ns, cost.total_ns);
      return;
    }
    for (std::size_t id = 0; id < problem_.size(); ++id) {
      if (missing_[id] != 0) continue;
      const auto node = static_cast<NodeId>(id);
      missing_[id] = problem_.size();
      for (NodeId user : problem_.users(node)) --missing_[static_cast<std::size_t>(user)];
      order_.push_back(node);
      go();
      order_.pop_back();
      for (NodeId user : problem_.users(node)) ++missing_[static_cast<std::size_t>(user)];
      missing_[id] = 0;
    }
  }

  const OverlapProblem& problem_;
  std::int64_t limit_;
  std::vector<std::size_t> missing_;
  std::vector<NodeId> order_;
};

OverlapOrder search(const OverlapProblem& problem, const Graph& graph, std::int64_t limit) {
  const auto no_more = [] { return std::vector<std::vector<NodeId>>(); };
  return search_overlap(problem, longest_paths(problem), given_order(graph), no_more, limit,
                        least_total_ns(problem));
}

constexpr double kRounding = 1 + 1e-9;

TEST(Overlap, OfAllOrdersItFindsTheBest) {
  const int count = graph_count(100);
  int optimal = 0, at_bound = 0, seen = 0;
  double gap = 0;
  for (std::uint64_t seed = 0; seen < count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = random_costs(seed, 5 + static_cast<int>(seed % 5));
    if (graph.nodes().size() > 9) continue;
    ++seen;
    const OverlapProblem problem(graph, sm80().target);
    const std::int64_t limit = problem.cost(given_order(graph)).peak;
    const Exhaustive best(problem, limit);
    const OverlapOrder found = search(problem, graph, limit);
    EXPECT_LE(found.cost.peak, limit);
    EXPECT_GE(found.cost.total_ns * kRounding, best.least_within_ns);
    const double bound = least_total_ns(problem);
    EXPECT_LE(bound, best.least_ns * kRounding);
    at_bound += bound * kRounding >= best.least_ns ? 1 : 0;
    const bool is_best = found.cost.total_ns <= best.least_within_ns * kRounding;
    optimal += is_best ? 1 : 0;
    gap += is_best ? 0 : found.cost.total_ns / best.least_within_ns - 1;
  }
  fmt::print("{} of {} optimal, mean gap of the others {:.3f} %; the bound is exact in {}\n",
             optimal, count, optimal == count ? 0 : 100 * gap / (count - optimal), at_bound);
  EXPECT_EQ(optimal, count);
  EXPECT_GE(at_bound, count * 80 / 100);
}

/// Two batches side by side, each a chain of layers with two all-reduces; times in us.
Graph two_batches(int layers) {
  Costs costs;
  costs.input("xa", 64).input("xb", 64);
  std::string rest[] = {"xa", "xb"};
  for (int layer = 0; layer < layers; ++layer) {
    for (int batch = 0; batch < 2; ++batch) {
      const std::string at = fmt::format("{}{}.", batch == 0 ? 'a' : 'b', layer);
      costs.compute(at + "norm", {rest[batch]}, 64, 2)
          .compute(at + "qkv", {at + "norm"}, 192, 30, "gemm")
          .compute(at + "attention", {at + "qkv"}, 64, 20, "extern")
          .compute(at + "out", {at + "attention"}, 64, 15, "gemm")
          .collective(at + "sum", at + "out", 40)
          .wait(at + "wait", at + "sum")
          .compute(at + "add", {rest[batch], at + "wait"}, 64, 2)
          .compute(at + "norm2", {at + "add"}, 64, 2)
          .compute(at + "up", {at + "norm2"}, 512, 60, "gemm")
          .compute(at + "act", {at + "up"}, 256, 3)
          .compute(at + "down", {at + "act"}, 64, 30, "gemm")
          .collective(at + "sum2", at + "down", 40)
          .wait(at + "wait2", at + "sum2")
          .compute(at + "add2", {at + "add", at + "wait2"}, 64, 2);
      rest[batch] = at + "add2";
    }
  }
  return costs.graph({rest[0], rest[1]});
}

TEST(Overlap, OfLongNarrowProgramsItFindsTheBest) {
  struct Program {
    int layers;
    double budget, us;
  };
  for (const auto& [layers, budget, us] :
       {Program{8, 0.1, 3109}, Program{8, 1, 2901}, Program{32, 0.1, 12'277}}) {
    SCOPED_TRACE(layers);
    const Graph graph = two_batches(layers);
    const OverlapProblem problem(graph, sm80().target);
    const std::int64_t limit = memory_limit(problem.cost(given_order(graph)).peak, budget);
    const OverlapOrder found = search(problem, graph, limit);
    EXPECT_LE(found.cost.peak, limit);
    EXPECT_DOUBLE_EQ(found.cost.total_ns, us);
    EXPECT_TRUE(found.is_best);
  }
}

}  // namespace
}  // namespace braid::testing
