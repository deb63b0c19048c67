#pragma once

#include "lowering/fuse/clusters.h"

namespace braid {

// Whether a merge pays. It must not repeat work, as it would for an operand that every tile of a
// matmul computes, or for a small value that is computed once per element of a larger one.

/// Whether the blocks of a collective may compute the host into the arena as its prologue, before
/// they signal: the host is the operand and nothing else, and so small that those few blocks take
/// no longer than another launch would.
[[nodiscard]] bool is_cheap_prologue(const Clusters& clusters, int host, NodeId collective);

/// Why the node, with the nodes `own` folded into it, should not join the host's kernel, which is
/// asked first among its operands; empty where it should.
[[nodiscard]] Reason cannot_join(const Clusters& clusters, int host, NodeId id,
                                 const std::vector<NodeId>& own);

/// Why the kernel `joined`, which has the node by now, should not absorb that of another operand;
/// empty where it should.
[[nodiscard]] Reason cannot_absorb(const Clusters& clusters, int joined, int other, NodeId id,
                                   const std::vector<NodeId>& own);

}  // namespace braid
