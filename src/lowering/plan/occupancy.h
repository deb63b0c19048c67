#pragma once

#include <cstdint>
#include <string_view>

#include "braid/counts.h"
#include "codegen/device_model.h"

namespace braid {

/// Registers per thread, where they are unknown.
inline constexpr std::uint32_t kAssumedRegisters = 64;

/// How many blocks a multiprocessor holds at a time.
struct Occupancy {
  int blocks = 1;  ///< 1 even where not one fits
  /// The resource that limits it: "threads", "blocks", "registers" or "shared memory".
  std::string_view limiter;
};

/// Follows the CUDA C++ Programming Guide: registers are allocated to warps in units of 256, for
/// each of the four parts of a multiprocessor separately; shared memory in units of 128 bytes, with
/// 1 KiB more than a block asks for.
[[nodiscard]] Occupancy occupancy(const KernelCounts& kernel, const DeviceModel& device);

}  // namespace braid
