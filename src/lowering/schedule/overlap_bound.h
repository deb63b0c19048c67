#pragma once

#include <cstddef>
#include <vector>

#include "lowering/schedule/overlap_problem.h"

namespace braid {

/// The longest ways through a problem that no order shortens: memory does not count.
struct LongestPaths {
  std::vector<double> head_ns;       ///< of each node: before it can begin
  std::vector<double> tail_ns;       ///< of each node: from its beginning on, itself included
  std::vector<double> link_tail_ns;  ///< of a collective: from when the links are its own
  /// Of each node which collective, by number, is the first that it is or leads to.
  std::vector<std::size_t> leads_to;
};
[[nodiscard]] LongestPaths longest_paths(const OverlapProblem& problem);

/// Of each asynchronous collective how much the compute that neither needs it nor feeds it can
/// hide, where no compute is beside two of them; together it is the most that can be. n log n.
[[nodiscard]] std::vector<double> hidden_ns(const OverlapProblem& problem);

/// No order takes less time than this, however much memory it has: the largest of what is computed;
/// what the links carry; the longest path; the preemptive schedule of the compute stream where each
/// node may begin after its head and leaves its tail (Jackson's); and all compute and communication
/// less what can be beside each other (a flow from compute nodes to the collectives that they
/// neither need nor feed). n log n.
[[nodiscard]] double least_total_ns(const OverlapProblem& problem);

}  // namespace braid
