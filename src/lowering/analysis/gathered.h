#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The shard that `whole` was gathered from over the group along `dim`, that is, this rank's own
/// chunk of it. -1 where `whole` is no such gather, or where the memory of either is overwritten
/// (`overwritten_values` of the graph), so that the two may differ later.
[[nodiscard]] ValueId gathered_from(const Graph& graph, const std::vector<bool>& overwritten,
                                    ValueId whole, std::string_view group, std::size_t dim);

}  // namespace braid
