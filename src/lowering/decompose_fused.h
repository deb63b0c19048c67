#pragma once

#include "lowering/passes.h"

namespace braid {

/// The graph with every fused node as the collective and the matmuls that it stands for.
[[nodiscard]] Graph decompose_fused(const Graph& graph, PassContext& context);

}  // namespace braid
