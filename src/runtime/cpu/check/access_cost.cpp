#include "runtime/cpu/check/access_cost.h"

#include <algorithm>
#include <bit>

namespace braid::cpu {
namespace {

/// The number of different units of 1 << shift bytes in the busiest bank, for lanes that are in one
/// unit each and ascend within each bank, as is usual; 0 for other lanes.
std::uint32_t busiest_of_ascending(const std::uint64_t* addresses, std::uint32_t lanes,
                                   unsigned shift) {
  std::array<std::uint64_t, 32> last;  // NOLINT: of the banks that have one
  std::array<std::uint8_t, 32> in_bank{};
  const std::uint64_t last_bank = (128U >> shift) - 1;
  std::uint32_t most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t unit = addresses[std::countr_zero(lanes)] >> shift;
    const std::size_t bank = unit & last_bank;
    if (in_bank[bank] != 0 && unit <= last[bank]) {
      if (unit == last[bank]) continue;
      return 0;
    }
    last[bank] = unit;
    most = std::max<std::uint32_t>(most, ++in_bank[bank]);
  }
  return most;
}

/// The same for words, for any lanes.
std::uint32_t busiest_bank(const std::uint64_t* addresses, std::uint32_t lanes,
                           std::uint32_t bytes) {
  // Lists of the different words of each bank: at most 9 words of 8 lanes, or 5 of 16.
  constexpr std::uint8_t kEnd = 255;
  std::array<std::uint64_t, 160> words{};
  std::array<std::uint8_t, 160> next{};
  std::array<std::uint8_t, 32> first{}, in_bank{};
  first.fill(kEnd);
  std::uint8_t size = 0;
  std::uint32_t most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t address = addresses[std::countr_zero(lanes)];
    for (std::uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
      const std::size_t bank = word % 32;
      std::uint8_t known = first[bank];
      while (known != kEnd && words[known] != word) known = next[known];
      if (known != kEnd) continue;
      words[size] = word;
      next[size] = first[bank];
      first[bank] = size++;
      most = std::max<std::uint32_t>(most, ++in_bank[bank]);
    }
  }
  return most;
}

SharedCost cost_in_phases(const std::uint64_t* addresses, std::uint32_t mask, std::uint32_t bytes,
                          std::uint32_t phase_lanes) {
  const unsigned shift = bytes >= 16 ? 4 : bytes >= 8 ? 3 : 2;
  std::uint64_t low = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    low |= addresses[std::countr_zero(left)];
  }
  const bool aligned = bytes <= 16 && (low & (bytes - 1)) == 0;
  SharedCost cost;
  for (std::uint32_t first = 0; first < 32; first += phase_lanes) {
    const auto phase = static_cast<std::uint32_t>(((std::uint64_t{1} << phase_lanes) - 1) << first);
    if ((mask & phase) == 0) continue;
    std::uint32_t most = aligned ? busiest_of_ascending(addresses, mask & phase, shift) : 0;
    if (most == 0) most = busiest_bank(addresses, mask & phase, bytes);
    cost.wavefronts += most;
    cost.conflicts += most - 1;
  }
  return cost;
}

/// 8-byte accesses are served 16 lanes at a time, 16-byte accesses 8 lanes at a time.
std::uint32_t lanes_of_phase(std::uint32_t bytes) { return bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32; }

}  // namespace

SharedCost shared_cost(const std::uint64_t* addresses, std::uint32_t mask, std::uint32_t bytes) {
  return cost_in_phases(addresses, mask, bytes, lanes_of_phase(bytes));
}

IssuedCost issued_cost(const SharedCost& cost, const std::uint64_t* addresses, std::uint32_t mask,
                       std::uint32_t bytes, JoinedLoad joined) {
  const auto all_lanes = [&](auto holds) {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      if (!holds(static_cast<std::uint32_t>(std::countr_zero(left)))) return false;
    }
    return true;
  };
  bool wider = false;
  if (joined.parts > 1) {
    const std::uint32_t wide = bytes * joined.parts;
    const std::uint32_t before = bytes * joined.part;
    if (all_lanes([&](std::uint32_t lane) { return (addresses[lane] - before) % wide == 0; })) {
      if (joined.part != 0) return {};
      bytes = wide;
      wider = true;
    }
  }
  const auto in_pairs = [&](std::uint32_t apart) {
    return all_lanes([&](std::uint32_t lane) {
      const std::uint32_t other = lane ^ apart;
      return (mask >> other & 1U) == 0 || addresses[lane] == addresses[other];
    });
  };
  const std::uint32_t lanes = lanes_of_phase(bytes);
  const bool doubled = lanes < 32 && (in_pairs(1) || in_pairs(2));
  if (!wider && !doubled) return {1, cost.wavefronts};
  return {1, cost_in_phases(addresses, mask, bytes, doubled ? 2 * lanes : lanes).wavefronts};
}

std::uint64_t SectorSet::count() {
  if (ascending_) return size_;
  const auto end = sectors_.begin() + static_cast<std::ptrdiff_t>(size_);
  std::sort(sectors_.begin(), end);
  size_ = static_cast<std::size_t>(std::unique(sectors_.begin(), end) - sectors_.begin());
  ascending_ = true;
  return size_;
}

std::uint64_t SectorSet::lines() const {
  constexpr std::uint64_t kSectors = 4;
  std::uint64_t lines = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    if (i == 0 || sectors_[i] / kSectors != sectors_[i - 1] / kSectors) ++lines;
  }
  return lines;
}

}  // namespace braid::cpu
