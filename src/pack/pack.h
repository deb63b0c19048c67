#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "pack/interval.h"

namespace braid {

struct PackOptions {
  std::int64_t capacity = 0;   ///< a packing of this total, or of the bound, is good enough
  std::int64_t nodes = 0;      ///< search budget in nodes; 0: heuristics alone
  std::function<bool()> stop;  ///< see SearchBudget
};

struct PackResult {
  Packing packing;
  std::int64_t bound = 0;   ///< lower bound
  std::int64_t nodes = 0;   ///< nodes visited
  bool impossible = false;  ///< no packing has the capacity (proven)
};

/// Runs heuristics, then, where their result is not good enough, a search. Deterministic unless
/// `stop` is set.
[[nodiscard]] PackResult pack(std::span<const Interval> intervals, const PackOptions& options);

}  // namespace braid
