#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lowering/schedule/overlap_bound.h"
#include "lowering/schedule/overlap_problem.h"

namespace braid {

struct OverlapOrder {
  std::vector<NodeId> order;
  OrderCost cost;
  bool is_best = false;     ///< no order within the limit takes less time
  bool is_limited = false;  ///< the limit of memory has kept the search from looking at some
};

/// Improves the order, if possible, by dynamic programming over sets of nodes (overlap_sets.cpp),
/// after at most that many visits. Returns whether the result is proven optimal within the limit.
/// Deterministic.
bool improve_by_sets(const OverlapProblem& problem, const LongestPaths& paths, std::int64_t limit,
                     std::int64_t visits, OverlapOrder& best);

/// Moves collectives earlier and waits later as far as that costs neither memory nor time, so that
/// deviations from the estimated times find slack.
void spread_apart(const OverlapProblem& problem, OverlapOrder& best);

/// The best order found within the limit, which `given` keeps: among list schedules around it
/// (overlap_list.h), the orders of `more` and their list schedules, improved by sets of nodes. With
/// more nodes it looks at less. Stops at an order of `least_ns`. Deterministic.
[[nodiscard]] OverlapOrder search_overlap(
    const OverlapProblem& problem, const LongestPaths& paths, const std::vector<NodeId>& given,
    const std::function<std::vector<std::vector<NodeId>>()>& more, std::int64_t limit,
    double least_ns);

}  // namespace braid
