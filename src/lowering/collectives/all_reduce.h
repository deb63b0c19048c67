#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/graph.h"
#include "ir/collective.h"
#include "lowering/pass.h"

namespace braid {

/// Why multimem instructions cannot run an all-reduce of this operand; else empty.
[[nodiscard]] std::string why_no_multimem(const Graph& graph, const Node& node,
                                          const TensorType& operand, const PassContext& context);

/// The algorithms that can run an all-reduce of this operand, if nobody else reads it. Multimem is
/// included even if the options demand rank order.
[[nodiscard]] std::vector<Algorithm> all_reduce_algorithms(const Graph& graph, const Node& node,
                                                           const TensorType& operand,
                                                           const PassContext& context);

/// The body of a kernel that is only this all-reduce by this algorithm. The tuner times it to
/// compare algorithms and stores the result under it.
[[nodiscard]] std::shared_ptr<const Graph> lone_all_reduce(const Graph& graph, const Node& node,
                                                           const TensorType& operand,
                                                           Algorithm algorithm);

}  // namespace braid
