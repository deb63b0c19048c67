#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "braid/graph.h"
#include "braid/tensor.h"

namespace braid {

/// What random_inputs gives the first rank for an input that says where rows are: ends of groups,
/// the indices of a write, the experts of tokens, or what a paged_attention has beside its cache,
/// of the graph or of a kernel's body. Nothing for other inputs.
[[nodiscard]] std::optional<HostTensor> random_places(const Graph& graph, std::size_t input,
                                                      const Bindings& bindings, std::uint64_t seed);

}  // namespace braid
