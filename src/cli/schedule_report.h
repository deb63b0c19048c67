#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowering/pass.h"

namespace braid::cli {

/// Describes the effect of a scheduling pass on a graph: the gain in overlap and the number of
/// moves, peak memory and estimated time before and after, the pass's remarks about the whole
/// graph, and a table of its records.
[[nodiscard]] std::string describe_schedule(const Pass& pass, const Graph& before,
                                            const Graph& after, const Target& target,
                                            const std::vector<MoveRecord>& records,
                                            std::span<const Remark> remarks);

}  // namespace braid::cli
