#pragma once

#include "braid/reference.h"
#include "ir/op_registry.h"

namespace braid {

/// The graph's outputs [rank][output] for checked inputs [rank][input]. The number of ranks is that
/// of `inputs`, so that a kernel's body runs in its caller's world.
[[nodiscard]] EvalTensors evaluate_nodes(const Graph& graph, EvalTensors inputs,
                                         const Bindings& bindings,
                                         const PieceProgress& progress = {});

}  // namespace braid
