#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/graph.h"
#include "lowering/pass.h"

namespace braid {

/// Why multimem instructions cannot run an all-reduce of that operand; else empty.
[[nodiscard]] std::string why_no_multimem(const Graph& graph, const Node& node,
                                          const TensorType& operand, const PassContext& context);

/// The algorithms that can run an all-reduce of that operand, whoever else reads it. Multimem is
/// among them even where the options want the order of the ranks.
[[nodiscard]] std::vector<std::string_view> all_reduce_algorithms(const Graph& graph,
                                                                  const Node& node,
                                                                  const TensorType& operand,
                                                                  const PassContext& context);

/// The body of a kernel that is this all-reduce by that algorithm and nothing else: what a tuner
/// tries to compare algorithms, and what is known of them is known by.
[[nodiscard]] std::shared_ptr<const Graph> lone_all_reduce(const Graph& graph, const Node& node,
                                                           const TensorType& operand,
                                                           std::string_view algorithm);

}  // namespace braid
