#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "braid/device.h"
#include "runtime/cuda/gpu.h"

namespace braid::cuda {

// The memory of one device's ranks.

/// As Device::allocate.
[[nodiscard]] std::unique_ptr<Memory> allocate_memory(GpuRef gpu, std::size_t bytes);
/// As Device::allocate_shared: memory of `gpus[own]` that all of them reach. `unit`: of multicasts,
/// if any.
[[nodiscard]] std::unique_ptr<Memory> allocate_shared_memory(std::span<const GpuRef> gpus,
                                                             std::size_t own, std::size_t bytes,
                                                             std::size_t unit);
/// As Device::allocate_host.
[[nodiscard]] std::unique_ptr<Memory> allocate_host_memory(GpuRef gpu, std::size_t bytes);
/// As Device::find_memory.
[[nodiscard]] std::unique_ptr<Memory> find_memory(GpuRef gpu, Address address);
/// As Device::check_memory: what the driver says of it, where it says that.
void check_memory(std::span<const GpuRef> gpus, std::size_t own, Address address,
                  std::size_t bytes);
/// As Device::import_memory.
[[nodiscard]] std::unique_ptr<Memory> import_memory(GpuRef gpu, std::string_view handle);

}  // namespace braid::cuda
