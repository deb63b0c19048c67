#pragma once

#include "lowering/fuse/clusters.h"

namespace braid {

// Whether a merge is correct: codegen can express the kernel, it is not too large, and it closes no
// cycle.
//
// Every item has a level above those of the items that it reads, so nothing that an item reads
// depends on an item of the same or a higher level. A merge is safe when all that the union reads
// lies below the level at which others already read the union. The check is conservative and takes
// constant time per operand.

/// The node, preceded by the nodes folded into it.
[[nodiscard]] std::vector<NodeId> own_nodes(const Clusters& clusters, NodeId id);

/// Merges the items and the nodes into one kernel; else returns the reason why not.
[[nodiscard]] Reason merge(Clusters& clusters, const std::vector<int>& members,
                           const std::vector<NodeId>& own, Item& merged);

}  // namespace braid
