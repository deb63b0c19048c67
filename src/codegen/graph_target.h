#pragma once

#include <string_view>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

// The targets that a graph can be compiled for; each op declares its least architecture
// (OpDef::least_sm).

/// The first target that can run every node, including those in kernel bodies.
[[nodiscard]] Target least_target(const Graph& graph);

/// Throws kInvalidArgument at /nodes/i for the first node that needs a later target.
void check_target(const Graph& graph, const Target& target);

/// The target that the user asked for ("sm_90a"), if it suffices; for an empty text the least one.
/// Throws kInvalidArgument.
[[nodiscard]] Target choose_target(const Graph& graph, std::string_view asked);

}  // namespace braid
