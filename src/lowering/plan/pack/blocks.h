#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowering/plan/pack/interval.h"

namespace braid {

/// Intervals that are packed as one.
struct Block {
  Interval whole;
  std::vector<std::pair<int, std::int64_t>> parts;  ///< (interval, its offset in the block)
};

/// How far intervals are joined. Each step leaves less to decide, and may lose packings.
enum class Joining : std::uint8_t {
  kNone,
  kStacks,  ///< those with the same lifetime lie on top of each other
  kChains,  ///< and where one alone of its size ends when one alone of it begins, they follow
};
[[nodiscard]] std::vector<Block> join(std::span<const Interval> intervals, Joining joining);

/// Offsets of the intervals from those of the blocks.
[[nodiscard]] std::vector<std::int64_t> offsets_of(std::span<const Block> blocks,
                                                   std::span<const std::int64_t> offsets);

}  // namespace braid
