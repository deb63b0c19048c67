#pragma once

#include <cstddef>
#include <vector>

#include "lowering/schedule/overlap_problem.h"

namespace braid {

/// The longest paths of a problem, which no order shortens. Memory is ignored.
struct LongestPaths {
  std::vector<double> head_ns;       ///< for each node: the earliest time that it can begin
  std::vector<double> tail_ns;       ///< for each node: the least time from its beginning to the
                                     ///< end
  std::vector<double> link_tail_ns;  ///< for a collective: from when it has the links
  /// For each node the number of the first collective that it is or leads to.
  std::vector<std::size_t> leads_to;
};
[[nodiscard]] LongestPaths longest_paths(const OverlapProblem& problem);

/// For each asynchronous collective how much of it independent compute can hide, where no compute
/// overlaps two of them. The sum is the maximum. O(n log n).
[[nodiscard]] std::vector<double> hidden_ns(const OverlapProblem& problem);

/// A lower bound of the time of any order, whatever its memory: the maximum of the total compute;
/// the total on the links; the longest path; the preemptive schedule of the compute stream where
/// each node begins after its head and leaves its tail (Jackson's); and all compute and
/// communication less what can overlap (a flow from compute nodes to independent collectives). O(n
/// log n).
[[nodiscard]] double least_total_ns(const OverlapProblem& problem);

}  // namespace braid
