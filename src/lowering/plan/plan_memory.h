#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pack/interval.h"

namespace braid {

/// A buffer to place: it needs `size` bytes from step `first` to step `last`, both inclusive.
struct Lifetime {
  std::int64_t size = 0;
  int first = 0;
  int last = 0;
  std::int64_t alignment = 256;
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  ///< for each lifetime
  std::int64_t total = 0;             ///< bytes of the arena
  /// The most bytes that live at one step (sizes rounded up to their alignment), a lower bound.
  std::int64_t bound = 0;
};

/// Gives every buffer an offset such that no two that live at the same step overlap. Deterministic
/// and without clocks: every rank computes the same plan.
[[nodiscard]] MemoryPlan plan_memory(std::span<const Lifetime> buffers);
[[nodiscard]] std::int64_t memory_bound(std::span<const Lifetime> buffers);

}  // namespace braid
