#pragma once

#include <string_view>
#include <vector>

#include "braid/counts.h"
#include "codegen/device_model.h"
#include "lowering/plan/occupancy.h"

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
  /// units", "special units", "f64 units"; and "latency", what waiting adds to all of these.
  std::vector<UnitTime> units;
  Occupancy occupancy;
  double waves = 0;         ///< of as many blocks as the device holds
  double memory_bytes = 0;  ///< that a launch moves to and from memory
};

/// Of the average launch of a kernel, from its counts.
///
/// Each unit of a multiprocessor needs so many clocks for its share of the work: the scheduler for
/// what ptxas makes of the instructions, each arithmetic unit for its own, the load/store unit for
/// accesses by their wavefronts, or by 32 lanes where there are fewer units than that. L2 sends
/// what the blocks touch, each on its own; memory what the blocks of a wave read, once, and what is
/// written. Waves in a row count as one where L2 holds what they read.
///
/// Blocks come in waves of as many as the device holds at one time; the last one has what is left.
/// The busiest multiprocessor of a wave counts, which has ceil(blocks / multiprocessors) of its
/// blocks; where that is one, the busiest block.
///
/// An instruction takes its slot and its arithmetic unit together, so of these the slowest counts.
/// Other units of a multiprocessor work side by side, but never perfectly so: times t1, t2, ...
/// take sqrt(t1^2 + t2^2 + ...), which is the slowest one where it is alone, and 1.4 of it where
/// two are equal. So do memory, L2 and links.
///
/// Between two instructions of which the second needs the first a warp waits for the latency of the
/// first: of L1, L2 or memory, where its data comes from, of shared memory, of arithmetic. The
/// loads that each warp of a multiprocessor's four parts has under way go round between what is
/// outside and inside of it, where they queue, and such waits: how long that takes says mean value
/// analysis (Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks",
/// 1980). So few warps, or few bytes under way, do not draw a memory's rate (Little's law).
///
/// Where warps wait at a barrier for what a block has loaded, its blocks go round, not its warps;
/// where it copies to shared memory ahead, its copies do, each of which has to come and to be used
/// before its place takes the next. So two blocks with one copy each wait for L2 while the matrix
/// units rest, and with two each they seldom do. A barrier takes the latency of what is begun
/// behind it, and of what ends in front of it.
///
/// Rates are those of data sheets; how many instructions of the GPU one of PTX becomes is in
/// kernel_estimate.cpp. docs/estimates.md compares estimates with published times.
[[nodiscard]] KernelEstimate estimate_kernel(const KernelCounts& counts, const DeviceModel& device);

}  // namespace braid
