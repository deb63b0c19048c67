#pragma once

#include "lowering/fuse/clusters.h"

namespace braid {

// Whether a merge pays. It must not repeat work: an operand computed inside a matmul, or a small
// value computed once per element of a larger one.

/// Whether a collective's own blocks may compute the host into the arena before they signal: it is
/// the operand and nothing else, and so little that those few blocks take no longer than another
/// launch.
[[nodiscard]] bool is_cheap_prologue(const Clusters& clusters, int host, NodeId collective);

/// Whether the host is a cast or scale that costs a matmul no more than reading its result: nothing
/// else reads that, and its operands are no larger.
[[nodiscard]] bool is_matmul_prologue(const Clusters& clusters, int host, NodeId matmul);

/// Why the node, which takes in `own`, should not join the host's kernel, the first of its operands
/// to be asked; empty where it should.
[[nodiscard]] Reason cannot_join(const Clusters& clusters, int host, NodeId id,
                                 const std::vector<NodeId>& own);

/// Why the kernel `joined`, in which the node is by now, should not take in that of another
/// operand.
[[nodiscard]] Reason cannot_absorb(const Clusters& clusters, int joined, int other, NodeId id,
                                   const std::vector<NodeId>& own);

}  // namespace braid
