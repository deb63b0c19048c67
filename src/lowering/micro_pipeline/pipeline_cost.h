#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "lowering/plan/cost.h"

namespace braid {

/// Multiplications per element that a matmul [m, k] x [k, n] reads or writes; 0 for an empty one.
[[nodiscard]] double arithmetic_intensity(double m, double n, double k);

/// Nanoseconds of all nodes of a graph run one after the other. Collectives over symmetric memory
/// without an algorithm count with their fastest one.
[[nodiscard]] double graph_ns(const Graph& graph, const Bindings& bindings,
                              const DeviceModel& device);

/// The dim of [M, K] x [K, N] that a pipeline cuts into one chunk per rank. Cuts of K and N have no
/// chunked form and take the time of their parts.
enum class PipelinedDim : std::uint8_t { kM, kN, kK };

struct PipelineEstimate {
  double plain_ns = 0;      ///< the collective, then the matmuls
  double pipelined_ns = 0;  ///< chunk by chunk, transfers overlapping matmuls
  /// The collective inside the kernel of the matmuls; nothing where there is no such kernel.
  std::optional<double> in_kernel_ns;
  double intensity = 0;  ///< the smallest arithmetic intensity among a chunk's matmuls
  [[nodiscard]] double best_ns() const {
    return std::min(pipelined_ns, in_kernel_ns.value_or(pipelined_ns));
  }
  [[nodiscard]] double least_ns() const { return std::min(plain_ns, best_ns()); }
};
/// Estimates a gather or scatter with the matmuls behind or in front of it, whose right operands
/// are matrices, in the form of chunk_fused.h. Each chunk's matmul is a kernel of its own, with its
/// own tiles, and reads all of B: that is why small M does not gain.
[[nodiscard]] PipelineEstimate estimate_pipeline(const Graph& graph, const Node& collective,
                                                 std::span<const NodeId> matmuls, PipelinedDim dim,
                                                 const Bindings& bindings,
                                                 const DeviceModel& device);
/// Estimates a fused node in its possible forms.
[[nodiscard]] PipelineEstimate estimate_fused(const Graph& graph, const Node& node,
                                              const Bindings& bindings, const DeviceModel& device);

}  // namespace braid
