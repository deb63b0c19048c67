#pragma once

#include "braid/graph.h"

namespace braid {

/// The graph with what is computed from joined chunks, element by element, computed chunk by chunk,
/// so that it can end the kernels that make them.
[[nodiscard]] Graph sink_joins(const Graph& graph);

}  // namespace braid
