#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "lowering/pass.h"
#include "lowering/plan/cost.h"

namespace braid {

/// Multiplications per element that a matmul [m, k] x [k, n] reads or writes; 0 for an empty one.
[[nodiscard]] double arithmetic_intensity(double m, double n, double k);

/// By how many nanoseconds each matmul that split_reductions cuts takes less than whole. Its sum is
/// a launch, unless the kernel of an all-reduce by packets computes it.
[[nodiscard]] std::map<NodeId, double> saved_apart_ns(const Graph& graph,
                                                      const PassContext& context);

/// Nanoseconds of all nodes of a graph run one after the other, before split_reductions and
/// lower_collectives, with symbols at their maximum: matmuls count with the cut that they will get,
/// collectives over symmetric memory with their fastest algorithm.
[[nodiscard]] double graph_ns(const Graph& graph, const PassContext& context);

/// The dim of [M, K] x [K, N] that a pipeline cuts into one chunk per rank. Cuts of K and N have no
/// chunked form.
enum class PipelinedDim : std::uint8_t { kM, kN, kK };

struct PipelineEstimate {
  double plain_ns = 0;  ///< the collective, then the matmuls, each of them whole along K
  /// Chunk by chunk, transfers overlapping matmuls; nothing where there are no chunks.
  std::optional<double> pipelined_ns;
  /// The collective inside the kernel of the matmuls; nothing where there is no such kernel.
  std::optional<double> in_kernel_ns;
  bool rows_in_kernel = true;  ///< it could go on to whole rows of what is reduced, such as a norm
  double intensity = 0;        ///< the smallest arithmetic intensity among a chunk's matmuls
  /// The quicker one of the two; nothing where there is neither.
  [[nodiscard]] std::optional<double> best_ns() const;
  [[nodiscard]] double least_ns() const { return std::min(plain_ns, best_ns().value_or(plain_ns)); }
};
/// Estimates a gather or scatter with the matmuls behind or in front of it, whose right operands
/// are matrices, in the form of chunk_fused.h. Each chunk's matmul is a kernel of its own, with its
/// own tiles, and reads all of B: that is why small M does not gain.
[[nodiscard]] PipelineEstimate estimate_pipeline(const Graph& graph, const Node& collective,
                                                 std::span<const NodeId> matmuls, PipelinedDim dim,
                                                 const Bindings& bindings,
                                                 const DeviceModel& device);
/// The hint of a fused node that has the `runtime_ns` of its collective.
inline constexpr const char* kCollectiveHint = "collective_ns";
/// Estimates a fused node in its possible forms.
[[nodiscard]] PipelineEstimate estimate_fused(const Graph& graph, const Node& node,
                                              const Bindings& bindings, const DeviceModel& device);

}  // namespace braid
