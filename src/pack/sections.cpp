#include "pack/sections.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace braid {

std::int64_t most_live(std::span<const Interval> intervals) {
  std::vector<std::pair<std::int64_t, std::int64_t>> events;
  events.reserve(2 * intervals.size());
  for (const Interval& interval : intervals) {
    events.emplace_back(interval.lower, interval.size);
    events.emplace_back(interval.upper, -interval.size);
  }
  std::ranges::sort(events);  // at one time what ends goes before what starts
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& [time, bytes] : events) most = std::max(most, live += bytes);
  return most;
}

Sections sections_of(std::span<const Interval> intervals) {
  std::vector<std::tuple<std::int64_t, bool, std::size_t>> events;  // (time, whether it starts,
                                                                    // interval)
  events.reserve(2 * intervals.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    events.emplace_back(intervals[i].lower, true, i);
    events.emplace_back(intervals[i].upper, false, i);
  }
  std::ranges::sort(events);
  Sections sections{0, std::vector<int>(intervals.size()), std::vector<int>(intervals.size())};
  // A live set is maximal where something has started and the next event is an end.
  bool grown = false;
  for (const auto& [time, starts, i] : events) {
    if (starts) {
      grown = true;
      sections.first[i] = sections.count;
      continue;
    }
    if (grown) ++sections.count;
    grown = false;
    sections.last[i] = sections.count - 1;
  }
  return sections;
}

std::vector<std::vector<int>> components_of(std::span<const Interval> intervals) {
  std::vector<int> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int a, int b) {
    return std::tuple(intervals[a].lower, a) < std::tuple(intervals[b].lower, b);
  });
  std::vector<std::vector<int>> components;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const int i : order) {
    if (components.empty() || intervals[i].lower >= end) components.emplace_back();
    components.back().push_back(i);
    end = std::max(end, intervals[i].upper);
  }
  return components;
}

}  // namespace braid
