#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "braid/device.h"
#include "runtime/cuda/mapped_memory.h"

namespace braid::cuda {

/// What GPUs do together by one address.
struct MulticastSupport {
  std::size_t unit = 0;  ///< bytes; 0 where they do not
  std::string remark;    ///< why not, where the driver says that they do
};

/// Tries whether memory of the GPUs, on each of which one rank of the device is, can be bound to a
/// multicast, reduced and written through it: a virtual machine without the switch, or a switch
/// without its service, is told of only then.
[[nodiscard]] MulticastSupport try_multicast(Device& device, std::span<const GpuRef> gpus);

/// As Device::create_multicast, rank r on gpus[r].
[[nodiscard]] std::unique_ptr<Multicast> create_multicast(std::span<const GpuRef> gpus,
                                                          std::span<const int> ranks,
                                                          std::size_t bytes,
                                                          std::string_view handle);

/// As Memory::bind_multicast of such memory. Throws kInvalidArgument for a multicast of another
/// device.
void bind(Multicast& multicast, const PhysicalMemory& memory, std::size_t offset);

}  // namespace braid::cuda
