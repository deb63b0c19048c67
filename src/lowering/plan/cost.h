#pragma once

#include <cstdint>
#include <string_view>

#include "braid/graph.h"
#include "codegen/device_model.h"
#include "codegen/kernel_spec.h"

namespace braid {

/// Nanoseconds of one all-reduce of `bytes` (each rank's tensor) among `world` ranks by
/// "one_shot", "two_shot", "ll", "multimem", "in_kernel", "copy_engine" or "ring". Throws
/// kInvalidArgument on another name.
[[nodiscard]] double collective_ns(std::string_view algorithm, std::int64_t world,
                                   std::int64_t bytes, const DeviceModel& device);

/// Nanoseconds of those in which ranks only wait for each other.
[[nodiscard]] double barriers_ns(std::string_view algorithm, const DeviceModel& device);

/// The algorithm of a gather or scatter that copies do (by_copies.h): the sum of a scatter's chunks
/// comes on top.
inline constexpr std::string_view kByCopies = "copy_engine";

/// Nanoseconds of a collective by an algorithm, without a launch. An all-reduce moves what that
/// does; of the others each algorithm moves the same bytes, once around a ring or straight from
/// their owners: those of the result, or of the operand in a reduction, which are not this rank's
/// own.
[[nodiscard]] double collective_node_ns(const Graph& graph, const Node& node,
                                        std::string_view algorithm, const Bindings& bindings,
                                        const DeviceModel& device);

/// Nanoseconds of one launch of a kernel. All who ask what a kernel takes before it runs ask this:
/// passes, schedules, the tuner. A matmul takes what its template says of its tiles; the rest of a
/// body the larger of bytes / memory rate and operations / arithmetic rate; to it comes what of its
/// collective does not go on beside.
[[nodiscard]] double kernel_ns(const KernelSpec& spec, const Bindings& bindings,
                               const DeviceModel& device);

/// Nanoseconds of one node on its own: its `runtime_ns` hint where there is one; a kernel by
/// kernel_ns, and so a matmul, as the kernel of it alone in its default configuration; an opaque
/// node by the operations that it declares; a collective by its algorithm, one with its matmuls by
/// the quickest of its forms (estimate_fused); a copy from a peer by its link; a view, a chunk and
/// a wait are free; others the larger of bytes / memory rate and operations / arithmetic rate, plus
/// a launch.
[[nodiscard]] double node_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                             const DeviceModel& device);

/// Bytes that a block keeps on their way from memory: each of 256 threads 16, or a ring of tiles.
inline constexpr double kStreamInFlight = 4096;
inline constexpr double kTilesInFlight = 32768;
/// Nanoseconds of so many bytes to and from memory, at the rate that kernels sustain.
[[nodiscard]] double traffic_ns(double bytes, const DeviceModel& device);
/// Nanoseconds that a kernel of `blocks` blocks needs to move `bytes`, when each has `in_flight`
/// bytes on their way: by Little's law all of these arrive once in a latency of the memory, up to
/// its rate.
[[nodiscard]] double memory_ns(double bytes, std::int64_t blocks, double in_flight,
                               const DeviceModel& device);

/// Every symbol at its largest value.
[[nodiscard]] Bindings max_bindings(const SymbolTable& symbols);
/// Bytes of a dense tensor, with symbols at their maximum.
[[nodiscard]] std::int64_t max_bytes(const TensorType& type, const SymbolTable& symbols);

}  // namespace braid
