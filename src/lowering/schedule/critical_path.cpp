#include "lowering/schedule/critical_path.h"

#include <algorithm>
#include <map>

namespace braid {

std::vector<NodeId> critical_path(const OverlapTimeline& timeline,
                                  const std::vector<NodeEstimate>& estimates) {
  std::map<double, NodeId> by_end;  // last node with that end time
  for (std::size_t id = 0; id < timeline.steps.size(); ++id) {
    const TimelineStep& step = timeline.steps[id];
    if (estimates[id].wait || step.end_ns <= step.begin_ns) continue;
    by_end[step.end_ns] = id;
  }
  std::vector<NodeId> path;
  // A node starts exactly when another one ends, at the very same number.
  for (auto at = by_end.find(timeline.total_ns); at != by_end.end();
       at = by_end.find(timeline.steps[path.back()].begin_ns)) {
    path.push_back(at->second);
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace braid
