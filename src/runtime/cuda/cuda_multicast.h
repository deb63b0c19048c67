#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "braid/device.h"
#include "runtime/cuda/mapped_memory.h"

namespace braid::cuda {

/// Whether and how multicast works on the GPUs.
struct MulticastSupport {
  std::size_t unit = 0;  ///< granularity in bytes; 0 if it does not work
  std::string remark;    ///< why not, if the driver claims that it does
};

/// Tries to bind memory of the GPUs, with one rank on each, to a multicast, and to reduce and store
/// through it. Only such a trial detects a virtual machine without the switch, or a switch without
/// its service.
[[nodiscard]] MulticastSupport try_multicast(Device& device, std::span<const GpuRef> gpus);

/// Implements Device::create_multicast, with rank r on gpus[r].
[[nodiscard]] std::unique_ptr<Multicast> create_multicast(std::span<const GpuRef> gpus,
                                                          std::span<const int> ranks,
                                                          std::size_t bytes,
                                                          std::string_view handle);

/// Implements Memory::bind_multicast. Throws kInvalidArgument for a multicast of another device.
void bind(Multicast& multicast, const PhysicalMemory& memory, std::size_t offset);

}  // namespace braid::cuda
