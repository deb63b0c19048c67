#pragma once

#include <gtest/gtest.h>

#include <span>

#include "pack/interval.h"

namespace braid::testing {

/// Pairs that overlap in time are disjoint; all are aligned and within the total, which is the
/// highest end.
inline void expect_valid(std::span<const Interval> intervals, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), intervals.size());
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const std::int64_t offset = packing.offsets[i], end = offset + intervals[i].size;
    EXPECT_GE(offset, 0);
    EXPECT_EQ(offset % intervals[i].alignment, 0);
    highest = std::max(highest, end);
    if (intervals[i].size == 0) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (intervals[j].size == 0 || intervals[i].lower >= intervals[j].upper ||
          intervals[j].lower >= intervals[i].upper) {
        continue;
      }
      EXPECT_TRUE(end <= packing.offsets[j] || packing.offsets[j] + intervals[j].size <= offset)
          << i << " and " << j;
    }
  }
  EXPECT_EQ(packing.total, highest);
}

}  // namespace braid::testing
