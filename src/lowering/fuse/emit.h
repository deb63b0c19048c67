#pragma once

#include "lowering/fuse/clusters.h"

namespace braid {

/// The new graph: each item in an order of their dependences that stays near the order of the old
/// one. Leaves a remark at each kernel, and at each operand that might have been fused.
[[nodiscard]] Graph emit_clusters(Clusters& clusters);

}  // namespace braid
