#pragma once

#include <optional>

#include "lowering/pass.h"

namespace braid {

/// Makes a tree of cats of each cat of more than kMostCatOperands tensors. Nothing where no cat is
/// that long. The order of nodes stays; the parts of a cat stand in front of it.
[[nodiscard]] std::optional<Graph> split_long_cats(const Graph& graph, PassContext& context);

}  // namespace braid
