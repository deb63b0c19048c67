#pragma once

#include <cstdint>

#include "braid/dim3.h"

namespace braid {

/// What a launch asks for that older devices do not have (Hopper has both).
struct LaunchAttributes {
  /// Blocks of a cluster, which run at one time and reach each other's shared memory. The grid is
  /// whole clusters.
  Dim3 cluster;
  /// The kernel may begin before the one in front of it on its stream has ended, and waits for that
  /// by itself before it uses what that one writes.
  bool programmatic = false;
  bool operator==(const LaunchAttributes&) const = default;  ///< of all
};

/// The extents of a launch, and what it asks for.
struct LaunchConfig {
  Dim3 grid;                       ///< blocks
  Dim3 block;                      ///< threads of each
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory of a block
  LaunchAttributes attributes{};   ///< of newer devices
};

}  // namespace braid
