#pragma once

#include <optional>
#include <set>
#include <string>

#include "lowering/pass.h"

namespace braid {

/// A graph without fused nodes. The operands of copies from peers are not yet in symmetric memory.
struct Decomposed {
  Graph graph;
  std::set<std::string, std::less<>> in_kernel;  ///< collectives to run inside the kernel of their
                                                 ///< matmuls
};
/// The graph with every fused node in chunks (chunk_fused.h), or as the collective and matmuls that
/// it stands for. Nothing where the graph has no fused node.
[[nodiscard]] std::optional<Decomposed> decompose_fused(const Graph& graph, PassContext& context);

}  // namespace braid
