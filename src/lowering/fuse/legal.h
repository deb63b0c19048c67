#pragma once

#include "lowering/fuse/clusters.h"

namespace braid {

// Whether a merge is correct: codegen can express the kernel, it is not too large, and no cycle
// arises.
//
// Every item has a level above those of the items it reads. Nothing that an item reads can depend
// on an item of the same or a higher level, so a merge is safe when all that the union reads lies
// below the level at which others already read it. The check is conservative and takes constant
// time per operand.

/// The node, and in front of it what it takes in.
[[nodiscard]] std::vector<NodeId> own_nodes(const Clusters& clusters, NodeId id);

/// Makes one kernel of the items and the nodes; else says why not.
[[nodiscard]] Reason merge(Clusters& clusters, const std::vector<int>& members,
                           const std::vector<NodeId>& own, Item& merged);

}  // namespace braid
