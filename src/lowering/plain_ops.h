#pragma once

#include "lowering/rewrite.h"

namespace braid {

/// Writes a node whose op is another name for a few plain ones: select, narrow, one_hot,
/// take_along_dim, full_like and the like, sort, bitwise_not, moe_experts; a topk of rows that no
/// block holds, as one of equal parts and one of what these give; a long cumsum, as chains; and an
/// attention whose heads no kernel holds, as matmuls and a softmax.
/// What runs after canonicalize does not know these ops. Returns false for a node of any other op.
bool write_plain(const Graph& graph, const Node& node, Rewriter& rewrite);
/// Whether write_plain does something.
[[nodiscard]] bool has_plain_form(const Graph& graph, const Node& node);

}  // namespace braid
