#pragma once

#include <vector>

#include "lowering/schedule/overlap_timeline.h"

namespace braid {

/// Nodes that follow each other without a gap up to the end of the timeline, in order: if one of
/// them were faster, the program would end earlier or another path would be as long. Waits are left
/// out; their time belongs to their collective. `estimates` are those of the timeline.
[[nodiscard]] std::vector<NodeId> critical_path(const OverlapTimeline& timeline,
                                                const std::vector<NodeEstimate>& estimates);

}  // namespace braid
