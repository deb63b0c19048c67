#pragma once

#include <span>
#include <vector>

#include "pack/interval.h"

namespace braid {

/// Compressed time: a section is a maximal set of intervals that live at one time. Two intervals
/// overlap where they share a section.
struct Sections {
  int count = 0;
  std::vector<int> first, last;  ///< for each interval its sections, both inclusive
};
[[nodiscard]] Sections sections_of(std::span<const Interval> intervals);

/// Groups of intervals without overlaps between groups, in time order.
[[nodiscard]] std::vector<std::vector<int>> components_of(std::span<const Interval> intervals);

}  // namespace braid
