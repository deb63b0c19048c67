#pragma once

#include <optional>
#include <set>
#include <string>

#include "lowering/pass.h"

namespace braid {

/// A graph without fused nodes. The operands of copies from peers are not in symmetric memory yet.
struct Decomposed {
  Graph graph;
  std::set<std::string, std::less<>> in_kernel;  ///< collectives for the kernel of their matmuls
};
/// The graph with every fused node in chunks (chunk_fused.h), or as the collective and the matmuls
/// that it stands for; nothing where it has none.
[[nodiscard]] std::optional<Decomposed> decompose_fused(const Graph& graph, PassContext& context);

}  // namespace braid
