#pragma once

#include <cstdint>
#include <string_view>

#include "braid/counts.h"
#include "codegen/device_model.h"

namespace braid {

/// Registers of a thread where nobody knows better.
inline constexpr std::uint32_t kAssumedRegisters = 64;

/// How many blocks a multiprocessor holds at one time.
struct Occupancy {
  int blocks = 1;  ///< also where not even one fits
  /// What holds no more of them: "threads", "blocks", "registers" or "shared memory".
  std::string_view limiter;
};

/// By the rules of the CUDA C++ Programming Guide: registers go to warps by 256, to each of the
/// four parts of a multiprocessor apart; shared memory by 128 bytes, and a block takes 1 KiB more
/// than it asks for.
[[nodiscard]] Occupancy occupancy(const KernelCounts& kernel, const DeviceModel& device);

}  // namespace braid
