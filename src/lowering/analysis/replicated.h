#pragma once

#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// For each value whether the graph shows that it is equal on all ranks of the group: it is
/// computed only from graph inputs that are equal (not per_rank) and from what this group reduced,
/// gathered or broadcast. A value whose memory some node overwrites counts as different. Linear
/// time.
[[nodiscard]] std::vector<bool> replicated_values(const Graph& graph, std::string_view group);

}  // namespace braid
