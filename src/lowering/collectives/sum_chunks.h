#pragma once

#include <cstdint>
#include <string_view>

#include "ir/fused.h"

namespace braid {

/// Appends nodes that add chunks as a reduce_scatter does and returns the sum or average, of one
/// chunk's shape. `chunks` has one chunk per rank along dim 0, in rank order. `reduce_op` is "sum"
/// or "avg".
ValueId add_sum_of_chunks(Graph& graph, ValueId chunks, std::int64_t ranks,
                          std::string_view reduce_op, const NameNode& name);

}  // namespace braid
