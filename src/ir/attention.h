#pragma once

#include <cstddef>
#include <optional>

#include "ir/op_registry.h"

namespace braid {

/// What `scaled_dot_product_attention` computes (ATen): softmax(query keyᵀ · scale + mask) value,
/// for query [..., L, E], key [..., S, E] and value [..., S, V].
struct Attention {
  std::size_t groups = 1;  ///< heads of the query for each head of key and value (enable_gqa)
  double scale = 1;
  bool causal = false;  ///< query i sees keys 0 to i
  /// The operand with a mask, if there is one: bool (false hides a key) or added to the scores.
  std::optional<std::size_t> mask;
};

/// Of a node whose types have been inferred.
[[nodiscard]] Attention attention_of(const Graph& graph, const Node& node);

}  // namespace braid
