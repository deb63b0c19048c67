#pragma once

#include <cstdint>
#include <string_view>

#include "braid/counts.h"
#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

/// What the cost model knows of a device. Rates are peaks of the vendor's data sheet.
struct DeviceModel {
  std::string_view name;  ///< "A100", "H100", "H200", "B200"
  int sm;
  int sms;            ///< multiprocessors
  int shared_kib;     ///< shared memory per multiprocessor
  double hbm_gbs;     ///< GB/s
  double f32_tflops;  ///< outside the matrix units
  double f16_tflops;  ///< bf16 and f16 in the matrix units, dense
  double nvlink_gbs;  ///< GB/s, one way
  double ghz;         ///< clock of the multiprocessors that f32_tflops is reckoned with
  double launch_ns;   ///< of one kernel
  double barrier_ns;  ///< among the ranks of a P2P domain
};

/// By name ("H200"); nothing when there is none.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view name);
/// The first device of that architecture, or of the newest one not above it.
[[nodiscard]] const DeviceModel& device_model(const Target& target);

/// Nanoseconds of one all-reduce of `bytes` (each rank's tensor) among `world` ranks by
/// "one_shot", "two_shot", "multimem" or "ring". Throws kInvalidArgument on another name.
[[nodiscard]] double collective_ns(std::string_view algorithm, std::int64_t world,
                                   std::int64_t bytes, const DeviceModel& device);

/// Nanoseconds of one node on its own: its `runtime_ns` hint where there is one, else the larger of
/// bytes / memory rate and operations / arithmetic rate, plus a launch; a collective by its
/// algorithm; a kernel by its body; a view and a wait are free.
[[nodiscard]] double node_ns(const Graph& graph, const Node& node, const Bindings& bindings,
                             const DeviceModel& device);

/// Nanoseconds that a kernel of `blocks` blocks needs to move `bytes`: one block keeps a few tens
/// of kilobytes in flight and so draws about twice a multiprocessor's share of the memory rate.
[[nodiscard]] double memory_ns(double bytes, std::int64_t blocks, const DeviceModel& device);

/// How long a launch takes at least, and what holds it: "memory", "L2", "NVLink", "shared memory",
/// "issue", "matrix unit", or "launch" when that is more than the work.
struct KernelEstimate {
  double ns = 0;  ///< launch included
  std::string_view limiter;
};
/// Of the average launch of a kernel, from its counts. Every unit is taken to run at its peak on
/// the multiprocessors that the grid fills, and all at once, so that the slowest one decides.
[[nodiscard]] KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device);

/// Every symbol at its largest value.
[[nodiscard]] Bindings max_bindings(const SymbolTable& symbols);
/// Bytes of a dense tensor, with symbols at their maximum.
[[nodiscard]] std::int64_t max_bytes(const TensorType& type, const SymbolTable& symbols);

}  // namespace braid
