#pragma once

#include <string_view>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

// What a graph can be compiled for: each op declares the least architecture (OpDef::least_sm).

/// The first target that can run every node, those in the bodies of kernels included.
[[nodiscard]] Target least_target(const Graph& graph);

/// Throws kInvalidArgument at /nodes/i, naming the first node that needs a later target than this.
void check_target(const Graph& graph, const Target& target);

/// What the user asked for ("sm_90a"), if it suffices; the least one where the text is empty.
/// Throws kInvalidArgument.
[[nodiscard]] Target choose_target(const Graph& graph, std::string_view asked);

}  // namespace braid
