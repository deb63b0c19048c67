#pragma once

#include <string_view>
#include <vector>

#include "braid/counts.h"
#include "codegen/device_model.h"

namespace braid {

/// What a launch needs of one part of a device.
struct UnitTime {
  std::string_view unit;
  double ns = 0;
};

/// How long a launch takes, and what holds it most: one of the units, or "launch" when that is more
/// than the work.
struct KernelEstimate {
  double ns = 0;  ///< launch included
  std::string_view limiter;
  /// "memory", "L2", "NVLink", "loads and stores", "matrix unit", "issue", "float units", "integer
  /// units", "special units", "f64 units".
  std::vector<UnitTime> units;
};

/// Of the average launch of a kernel, from its counts.
///
/// Each unit of a multiprocessor needs so many clocks for its share of the work: the scheduler for
/// what ptxas makes of the instructions, each arithmetic unit for its own, the load/store unit for
/// accesses by their wavefronts, or by 32 lanes where there are fewer units than that. The work of
/// the busiest multiprocessor counts, which has ceil(blocks / multiprocessors) of the blocks. L2
/// sends what the blocks touch, each on its own; memory what the launch cannot do without.
///
/// An instruction takes its slot and its arithmetic unit together, so of these the slowest counts.
/// Other units work side by side, but never perfectly so: times t1, t2, ... take
/// sqrt(t1^2 + t2^2 + ...), which is the slowest one where it is alone, and 1.4 of it where two are
/// equal.
///
/// Rates are those of data sheets; how many instructions of the GPU one of PTX becomes is in
/// kernel_estimate.cpp. docs/estimates.md compares estimates with published times.
[[nodiscard]] KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device);

}  // namespace braid
