#pragma once

#include <vector>

#include "ir/fused.h"
#include "lowering/remark.h"

namespace braid {

/// Why a fused node has no form in chunks; empty where it has.
[[nodiscard]] Reason cannot_chunk(const Graph& graph, const Node& node);
/// The fused node in one chunk for each rank, copies from peers under way while others are
/// multiplied: appends the nodes, and gives its results. The same bits as its composition.
std::vector<ValueId> add_chunks(Graph& graph, const Node& node,
                                const std::vector<ValueId>& operands, const NameNode& name);

}  // namespace braid
