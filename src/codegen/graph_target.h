#pragma once

#include <string_view>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

// The targets that a graph can be compiled for, by the units that its nodes need (units.h).

/// The first target that can run every node, including those in kernel bodies.
[[nodiscard]] Target least_target(const Graph& graph);

/// Throws kInvalidArgument at /nodes/i for the first node that needs a later target, or a unit that
/// is off.
void check_target(const Graph& graph, const Target& target);

/// The target that the user asked for, if it suffices. `otherwise` is what the text leaves out
/// (Target::parse): without it, the least one. Throws kInvalidArgument.
[[nodiscard]] Target choose_target(const Graph& graph, std::string_view asked,
                                   const Target& otherwise);
[[nodiscard]] Target choose_target(const Graph& graph, std::string_view asked);

}  // namespace braid
