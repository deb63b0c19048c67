#pragma once

#include <map>

#include "lowering/pass.h"

namespace braid {

/// By how many nanoseconds each matmul that split_reductions cuts by its model takes less than
/// whole (node_ns), with the sum of its parts. For passes that run earlier and compare times.
[[nodiscard]] std::map<NodeId, double> saved_by_cuts_ns(const Graph& graph,
                                                        const PassContext& context);

}  // namespace braid
