#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowering/pass.h"

namespace braid::cli {

/// What a scheduling pass made of a graph: by how much it improved the overlap, in how many moves,
/// the peak of memory and the estimated time before and after; then those of its remarks
/// that are about the whole graph, and a table of its records.
[[nodiscard]] std::string describe_schedule(const Pass& pass, const Graph& before,
                                            const Graph& after, const Target& target,
                                            const std::vector<MoveRecord>& records,
                                            std::span<const Remark> remarks);

}  // namespace braid::cli
