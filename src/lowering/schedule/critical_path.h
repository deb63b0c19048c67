#pragma once

#include <vector>

#include "lowering/schedule/overlap_timeline.h"

namespace braid {

/// Nodes that follow each other without a gap up to the end of the timeline, in order: a program
/// with one of them less long would end earlier, or another path would be as long. Waits are none
/// of them: what they take is their collective's. Estimates are those that the timeline is made of.
[[nodiscard]] std::vector<NodeId> critical_path(const OverlapTimeline& timeline,
                                                const std::vector<NodeEstimate>& estimates);

}  // namespace braid
