#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowering/schedule/overlap_bound.h"
#include "lowering/schedule/overlap_problem.h"

namespace braid {

/// The priority rule of a list schedule. Ties go to the node that stands first.
enum class ListRule {
  kLongestPath,      ///< longest path to the end first
  kNextCollective,   ///< nodes that lead to the next collective first, among them by longest path
  kGivenCollective,  ///< nodes that lead to the next collective first
  kGivenOrder,
};
inline constexpr ListRule kListRules[] = {ListRule::kLongestPath, ListRule::kNextCollective,
                                          ListRule::kGivenCollective, ListRule::kGivenOrder};

/// The priority of each node: lower numbers are taken first. No two are equal.
[[nodiscard]] std::vector<int> ranks_of(const OverlapProblem& problem, const LongestPaths& paths,
                                        std::span<const NodeId> base, ListRule rule);

/// Builds an order from its beginning: collectives as soon as they are ready; waits when their
/// collective has ended, or when nothing else can run; otherwise the ready node of lowest rank.
/// With `patient` it waits for a wait of lower rank if that takes less time than what else could
/// run. A node is taken only if the rest can follow, in the order of `base`, within `limit` bytes,
/// which `base` itself keeps (MemoryGuard). O(n log n).
[[nodiscard]] std::vector<NodeId> list_overlap(const OverlapProblem& problem,
                                               std::span<const NodeId> base, std::int64_t limit,
                                               const std::vector<int>& ranks, bool patient);

}  // namespace braid
