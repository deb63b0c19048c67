#pragma once

#include "braid/graph.h"

namespace braid {

/// Moves elementwise nodes in front of the joins of chunks that they read, so that they run chunk
/// by chunk and can be the epilogue of the kernels that make the chunks.
[[nodiscard]] Graph sink_joins(const Graph& graph);

}  // namespace braid
