#pragma once

#include <optional>

#include "lowering/passes.h"

namespace braid {

/// The first half of canonicalize: rewrites PyTorch's alternative spellings into one. Nothing when
/// the graph has none.
[[nodiscard]] std::optional<Graph> normalize_spellings(const Graph& graph, PassContext& context);

}  // namespace braid
