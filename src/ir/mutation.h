#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ir/op_registry.h"

namespace braid {

// Aliasing and mutation. A graph is SSA except for ops that overwrite an operand (Mutates in the
// registry). Views, waits and the results of such ops alias the storage of another value; a graph
// input or a computed value is its own storage.
//
//     s = view(x)          s and x name the memory of x
//     c = all_reduce_(s)   so does c: x now holds other values
//     w = wait_tensor(c)   from here on, x may be read, and w, but s no more
//
// What a collective computes can be read by a wait alone, so a wait of it is its name at any time.

/// The operands that the node overwrites, and for each the result that holds the new value: the
/// node's last results.
[[nodiscard]] std::span<const ValueId> mutated_operands(const Node& node);
[[nodiscard]] std::span<const ValueId> mutated_results(const Node& node);

/// The operand that result `result` of the node aliases; nothing when the node computes it.
[[nodiscard]] std::optional<ValueId> named_operand(const Node& node, int result);

/// For each value the value whose storage it aliases, often itself.
[[nodiscard]] std::vector<ValueId> storages(const Graph& graph);

/// Whether the value is its storage, or a wait of that: a name of it also after a write.
[[nodiscard]] bool names_storage(const Graph& graph, ValueId value, ValueId storage);

/// For each value whether some node overwrites its storage. Linear time.
[[nodiscard]] std::vector<bool> overwritten_values(const Graph& graph);

/// For each element of `value` its index in the storage.
[[nodiscard]] std::vector<std::size_t> storage_elements(const Graph& graph, ValueId value,
                                                        const Bindings& bindings);

// Updates (OpClass::kUpdate) are what functionalize makes of writes to parts of a tensor: values in
// SSA form, of which a plan writes only the elements that are replaced, where it can.

/// Result `result` of a node is operand `operand`, of which some elements are replaced.
struct Update {
  std::size_t result, operand;
};
[[nodiscard]] std::vector<Update> updates_of(const Node& node);
/// The same of a kernel with that body.
[[nodiscard]] std::vector<Update> updates_of(const Graph& body);
/// The update whose result the value is, or null.
[[nodiscard]] const Node* update_of(const Graph& graph, ValueId value);
/// The input of a kernel's body that an output is an update of, as far as it is one that lies in
/// memory as it is.
[[nodiscard]] std::optional<std::size_t> updated_input(const Graph& body, ValueId output);

/// Where an update puts an element of its last operand.
enum class UpdateForm : std::uint8_t {
  kRange,      ///< slice_scatter: at the same place of a range
  kAlongDim,   ///< index_copy, index_add: at an index along a dim
  kEach,       ///< scatter, scatter_add: the same, but each element has an index of its own
  kFirstDims,  ///< index_put: at an index for each of the first dims
};
[[nodiscard]] UpdateForm update_form(const Node& update);
/// Whether the update adds to what is there; else it replaces that.
[[nodiscard]] bool adds_up(const Node& update);
/// Along which dim of its last operand an update has several elements for one place.
[[nodiscard]] std::size_t source_dim(const Graph& graph, const Node& update);

/// Refuses ambiguous uses of memory: an alias from before a mutation used after it; memory used
/// between an in-place collective and its wait; the operand of a collective overwritten before its
/// wait; two overwritten operands of one node that may share elements. Throws kInvalidArgument at
/// `place`/nodes/i.
void verify_mutations(const Graph& graph, const std::string& place);

}  // namespace braid
