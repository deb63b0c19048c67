#pragma once

#include <span>
#include <vector>

#include "lowering/plan/pack/interval.h"

namespace braid {

/// Time, compressed: a section is a largest set of intervals that live at one time. Two intervals
/// meet where they share a section.
struct Sections {
  int count = 0;
  std::vector<int> first, last;  ///< of each interval its sections, both inclusive
};
[[nodiscard]] Sections sections_of(std::span<const Interval> intervals);

/// Groups of intervals of which none meets one of another group, in the order of time.
[[nodiscard]] std::vector<std::vector<int>> components_of(std::span<const Interval> intervals);

}  // namespace braid
