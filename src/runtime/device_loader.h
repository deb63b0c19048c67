#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/world.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"

namespace braid {

inline constexpr int kMostThreads = 4096;

/// Opens a device for `options.world` ranks. The other options are for the cpu device, whose
/// library is loaded here; other devices refuse checks, counts and a choice of matrix sums. The
/// cache must outlive the device. `place` is for the cuda device. Throws kEnvironment, with how to
/// get what is missing.
[[nodiscard]] std::unique_ptr<Device> open_device(DeviceKind kind, const CpuOptions& options,
                                                  GpuPlace place = {});

/// Paths of the cpu device's library, in order: `$BRAID_CPU_LIBRARY` (if set, the only one), beside
/// libbraid.so, the loader's own path.
[[nodiscard]] std::vector<std::string> cpu_library_candidates();
[[nodiscard]] const char* how_to_get_cpu_device();

}  // namespace braid
