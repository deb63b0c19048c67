#pragma once

#include <vector>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

// Node properties for the scheduling passes. A kernel has the properties of its body.

/// Whether it meets other ranks: a collective, alone, in a kernel or fused with matmuls, or a copy
/// from a peer.
[[nodiscard]] bool contains_collective(const Node& node);
/// Whether it is a matmul in any form, or a library call: work that hides other nodes.
[[nodiscard]] bool is_gemm_like(const Node& node);

inline constexpr double kNsPerUs = 1e3;

struct NodeEstimate {
  double ns = 0;
  bool collective = false;    ///< contains_collective
  bool asynchronous = false;  ///< it ends at its wait_tensor
  bool wait = false;
  bool gemm = false;  ///< is_gemm_like
};

/// The estimate of each node, with symbols at their largest values. Times of nodes that contain a
/// collective are multiplied by the first factor, those of others by the second.
[[nodiscard]] std::vector<NodeEstimate> estimate_nodes(const Graph& graph, const Target& target,
                                                       double collective_factor = 1,
                                                       double other_factor = 1);

}  // namespace braid
