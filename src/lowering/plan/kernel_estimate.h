#pragma once

#include <string_view>
#include <vector>

#include "braid/counts.h"
#include "codegen/device_model.h"
#include "lowering/plan/occupancy.h"

namespace braid {

/// The time that a launch needs of one unit of a device.
struct UnitTime {
  std::string_view unit;
  double ns = 0;
};

/// The estimated time of a launch, and its limiter: one of the units, or "launch" where launching
/// takes longer than the work.
struct KernelEstimate {
  double ns = 0;  ///< including the launch
  std::string_view limiter;
  /// "memory", "L2", "NVLink", "loads and stores", "matrix unit", "issue", "float units", "integer
  /// units", "special units", "f64 units"; and "latency", the time that waiting adds to these.
  std::vector<UnitTime> units;
  Occupancy occupancy;
  double waves = 0;         ///< waves of as many blocks as the device holds
  double memory_bytes = 0;  ///< memory traffic of a launch
};

/// Estimates the average launch of a kernel from its counts.
///
/// Each unit of a multiprocessor needs some clocks for its share of the work: the scheduler for the
/// instructions that ptxas generates, each arithmetic unit for its own, the load/store unit for
/// accesses by their wavefronts, or by 32 lanes where there are fewer units than that. L2 serves
/// what the blocks touch, each counted by itself; memory serves what the blocks of a wave read,
/// counted once, and what is written. Consecutive waves count as one where L2 holds what they read.
///
/// Blocks come in waves of as many as the device holds at one time; the last wave has the rest. The
/// busiest multiprocessor of a wave counts, with ceil(blocks / multiprocessors) blocks; where that
/// is one, the busiest block counts. No launch is faster than its busiest block alone.
///
/// An instruction occupies its slot and its arithmetic unit together, so of these the slowest
/// counts. Other units of a multiprocessor overlap imperfectly: times t1, t2, ... combine to
/// sqrt(t1^2 + t2^2 + ...), which is the slowest one where it dominates, and 1.4 times it where two
/// are equal. Memory, L2 and links combine in the same way.
///
/// Between two dependent instructions a warp waits for the latency of the first: of L1, L2 or
/// memory, wherever its data comes from, of shared memory, or of arithmetic. The loads that warps
/// have in flight alternate between queues outside and inside of the multiprocessor and such waits;
/// mean value analysis gives the time of a round (Reiser and Lavenberg, "Mean-Value Analysis of
/// Closed Multichain Queuing Networks", 1980). So few warps, or few bytes in flight, do not reach
/// the memory's rate (Little's law).
///
/// Where warps wait at a barrier for what a block has loaded, the customers of the queues are
/// blocks instead of warps. Where a block copies ahead to shared memory, they are its copies: each
/// must arrive and be used before its place takes the next one. So with one copy in flight each,
/// two blocks wait for L2 while the matrix units idle; with two each, they seldom do. A barrier
/// costs the latency of what starts behind it, and of what ends in front of it.
///
/// Rates come from data sheets. kernel_estimate.cpp has the number of GPU instructions per PTX
/// instruction. docs/estimates.md compares estimates with published times.
[[nodiscard]] KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device);

}  // namespace braid
