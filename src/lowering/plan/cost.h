#pragma once

#include <cstdint>

#include "braid/graph.h"
#include "codegen/device_model.h"
#include "codegen/kernel/spec.h"
#include "ir/collective.h"

namespace braid {

/// Nanoseconds of one all-reduce of `bytes` (the size of each rank's tensor) among `world` ranks.
/// A communicator runs a ring, and so does a collective without an algorithm.
[[nodiscard]] double collective_ns(Algorithm algorithm, std::int64_t world, std::int64_t bytes,
                                   const DeviceModel& device);

/// The part of those nanoseconds in which ranks only wait for each other.
[[nodiscard]] double barriers_ns(Algorithm algorithm, const DeviceModel& device);

/// Nanoseconds of a collective with an algorithm, without a launch. For collectives other than
/// all-reduces every algorithm moves the same bytes, around a ring or straight from their owners:
/// the part of the result (for a reduction: of the operand) that is not this rank's own. For copies
/// it is without the sum of a scatter's chunks.
[[nodiscard]] double collective_node_ns(const Graph& graph, const Node& node, Algorithm algorithm,
                                        const Bindings& bindings, const DeviceModel& device);

/// Nanoseconds of one launch of a kernel; passes, schedules and the tuner all use this estimate. A
/// matmul takes the time that its template estimates for its tiles. The rest of a body takes the
/// larger of bytes / memory rate and operations / arithmetic rate. The part of its collective that
/// does not overlap is added.
[[nodiscard]] double kernel_ns(const KernelSpec& spec, const Bindings& bindings,
                               const DeviceModel& device);

/// Nanoseconds of one node on its own: the `runtime_ns` hint where there is one. A kernel takes
/// kernel_ns, and so does a matmul, as a kernel of its own in its default configuration. An opaque
/// node takes the time of its declared operations, a collective that of its algorithm, a collective
/// fused with matmuls that of its fastest form (estimate_fused), a copy from a peer that of its
/// link. Views, chunks and waits are free. Others take the larger of bytes / memory rate and
/// operations / arithmetic rate, plus a launch.
[[nodiscard]] double node_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                             const DeviceModel& device);

/// Bytes that a block keeps in flight from memory: 16 for each of 256 threads; or a ring of tiles.
inline constexpr double kStreamInFlight = 4096;
inline constexpr double kTilesInFlight = 32768;
/// Nanoseconds to move that many bytes to and from memory, at the rate that kernels sustain.
[[nodiscard]] double traffic_ns(double bytes, const DeviceModel& device);
/// Nanoseconds in which `blocks` blocks move `bytes` when each has `in_flight` bytes in flight. By
/// Little's law these arrive once per memory latency, up to the memory's rate.
[[nodiscard]] double memory_ns(double bytes, std::int64_t blocks, double in_flight,
                               const DeviceModel& device);

/// The largest value of every symbol.
[[nodiscard]] Bindings max_bindings(const SymbolTable& symbols);
/// Bytes of a dense tensor, with symbols at their maximum.
[[nodiscard]] std::int64_t max_bytes(const TensorType& type, const SymbolTable& symbols);

}  // namespace braid
