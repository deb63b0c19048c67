#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "lowering/plan/cost.h"

namespace braid {

/// Multiplications for each element that a matmul of [m, k] x [k, n] reads or writes; 0 of an empty
/// one.
[[nodiscard]] double arithmetic_intensity(double m, double n, double k);

/// Nanoseconds of all nodes of a graph, one after the other; collectives over symmetric memory that
/// have no algorithm yet by their quickest.
[[nodiscard]] double graph_ns(const Graph& graph, const Bindings& bindings,
                              const DeviceModel& device);

/// What of [M, K] x [K, N] a pipeline cuts into one chunk for each rank. Of other dims than M it
/// has no form, and takes the time of its parts.
enum class PipelinedDim : std::uint8_t { kM, kN, kK };

struct PipelineEstimate {
  double plain_ns = 0;      ///< the collective, then the matmuls
  double pipelined_ns = 0;  ///< chunk by chunk, the next one under way during a chunk's matmuls
  /// The collective within the kernel of the matmuls; nothing where there is no such kernel.
  std::optional<double> in_kernel_ns;
  double intensity = 0;  ///< the least one of a chunk's matmuls
  [[nodiscard]] double best_ns() const {
    return std::min(pipelined_ns, in_kernel_ns.value_or(pipelined_ns));
  }
  [[nodiscard]] double least_ns() const { return std::min(plain_ns, best_ns()); }
};
/// Of a gather or scatter and the matmuls behind or in front of it, whose right operands are
/// matrices, as chunk_fused.h pipelines them. A chunk's matmul is a kernel of its own, with tiles
/// of its own, and reads a whole B: that is why few rows do not gain.
[[nodiscard]] PipelineEstimate estimate_pipeline(const Graph& graph, const Node& collective,
                                                 std::span<const NodeId> matmuls, PipelinedDim dim,
                                                 const Bindings& bindings,
                                                 const DeviceModel& device);
/// Of a fused node, in the forms that it can take.
[[nodiscard]] PipelineEstimate estimate_fused(const Graph& graph, const Node& node,
                                              const Bindings& bindings, const DeviceModel& device);

}  // namespace braid
