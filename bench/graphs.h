#pragma once

#include <cstdint>
#include <string>

#include "braid/graph.h"

namespace braid::bench {

/// c = mm(a, b) of n x n x n in bf16, on one rank.
[[nodiscard]] Graph gemm_graph(std::int64_t n);

/// y = rms_norm(x, g) on bf16[rows, width], on one rank.
[[nodiscard]] Graph rms_norm_graph(std::int64_t rows, std::int64_t width);

/// A chain of decoder MLP blocks (norm, gate, up, silu, mul, down, all-reduce, wait, add) on four
/// ranks, as JSON, with at least `nodes` nodes.
[[nodiscard]] std::string decoder_chain_json(std::int64_t nodes);

/// Decoder layers of width 4096 on 2048 tokens, without the attention itself, over a group without
/// symmetric memory, so that collectives run beside the kernels. Each is waited for at once.
struct DecoderForm {
  std::int64_t layers, ranks;
  /// Weights are split over the ranks and gathered before use; else each rank has its share of each
  /// matmul, and an all-reduce follows the second and the last one of a layer.
  bool sharded;
  std::int64_t batches;  ///< that go through the layers in turns, and share nothing but weights
};
[[nodiscard]] Graph decoder_graph(const DecoderForm& form);

// Shapes that a pass may be slow at, as JSON of so many nodes:
/// One chain of pointwise ops in a random order.
[[nodiscard]] std::string pointwise_chain_json(std::int64_t nodes);
/// One value that all other nodes read.
[[nodiscard]] std::string fan_out_json(std::int64_t nodes);
/// Chains of five pointwise ops with nothing between them.
[[nodiscard]] std::string chains_json(std::int64_t nodes);

}  // namespace braid::bench
