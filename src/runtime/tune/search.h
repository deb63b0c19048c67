#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "codegen/kernel/spec.h"

namespace braid {

/// What a tuner may choose from, and a rough time of each: only their order and their ratios count.
struct SearchSpace {
  std::vector<Config> candidates;  ///< the default first
  std::vector<double> rough_ns;
};

/// Tries some candidates, by their indices; gives nanoseconds, or nothing where one does not run.
using TryCandidates =
    std::function<std::vector<std::optional<double>>(std::span<const std::size_t> which)>;

/// Tries the default, then again and again `together` candidates, until `most` were tried, all
/// were, or `stop` says so: in turns the most promising of all, and of those that are one step (a
/// doubling of one setting) from the best so far. What one promises is its rough time, corrected by
/// what was seen of those that were tried: by how far their rough times were off, the nearest
/// counting most. Gives nanoseconds of all that were tried and ran. Deterministic where `attempt`
/// is.
[[nodiscard]] std::vector<std::optional<double>> search(const SearchSpace& space, std::size_t most,
                                                        std::size_t together,
                                                        const TryCandidates& attempt,
                                                        const std::function<bool()>& stop);

/// The first of the quickest; nothing where none ran.
[[nodiscard]] std::optional<std::size_t> quickest(std::span<const std::optional<double>> ns);

}  // namespace braid
