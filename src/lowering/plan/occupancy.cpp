#include "lowering/plan/occupancy.h"

#include <algorithm>

namespace braid {
namespace {

constexpr std::uint32_t rounded_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Occupancy occupancy(const KernelCounts& kernel, const DeviceModel& device) {
  constexpr std::uint32_t kWarp = 32, kParts = 4;
  constexpr std::uint32_t kPartRegisters = 16384, kRegisterUnit = 256;
  constexpr std::uint32_t kSharedUnit = 128, kReservedShared = 1024;
  const Architecture& limits = architecture(device.sm);
  const std::uint32_t warps = std::max(1U, rounded_up(kernel.threads, kWarp) / kWarp);
  const std::uint32_t registers = kernel.registers == 0 ? kAssumedRegisters : kernel.registers;
  const std::uint32_t of_warp = rounded_up(registers * kWarp, kRegisterUnit);
  const std::uint32_t of_block = rounded_up(kernel.shared_bytes + kReservedShared, kSharedUnit);
  const Occupancy each[] = {
      {limits.threads / static_cast<int>(warps * kWarp), "threads"},
      {limits.blocks, "blocks"},
      {static_cast<int>(kPartRegisters / of_warp * kParts / warps), "registers"},
      {static_cast<int>(static_cast<std::uint32_t>(device.shared_kib) * 1024 / of_block),
       "shared memory"}};
  Occupancy least =
      *std::min_element(std::begin(each), std::end(each),
                        [](const auto& a, const auto& b) { return a.blocks < b.blocks; });
  least.blocks = std::max(1, least.blocks);
  return least;
}

}  // namespace braid
