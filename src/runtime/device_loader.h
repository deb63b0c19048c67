#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/device.h"

namespace braid {

class DiskCache;

/// Opens a device for `world` ranks. `kind` is "cuda", "cpu", or "" for cuda where there is a
/// driver with a GPU, else cpu. `threads` (0 = all cores) and `cache` (may be null; must outlive
/// the device) are for the cpu device, whose library is loaded here, and so are `checks`
/// (checks.h), which no other device has, and `schedule`, the seed of their interleaving. Throws
/// kEnvironment with how to get what is missing, kInvalidArgument for an unknown kind.
[[nodiscard]] std::unique_ptr<Device> open_device(std::string_view kind, int world, int threads,
                                                  const DiskCache* cache, unsigned checks = 0,
                                                  std::uint64_t schedule = 0);

/// Where the library of the cpu device is looked for, in order: `$BRAID_CPU_LIBRARY` (when set, the
/// only one), beside libbraid.so, the loader's own path.
[[nodiscard]] std::vector<std::string> cpu_library_candidates();
[[nodiscard]] const char* how_to_get_cpu_device();

}  // namespace braid
