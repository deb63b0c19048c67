#pragma once

#include "lowering/passes.h"

namespace braid {

// The three rewrites of the pass `fsdp`, in their order; each states its rule where it is defined.
// Each returns the graph as it is where it finds nothing to do.

Graph remove_unsharded_params(const Graph& graph, PassContext& context);
Graph reinplace_all_gathers(const Graph& graph, PassContext& context);
Graph order_fsdp_collectives(const Graph& graph, PassContext& context);

/// What a value is a result of; getitem nodes are looked through.
struct Source {
  const Node* node = nullptr;  ///< null for a graph input
  int result = 0;
};
[[nodiscard]] Source source_of(const Graph& graph, ValueId value);

}  // namespace braid
