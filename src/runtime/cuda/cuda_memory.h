#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "braid/device.h"
#include "runtime/cuda/gpu.h"

namespace braid::cuda {

// Memory of a cuda device's ranks.

[[nodiscard]] std::unique_ptr<Memory> allocate_memory(GpuRef gpu, std::size_t bytes);
/// Implements Device::allocate_shared for `gpus[own]`; all of them can reach the memory. `unit` is
/// the granularity of multicasts, if any.
[[nodiscard]] std::unique_ptr<Memory> allocate_shared_memory(std::span<const GpuRef> gpus,
                                                             std::size_t own, std::size_t bytes,
                                                             std::size_t unit);
[[nodiscard]] std::unique_ptr<Memory> allocate_host_memory(GpuRef gpu, std::size_t bytes);
[[nodiscard]] std::unique_ptr<Memory> find_memory(GpuRef gpu, Address address);
/// Implements Device::check_memory, as far as the driver knows the memory.
void check_memory(std::span<const GpuRef> gpus, std::size_t own, Address address,
                  std::size_t bytes);
[[nodiscard]] std::unique_ptr<Memory> import_memory(GpuRef gpu, std::string_view handle);

}  // namespace braid::cuda
