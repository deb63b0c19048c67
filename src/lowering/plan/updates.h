#pragma once

#include <vector>

#include "braid/graph.h"

namespace braid {

/// The value whose memory this one names: through views that keep all bytes, and waits.
[[nodiscard]] ValueId named_value(const Graph& graph, ValueId value);

/// For each value whether it is an update (Update in ir/mutation.h) that is made where the updated
/// tensor lies, so that nothing else is copied. The graph is one of kernels. It is so where
///   - nobody needs the old elements: the update's node is the last that uses the tensor, which it
///     takes once, and which is no graph output, communication buffer, chunk or operand of work in
///     the background;
///   - a graph input is meant to change: it ends, by copy_, as an update that was made in it;
///   - the caller does not get the update as an output, which has a place of its own, but for one
///     that is made in an input, of which a copy becomes the output.
/// Every other update begins with a copy of the tensor.
[[nodiscard]] std::vector<bool> updated_in_place(const Graph& graph);

}  // namespace braid
