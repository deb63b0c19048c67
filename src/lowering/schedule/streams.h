#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph.h"

namespace braid {

// The stream of a node's step. Each rank has these streams; a program renumbers those that it uses
// without gaps.
inline constexpr int kComputeStream = 0;
inline constexpr int kCopyStream = 1;           ///< copies from peers, and the barriers before them
inline constexpr int kCommunicationStream = 2;  ///< collectives of communicators

struct Placement {
  int stream = kComputeStream;
  /// Multiprocessors that the node's kernel must leave free when it waits for peers: those of
  /// kernels that may wait beside it on other streams. Both wait for blocks of other ranks, so
  /// neither may keep the other from running.
  std::int64_t leaves = 0;
};

/// The placement of each node: work that begins before it and is awaited behind it runs beside it.
/// Linear time.
[[nodiscard]] std::vector<Placement> place_on_streams(const Graph& graph, int ranks_per_device);

}  // namespace braid
