#pragma once

#include <optional>

#include "lowering/fsdp/reasons.h"
#include "lowering/pass.h"

namespace braid {

// The three rewrites of the pass `fsdp`, in order. Each states its rule where it is defined, and
// returns nothing where it finds nothing to do.

std::optional<Graph> remove_unsharded_params(const Graph& graph, PassContext& context);
std::optional<Graph> reinplace_all_gathers(const Graph& graph, PassContext& context);
std::optional<Graph> order_fsdp_collectives(const Graph& graph, PassContext& context);

inline constexpr std::string_view kCopyIn = "fsdp.all_gather_copy_in";
inline constexpr std::string_view kSplit = "fsdp.split_with_sizes_copy";
inline constexpr std::string_view kChunkCat = "fsdp.chunk_cat";
inline constexpr std::string_view kCopy = "fsdp.copy_";
inline constexpr std::string_view kResize = "resize_storage_bytes_";

/// The node and result index that a value comes from, looking through getitem nodes.
struct Origin {
  const Node* node = nullptr;  ///< null for a graph input
  int result = 0;
};
[[nodiscard]] Origin origin_of(const Graph& graph, ValueId value);

}  // namespace braid
