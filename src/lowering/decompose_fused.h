#pragma once

#include <optional>

#include "lowering/pass.h"

namespace braid {

/// The graph with every fused node as the collective and the matmuls that it stands for; nothing
/// where it has none.
[[nodiscard]] std::optional<Graph> decompose_fused(const Graph& graph, PassContext& context);

}  // namespace braid
