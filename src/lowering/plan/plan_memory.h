#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowering/plan/pack/interval.h"

namespace braid {

/// A buffer to be placed: it needs `size` bytes from step `first` to step `last`, both inclusive.
struct Lifetime {
  std::int64_t size = 0;
  int first = 0;
  int last = 0;
  std::int64_t alignment = 256;
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  ///< of each lifetime
  std::int64_t total = 0;             ///< bytes that hold them all
  /// The most bytes that live at one step (sizes rounded up to their alignment): no plan is
  /// smaller.
  std::int64_t bound = 0;
};

/// Gives every buffer an offset such that no two which live at the same step overlap. A pure
/// function without clocks: every rank finds the same plan.
[[nodiscard]] MemoryPlan plan_memory(std::span<const Lifetime> buffers);
/// Its bound alone.
[[nodiscard]] std::int64_t memory_bound(std::span<const Lifetime> buffers);

}  // namespace braid
