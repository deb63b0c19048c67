#include "runtime/cpu/check/access_cost.h"

#include <algorithm>
#include <bit>

namespace braid::cpu {
namespace {

/// How many different units of 1 << shift bytes the busiest bank has, of lanes that are in one unit
/// each and ascend, as they mostly do; 0 where they do not.
std::uint32_t busiest_of_ascending(const std::uint64_t* addresses, std::uint32_t lanes,
                                   unsigned shift) {
  std::array<std::uint8_t, 32> in_bank{};
  const std::uint64_t last_bank = (128U >> shift) - 1;
  std::uint64_t above = 0;  // the units that may come next without being the last one
  std::uint32_t most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t unit = addresses[std::countr_zero(lanes)] >> shift;
    if (unit < above) {
      if (unit + 1 == above) continue;
      return 0;
    }
    above = unit + 1;
    most = std::max<std::uint32_t>(most, ++in_bank[unit & last_bank]);
  }
  return most;
}

/// The same of words, whatever the lanes do.
std::uint32_t busiest_bank(const std::uint64_t* addresses, std::uint32_t lanes,
                           std::uint32_t bytes) {
  // The different words of each bank, as lists: at most 9 words of 8 lanes.
  constexpr std::uint8_t kEnd = 255;
  std::array<std::uint64_t, 72> words{};
  std::array<std::uint8_t, 72> next{};
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

}  // namespace

SharedCost shared_cost(const std::uint64_t* addresses, std::uint32_t mask, std::uint32_t bytes) {
  // Lanes of 8 bytes are served 16 at a time, of 16 bytes 8 at a time.
  const unsigned shift = bytes >= 16 ? 4 : bytes >= 8 ? 3 : 2;
  const std::uint32_t phase_lanes = 128U >> shift;
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

std::uint64_t SectorSet::count() {
  if (ascending_) return size_;
  const auto end = sectors_.begin() + static_cast<std::ptrdiff_t>(size_);
  std::sort(sectors_.begin(), end);
  return static_cast<std::uint64_t>(std::unique(sectors_.begin(), end) - sectors_.begin());
}

}  // namespace braid::cpu
