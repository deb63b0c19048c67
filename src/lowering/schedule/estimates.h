#pragma once

#include <vector>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

// What the scheduling passes ask of a node. A kernel is what its body holds.

/// It meets other ranks: a collective, one in a kernel or with its matmuls, a copy from a peer.
[[nodiscard]] bool contains_collective(const Node& node);
/// A matmul in any form, or a call of a library: what other nodes hide behind.
[[nodiscard]] bool is_gemm_like(const Node& node);

struct NodeEstimate {
  double ns = 0;
  bool collective = false;    ///< contains_collective
  bool asynchronous = false;  ///< and ends at its wait_tensor
  bool wait = false;
  bool gemm = false;  ///< is_gemm_like
};

/// Of each node, symbols at their largest values; the time of what contains a collective is
/// multiplied by the first factor, that of the others by the second.
[[nodiscard]] std::vector<NodeEstimate> estimate_nodes(const Graph& graph, const Target& target,
                                                       double collective_factor = 1,
                                                       double other_factor = 1);

}  // namespace braid
