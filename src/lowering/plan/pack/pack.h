#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lowering/plan/pack/interval.h"

namespace braid {

struct PackOptions {
  std::int64_t capacity =
      0;                   ///< a packing of so much is good enough; the least that can be is, too
  std::int64_t nodes = 0;  ///< that the search may visit; 0: heuristics alone
  std::function<bool()> stop;  ///< see SearchBudget
};

struct PackResult {
  Packing packing;
  std::int64_t bound = 0;   ///< no packing is smaller
  std::int64_t nodes = 0;   ///< that were visited
  bool impossible = false;  ///< it was shown that no packing has the capacity
};

/// Heuristics first, then, where they miss what is good enough, search. A pure function where there
/// is no `stop`.
[[nodiscard]] PackResult pack(std::span<const Interval> intervals, const PackOptions& options);

}  // namespace braid
