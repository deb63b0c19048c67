#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "codegen/kernel/spec.h"

namespace braid {

/// The candidates of a tuner with a rough time for each, of which only order and ratios matter.
struct SearchSpace {
  std::vector<Config> candidates;  ///< the default comes first
  std::vector<double> rough_ns;
};

/// Tries candidates, given by index; returns nanoseconds, or nothing for one that does not run.
using TryCandidates =
    std::function<std::vector<std::optional<double>>(std::span<const std::size_t> which)>;

/// Tries the default, then batches of `together` candidates until `most` or all were tried, or
/// `stop` says so. It alternates between the most promising of all, and of those one step (a
/// doubling of one setting) from the best so far. A candidate's promise is its rough time,
/// corrected by the observed errors of rough times, nearest candidates counting most. Returns the
/// nanoseconds of all candidates that were tried and ran. Deterministic if `attempt` is.
[[nodiscard]] std::vector<std::optional<double>> search(const SearchSpace& space, std::size_t most,
                                                        std::size_t together,
                                                        const TryCandidates& attempt,
                                                        const std::function<bool()>& stop);

/// The first of the fastest; nothing if none ran.
[[nodiscard]] std::optional<std::size_t> quickest(std::span<const std::optional<double>> ns);

}  // namespace braid
