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
/// As torch.distributed names them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 5> kReduceOpNames = {"sum", "avg", "max", "min",
                                                                   "product"};
/// Nothing for another name.
[[nodiscard]] std::optional<ReduceOp> parse_reduce_op(std::string_view name);

/// How a collective runs: its attribute `algorithm`, once it has one. All can run in one shot; two
/// shots, packets and multimem are an all_reduce's (codegen/templates/collective.cpp), and an
/// all_gather may be one kernel with the matmuls that read it (gather_gemm.cpp), a reduction with
/// the one that computes its operand (gemm_reduce.cpp).
inline constexpr std::string_view kOneShot = "one_shot";
inline constexpr std::string_view kTwoShot = "two_shot";
inline constexpr std::string_view kPackets = "ll";
inline constexpr std::string_view kMultimem = "multimem";
inline constexpr std::string_view kInKernel = "in_kernel";
/// That of a collective that a communicator runs, on whole buffers and beside the kernels: it stays
/// asynchronous, and chunks are along dim 0.
inline constexpr std::string_view kByCommunicator = "nccl";
/// Empty where lowering has not given it one yet, and of what is no collective.
[[nodiscard]] std::string_view algorithm_of(const Node& node);
/// Whether the peers read the operand where it lies, in the arena of the group: that of a
/// collective with an algorithm, but for packets, which a rank sends, and a communicator.
[[nodiscard]] bool shares_operand(const Node& collective);
/// Whether packets can carry it.
[[nodiscard]] constexpr bool fits_packet(DType dtype) { return dtype_size(dtype) <= 4; }

/// Whether multimem instructions reduce it.
[[nodiscard]] constexpr bool fits_multimem(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}
/// The first architecture that has them.
inline constexpr int kLeastMultimemSm = 90;

/// Where the elements of a collective's result come from; one form for all of them. Every rank of
/// the group has an operand of the same shape. A result element of rank `me` is
///   - along `gather_dim`, the element of the rank whose chunk its index lies in;
///   - else that of rank `src`, or the ranks' elements reduced in rank order, or its own.
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
/// `shard` moves nothing between ranks: each takes its chunk of what it has, as Megatron's scatter
/// to a sequence-parallel region.
struct Collective {
  std::int64_t ranks = 1;
  std::optional<std::size_t> gather_dim;
  std::optional<std::size_t> scatter_dim;
  std::optional<ReduceOp> reduce;
  std::optional<std::int64_t> src;
  /// [from * ranks + to]: rows of an all_to_all_single whose chunks are uneven; empty: even ones.
  std::vector<std::int64_t> splits;

  /// First result row of what `to` has from `from`, and first operand row of it at `from`; of
  /// uneven chunks.
  [[nodiscard]] std::int64_t result_start(std::int64_t from, std::int64_t to) const;
  [[nodiscard]] std::int64_t operand_start(std::int64_t from, std::int64_t to) const;

  /// The result's shape. Fails where a dim does not divide, at a place relative to the node.
  [[nodiscard]] Shape result_shape(const Shape& operand, const SymbolTable& symbols) const;
};

/// Throws kInvalidArgument with a place relative to the node where the attributes do not fit the
/// operand.
[[nodiscard]] Collective collective_of(const Graph& graph, CollectiveKind kind, const Attrs& attrs,
                                       const TensorType& operand);
/// The node's, of one of its operands.
[[nodiscard]] Collective collective_of(const Graph& graph, const Node& node,
                                       const TensorType& operand);

/// Why multimem instructions cannot do that reduction; empty where they can. They round a sum to
/// its dtype, so a mean of 16-bit floats would be rounded twice, and their extremes of floats say
/// nothing of NaN.
[[nodiscard]] std::string cannot_multimem(ReduceOp op, DType dtype);

/// Whether a lowered collective is one kernel with its matmuls (algorithm "in_kernel"): chunks of
/// an all_gather are copied while others are multiplied, of a reduction sent when they are.
[[nodiscard]] bool is_in_kernel(const Node& collective);
[[nodiscard]] bool gathers_in_kernel(const Node& collective);
[[nodiscard]] bool reduces_in_kernel(const Node& collective);

}  // namespace braid
