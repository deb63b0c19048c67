#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph.h"

namespace braid {

// Which stream of its device a node's step runs on. One rank's streams, in the order of the nodes;
// a program numbers those that it uses without a gap.
inline constexpr int kComputeStream = 0;
inline constexpr int kCopyStream = 1;           ///< copies from peers, and the barriers before them
inline constexpr int kCommunicationStream = 2;  ///< collectives of communicators

struct Placement {
  int stream = kComputeStream;
  /// Multiprocessors that the node's kernel is not to fill when it waits for peers: those of what
  /// may wait beside it on other streams. Both wait for blocks of other ranks to come, so that one
  /// must not keep out the other.
  std::int64_t leaves = 0;
};

/// Of each node, for its place in the order: what has begun in front of it and is waited for behind
/// it is beside it. Linear.
[[nodiscard]] std::vector<Placement> place_on_streams(const Graph& graph, int ranks_per_device);

}  // namespace braid
