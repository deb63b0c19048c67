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

/// A better order, if any, by dynamic programming over sets of nodes (overlap_sets.cpp), after that
/// many visits at most; whether no order within the limit takes less time than the result. Always
/// the same one.
bool improve_by_sets(const OverlapProblem& problem, const LongestPaths& paths, std::int64_t limit,
                     std::int64_t visits, OverlapOrder& best);

/// Collectives begin as early and waits come as late as they can, without more memory, so that what
/// takes other times than estimated finds slack. It never takes more time.
void spread_apart(const OverlapProblem& problem, OverlapOrder& best);

/// The best order that is found within the limit, which `given` keeps: of list schedules around it
/// (overlap_list.h), of those that `more` gives and their list schedules, and of what sets of nodes
/// make of the best one. Looks at less the more nodes there are, and stops at an order of
/// `least_ns`. Always the same one.
[[nodiscard]] OverlapOrder search_overlap(
    const OverlapProblem& problem, const LongestPaths& paths, const std::vector<NodeId>& given,
    const std::function<std::vector<std::vector<NodeId>>()>& more, std::int64_t limit,
    double least_ns);

}  // namespace braid
