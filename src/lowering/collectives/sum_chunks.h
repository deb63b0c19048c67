#pragma once

#include <cstdint>
#include <string_view>

#include "ir/fused.h"

namespace braid {

/// Chunks that lie along dim 0, one of each rank and in rank order, added as a reduce_scatter adds
/// them: appends the nodes, and gives the sum, or the average, of one chunk's shape. `reduce_op` is
/// "sum" or "avg".
ValueId add_sum_of_chunks(Graph& graph, ValueId chunks, std::int64_t ranks,
                          std::string_view reduce_op, const NameNode& name);

}  // namespace braid
