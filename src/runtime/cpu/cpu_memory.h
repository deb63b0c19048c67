#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/cpu/cpu_core.h"

namespace braid::cpu {

// Memory of one device's ranks, and its sharing between devices and processes. `rank` is a rank of
// the device.

[[nodiscard]] std::unique_ptr<Memory> allocate_memory(const std::shared_ptr<Core>& core, int rank,
                                                      std::size_t bytes);
[[nodiscard]] std::unique_ptr<Memory> import_memory(const std::shared_ptr<Core>& core,
                                                    std::string_view handle);
[[nodiscard]] std::unique_ptr<Memory> find_memory(const std::shared_ptr<Core>& core,
                                                  std::uint64_t address);
/// Implements Inspector::lend.
[[nodiscard]] std::unique_ptr<Memory> lend_memory(const std::shared_ptr<Core>& core, int rank,
                                                  const MemoryPart& memory);
/// Implements Device::check_memory; throws at `where`. Memory of the process that the device did
/// not allocate is accepted, unless accesses are checked.
void check_memory(Core& core, std::uint64_t address, std::size_t bytes, const char* where);
[[nodiscard]] std::unique_ptr<Multicast> create_multicast(const std::shared_ptr<Core>& core,
                                                          std::span<const int> ranks,
                                                          std::size_t bytes);

}  // namespace braid::cpu
