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
};

/// A better order, if any: single nodes move where that takes no more time and keeps the limit, as
/// many times as `visits` nodes that are looked at allow. Always the same one.
void improve_by_moves(const OverlapProblem& problem, std::int64_t limit, double least_ns,
                      std::int64_t visits, OverlapOrder& best);

/// Collectives begin as early and waits come as late as they can, without more memory, so that what
/// takes other times than estimated finds slack. It never takes more time.
void spread_apart(const OverlapProblem& problem, OverlapOrder& best);

/// A better order, if any, by branch and bound, of problems of up to 64 nodes; true where no order
/// within the limit takes less time than the result, and not only so many partial orders were
/// looked at.
bool improve_by_branches(const OverlapProblem& problem, const LongestPaths& paths,
                         std::int64_t limit, std::int64_t branches, OverlapOrder& best);

/// The best order that is found within the limit, which `given` keeps: of list schedules around it
/// (overlap_list.h), of those that `more` gives and their list schedules, and of what moves and
/// branches make of the best ones. Looks at less the more nodes there are, and stops at an order of
/// `least_ns`. Always the same one.
[[nodiscard]] OverlapOrder search_overlap(
    const OverlapProblem& problem, const LongestPaths& paths, const std::vector<NodeId>& given,
    const std::function<std::vector<std::vector<NodeId>>()>& more, std::int64_t limit,
    double least_ns);

}  // namespace braid
