#pragma once

#include <optional>

#include "lowering/pass.h"

namespace braid {

/// The graph with every fused node in chunks (chunk_fused.h), or as the collective and the matmuls
/// that it stands for; nothing where it has none. The operands of copies from peers are not in
/// symmetric memory yet.
[[nodiscard]] std::optional<Graph> decompose_fused(const Graph& graph, PassContext& context);

}  // namespace braid
