#pragma once

#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// For each value whether it is the same on all ranks of the group, as far as the graph shows: it
/// is computed from graph inputs that are (not per_rank) and from what the group itself reduced,
/// gathered or broadcast. Memory that some node overwrites is not looked into: it counts as
/// different. Linear.
[[nodiscard]] std::vector<bool> replicated_values(const Graph& graph, std::string_view group);

}  // namespace braid
