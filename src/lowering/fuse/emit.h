#pragma once

#include "lowering/fuse/clusters.h"

namespace braid {

/// Builds the new graph: the items in a topological order that stays close to the old one. Leaves a
/// remark at each kernel, and at each operand that might have been fused.
[[nodiscard]] Graph emit_clusters(Clusters& clusters);

}  // namespace braid
