// The tensor memory of a block, and what its runner has to do with it.

#include "runtime/cpu/run/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/cpu/run/block_runner.h"

namespace braid::cpu {

std::optional<std::uint32_t> TensorMemory::take(std::uint32_t columns) {
  const std::uint32_t units = columns / kUnit;
  const std::uint32_t mask = (1U << units) - 1;
  for (std::uint32_t unit = 0; unit + units <= kUnits; ++unit) {
    if ((used_ >> unit & mask) != 0) continue;
    used_ |= mask << unit;
    starts_[unit] = static_cast<std::uint8_t>(units);
    std::fill_n(at(0, unit * kUnit), std::size_t{columns} * kLanes, ~0U);
    return unit * kUnit;
  }
  return std::nullopt;
}

bool TensorMemory::give_back(std::uint32_t first, std::uint32_t columns) {
  const std::uint32_t unit = first / kUnit, units = columns / kUnit;
  if (first % kUnit != 0 || unit >= kUnits || units == 0 || starts_[unit] != units) return false;
  starts_[unit] = 0;
  used_ &= ~(((1U << units) - 1) << unit);
  return true;
}

std::optional<std::uint32_t> TensorMemory::missing(std::uint32_t first,
                                                   std::uint32_t columns) const {
  for (std::uint32_t unit = first / kUnit; unit * kUnit < first + columns; ++unit) {
    if (unit >= kUnits || (used_ >> unit & 1U) == 0) return std::max(first, unit * kUnit);
  }
  return std::nullopt;
}

std::uint32_t TensorMemory::taken() const {
  return kUnit * static_cast<std::uint32_t>(std::popcount(used_));
}

TensorMemory& BlockRunner::tensor_memory(std::uint32_t rank) {
  auto& memory = blocks_[rank]->tensor;
  if (memory == nullptr) memory = std::make_unique<TensorMemory>();
  return *memory;
}

/// Whether a block has ended and not given its tensor memory back, which is an error: the next
/// block of the multiprocessor would wait for it for ever.
bool BlockRunner::keeps_tensor_memory() {
  for (std::uint32_t rank = 0; rank < block_count_ && error_.empty(); ++rank) {
    const Block& block = *blocks_[rank];
    if (block.tensor == nullptr || block.tensor->taken() == 0) continue;
    error_ = fmt::format(
        "block ({}, {}, {}) ends with {} columns of tensor memory that no "
        "tcgen05.dealloc gave back",
        block.ctaid[0], block.ctaid[1], block.ctaid[2], block.tensor->taken());
    if (sanitizer() == nullptr) continue;
    const std::uint32_t first = takes_turns() ? rank * block_warps_ : 0;
    sanitizer()->report(warps_[first]->check, "unfinished", error_, block.tensor_line);
  }
  return !error_.empty();
}

}  // namespace braid::cpu
