#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/device.h"
#include "runtime/cpu/cpu_device.h"

namespace braid {

/// Opens a device for `options.world` ranks. `kind` is "cuda", "cpu", or "" for cuda where there is
/// a driver with a GPU, else cpu. The other options are for the cpu device, whose library is loaded
/// here; checks and counts are refused for another one. The cache must outlive the device. Throws
/// kEnvironment with how to get what is missing, kInvalidArgument for an unknown kind.
[[nodiscard]] std::unique_ptr<Device> open_device(std::string_view kind, const CpuOptions& options);

/// Where the library of the cpu device is looked for, in order: `$BRAID_CPU_LIBRARY` (when set, the
/// only one), beside libbraid.so, the loader's own path.
[[nodiscard]] std::vector<std::string> cpu_library_candidates();
[[nodiscard]] const char* how_to_get_cpu_device();

}  // namespace braid
