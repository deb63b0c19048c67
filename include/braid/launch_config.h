#pragma once

#include <cstdint>

#include "braid/dim3.h"

namespace braid {

/// Launch attributes that need a newer device (Hopper or later).
struct LaunchAttributes {
  /// Blocks per cluster. The blocks of a cluster run at the same time and can reach each other's
  /// shared memory. The grid must be a multiple of it.
  Dim3 cluster;
  /// Programmatic dependent launch: the kernel may begin before the previous one on its stream has
  /// ended. It must wait by itself before it uses what that one writes.
  bool programmatic = false;
  bool operator==(const LaunchAttributes&) const = default;
};

/// The shape of a launch and its attributes.
struct LaunchConfig {
  Dim3 grid;                       ///< blocks
  Dim3 block;                      ///< threads per block
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory of a block
  LaunchAttributes attributes{};
};

}  // namespace braid
