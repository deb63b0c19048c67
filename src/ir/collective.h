#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_registry.h"

namespace braid {

enum class ReduceOp : std::uint8_t { kSum, kAvg, kMax, kMin, kProduct };
/// The names of torch.distributed, in the order of the enumerators.
inline constexpr std::array<std::string_view, 5> kReduceOpNames = {"sum", "avg", "max", "min",
                                                                   "product"};
/// Returns nothing for an unknown name.
[[nodiscard]] std::optional<ReduceOp> parse_reduce_op(std::string_view name);

/// How a collective runs: its attribute `algorithm`, once it has one. All can run in one shot; two
/// shots, packets and multimem are an all_reduce's, and an all_gather may be one kernel with the
/// matmuls that read it, a reduction with the one that computes its operand
/// (codegen/kernel/registry.cpp).
enum class Algorithm : std::uint8_t {
  kNone,  ///< not decided; or no collective
  kOneShot,
  kTwoShot,
  kPackets,
  kMultimem,
  kInKernel,
  /// A communicator runs it, on whole buffers and beside the kernels. It stays asynchronous, and
  /// its chunks are along dim 0.
  kByCommunicator,
  /// A gather or scatter done by copies (lowering/collectives/by_copies.h). No node has it: the
  /// copies are nodes.
  kByCopies,
};
/// The texts of the attribute, in the order of the enumerators.
inline constexpr std::array<std::string_view, 8> kAlgorithmNames = {
    "", "one_shot", "two_shot", "ll", "multimem", "in_kernel", "nccl", "copy_engine"};
[[nodiscard]] constexpr std::string_view algorithm_name(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}
[[nodiscard]] Algorithm algorithm_of(const Node& node);
void set_algorithm(Attrs& attrs, Algorithm algorithm);
/// Whether peers read the operand in place, in the group's arena: true for all algorithms except
/// packets, which a rank sends, and communicators.
[[nodiscard]] bool shares_operand(const Node& collective);
/// Whether packets can carry values of this dtype.
[[nodiscard]] constexpr bool fits_packet(DType dtype) { return dtype_size(dtype) <= 4; }
/// Why an operand cannot be sent as packets; empty where it can. In a run without elements none
/// would be sent, and what arrives tells a rank how far its peers are.
[[nodiscard]] std::string cannot_send_packets(const TensorType& operand,
                                              const SymbolTable& symbols);

/// Whether multimem instructions can reduce this dtype.
[[nodiscard]] constexpr bool fits_multimem(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

/// The data movement of a collective, in one form for all kinds. Every rank of the group has an
/// operand of the same shape. A result element of rank `me` is
///   - along `gather_dim`, taken from the rank whose chunk the index lies in;
///   - else taken from rank `src`, reduced over the ranks in rank order, or its own.
/// Along `scatter_dim`, it stems from chunk `me` of the operand.
///
///     all_reduce               {reduce}                     [A, B] -> [A, B]
///     broadcast                {src}                        [A, B] -> [A, B]
///     all_gather_into_tensor   {gather_dim 0}               [A, B] -> [n*A, B]
///     reduce_scatter_tensor    {scatter_dim 0, reduce}      [n*A, B] -> [A, B]
///     all_to_all_single        {gather_dim 0, scatter_dim 0}  [n*A, B] -> [n*A, B]
///     shard_dim_alltoall       {gather_dim 0, scatter_dim 1}  [A, n*B] -> [n*A, B]
///     shard                    {scatter_dim 0}              [n*A, B] -> [A, B]
///
/// `shard` moves nothing between ranks: each takes its chunk of its own operand, like Megatron's
/// scatter to a sequence-parallel region.
struct Collective {
  std::int64_t ranks = 1;
  std::optional<std::size_t> gather_dim;
  std::optional<std::size_t> scatter_dim;
  std::optional<ReduceOp> reduce;
  std::optional<std::int64_t> src;
  /// [from * ranks + to]: rows of an all_to_all_single with uneven chunks; empty for even ones.
  std::vector<std::int64_t> splits;

  /// For uneven chunks: the first result row that `to` has from `from`, and the first operand row
  /// of that chunk at `from`.
  [[nodiscard]] std::int64_t result_start(std::int64_t from, std::int64_t to) const;
  [[nodiscard]] std::int64_t operand_start(std::int64_t from, std::int64_t to) const;

  /// The result's shape. Throws, with a place relative to the node, where a dim is not divisible.
  [[nodiscard]] Shape result_shape(const Shape& operand, const SymbolTable& symbols) const;
};

/// Throws kInvalidArgument with a place relative to the node where the attributes do not fit the
/// operand.
[[nodiscard]] Collective collective_of(const Graph& graph, CollectiveKind kind, const Attrs& attrs,
                                       const TensorType& operand);
/// The same for one operand of a node.
[[nodiscard]] Collective collective_of(const Graph& graph, const Node& node,
                                       const TensorType& operand);

/// Why multimem instructions cannot do that reduction; empty where they can. They round a sum to
/// its dtype, so a mean of 16-bit floats would be rounded twice, and their min and max of floats do
/// not propagate NaN.
[[nodiscard]] std::string cannot_multimem(ReduceOp op, DType dtype);

/// Whether a lowered collective is fused into one kernel with its matmuls (algorithm "in_kernel").
/// Chunks of an all_gather are copied while others are multiplied; tiles of a reduction are sent as
/// soon as they are done.
[[nodiscard]] bool is_in_kernel(const Node& collective);
[[nodiscard]] bool gathers_in_kernel(const Node& collective);
[[nodiscard]] bool reduces_in_kernel(const Node& collective);

}  // namespace braid
