#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowering/schedule/overlap_bound.h"
#include "lowering/schedule/overlap_problem.h"

namespace braid {

/// What comes next of the nodes that could: of those of the lowest rank the one that stands first.
enum class ListRule {
  kLongestPath,      ///< with the longest way to the end
  kNextCollective,   ///< that lead to the next collective, and of them those of the longest way
  kGivenCollective,  ///< that lead to the next collective
  kGivenOrder,
};
inline constexpr ListRule kListRules[] = {ListRule::kLongestPath, ListRule::kNextCollective,
                                          ListRule::kGivenCollective, ListRule::kGivenOrder};

/// Which node is rather taken: the lower number. No two have the same.
[[nodiscard]] std::vector<int> ranks_of(const OverlapProblem& problem, const LongestPaths& paths,
                                        std::span<const NodeId> base, ListRule rule);

/// An order, made from its beginning on: collectives as soon as they can, waits when their
/// collective has ended, or nothing else can run, and of all else what has the lowest rank. Where
/// `patient`, a wait of lower rank is waited for if that takes less time than what else could run.
/// A node is taken only where the rest, in the order of `base`, can follow within `limit` bytes,
/// which `base` keeps itself (MemoryGuard). n log n.
[[nodiscard]] std::vector<NodeId> list_overlap(const OverlapProblem& problem,
                                               std::span<const NodeId> base, std::int64_t limit,
                                               const std::vector<int>& ranks, bool patient);

}  // namespace braid
