#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ir/op_registry.h"

namespace braid {

// Memory that several values name. A graph is SSA except for the ops that overwrite an operand
// (Mutates in the registry). Views, waits and the results of such ops are names for the memory of a
// value that stands for itself: a graph input, or what a node computes.
//
//     s = view(x)          s and x name the memory of x
//     c = all_reduce_(s)   so does c: x now holds other values
//     w = wait_tensor(c)   from here on, x may be read, and w, but s no more

/// The operands that the node overwrites, and for each the result that it holds then: the node's
/// last ones.
[[nodiscard]] std::span<const ValueId> mutated_operands(const Node& node);
[[nodiscard]] std::span<const ValueId> mutated_results(const Node& node);

/// The operand whose memory result `result` of the node names; nothing when the node computes it.
[[nodiscard]] std::optional<ValueId> named_operand(const Node& node, int result);

/// For each value the one whose memory it names, often itself.
[[nodiscard]] std::vector<ValueId> storages(const Graph& graph);

/// For each value whether some node overwrites the memory that it names. Linear.
[[nodiscard]] std::vector<bool> overwritten_values(const Graph& graph);

/// For each element of `value` the element of its storage that it is.
[[nodiscard]] std::vector<std::size_t> storage_elements(const Graph& graph, ValueId value,
                                                        const Bindings& bindings);

/// Refuses uses of memory that is not what the user of it meant: a name from before a mutation
/// used after it, memory used between an in-place collective and the wait of that result, the
/// operand of a collective overwritten before its wait, and two operands of one node that it
/// overwrites and that may share elements. Throws kInvalidArgument at `place`/nodes/i.
void verify_mutations(const Graph& graph, const std::string& place);

}  // namespace braid
