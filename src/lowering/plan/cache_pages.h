#pragma once

#include <cstdint>
#include <vector>

#include "braid/graph.h"

namespace braid {

/// The caches of a graph's paged attentions.
struct CachePages {
  std::int64_t pages = 0;           ///< of each cache
  std::vector<std::int64_t> bytes;  ///< of one page, for each cache
};

/// Throws kInvalidArgument for a graph without paged_attention, and for one whose caches are not
/// all inputs of as many pages, their first dim.
[[nodiscard]] CachePages cache_pages(const Graph& graph);

}  // namespace braid
