#pragma once

#include <optional>

#include "lowering/passes.h"

namespace braid {

/// The first half of canonicalize: PyTorch's several spellings of one thing become one. Nothing
/// when the graph has no others.
[[nodiscard]] std::optional<Graph> normalize_spellings(const Graph& graph, PassContext& context);

}  // namespace braid
