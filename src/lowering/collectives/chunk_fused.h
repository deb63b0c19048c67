#pragma once

#include <vector>

#include "ir/fused.h"
#include "lowering/remark.h"

namespace braid {

/// Why a fused node cannot be lowered into chunks; else empty.
[[nodiscard]] Reason cannot_chunk(const Graph& graph, const Node& node);
/// Appends the fused node in one chunk per rank, where copies from peers overlap the matmuls of
/// other chunks, and returns its results. They have the same bits as the unfused composition.
std::vector<ValueId> add_chunks(Graph& graph, const Node& node,
                                const std::vector<ValueId>& operands, const NameNode& name);

}  // namespace braid
