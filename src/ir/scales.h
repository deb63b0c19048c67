#pragma once

#include <cstdint>

#include "braid/graph.h"

namespace braid {

/// Elements along a dim that share a number of a scale in blocks: of A's rows and K, 1 x 128, of K
/// and B's columns, 128 x 1 or 128 x 128.
inline constexpr std::int64_t kScaleBlock = 128;

/// Whether an operand of a scaled_mm is a scale in blocks, by which sums of 128 products along K
/// are multiplied; else it is one number, or one for each row or column, of whole sums.
inline bool is_scale_in_blocks(const Graph& graph, const Node& matmul, std::size_t operand) {
  constexpr std::size_t kOfA = 2, kOfB = 3;
  const Shape& scale = graph.type(matmul.inputs[operand]).shape;
  if (scale.size() != 2) return false;
  if (operand == kOfA) return scale[1] != Dim(1);
  return operand == kOfB &&
         (scale[0] != Dim(1) ||
          (scale[1] != Dim(1) && scale[1] != graph.type(matmul.outputs[0]).shape[1]));
}

}  // namespace braid
