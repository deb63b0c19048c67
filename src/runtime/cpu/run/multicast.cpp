#include "runtime/cpu/run/multicast.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <mutex>
#include <utility>

#include "ir/fail.h"

namespace braid::cpu {

void MulticastTable::add(std::uint64_t address, std::size_t bytes, std::vector<int> ranks) {
  const std::unique_lock lock(mutex_);
  Range& range = ranges_[address];
  range.bytes = bytes;
  range.parts.resize(ranks.size());
  range.ranks = std::move(ranks);
}

void MulticastTable::remove(std::uint64_t address) {
  const std::unique_lock lock(mutex_);
  ranges_.erase(address);
}

void MulticastTable::bind(std::uint64_t address, std::size_t offset, int rank, std::uint64_t memory,
                          std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  Range& range = ranges_.at(address);
  const auto member = std::ranges::find(range.ranks, rank);
  if (member == range.ranks.end()) {
    throw_invalid("multicast", "memory of rank {}; expected one of its own", rank);
  }
  if (offset > range.bytes || bytes > range.bytes - offset) {
    throw_invalid("multicast", "{} bytes from byte {} on; expected them within its {}", bytes,
                  offset, range.bytes);
  }
  auto& parts = range.parts[member - range.ranks.begin()];
  const auto next = parts.lower_bound(offset);
  const bool before =
      next != parts.begin() && std::prev(next)->first + std::prev(next)->second.bytes > offset;
  if (before || (next != parts.end() && next->first < offset + bytes)) {
    throw_invalid("multicast",
                  "{} bytes of rank {} from byte {} on; expected room, other memory of the rank is "
                  "bound there",
                  bytes, rank, offset);
  }
  parts.emplace(offset, Part{bytes, memory});
}

void MulticastTable::unbind(std::uint64_t memory) {
  const std::unique_lock lock(mutex_);
  for (auto& [address, range] : ranges_) {
    for (auto& parts : range.parts) {
      std::erase_if(parts, [&](const auto& part) { return part.second.memory == memory; });
    }
  }
}

/// 0 where the rank has nothing there.
std::uint64_t MulticastTable::place(const Range& range, std::size_t rank, std::size_t offset,
                                    std::size_t bytes) {
  const auto next = range.parts[rank].upper_bound(offset);
  if (next == range.parts[rank].begin()) return 0;
  const auto& [start, part] = *std::prev(next);
  if (offset - start + bytes > part.bytes) return 0;
  return part.memory + (offset - start);
}

MulticastTable::Refusal MulticastTable::find(const std::uint64_t* addresses, std::uint32_t mask,
                                             std::size_t bytes, std::size_t align,
                                             MulticastPlaces& places) const {
  const std::shared_lock lock(mutex_);
  places.clear();
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(mask));
    const std::uint64_t address = addresses[lane];
    const auto refuse = [&](const char* kind, const std::string& why) -> Refusal {
      return {kind, fmt::format("multimem access of {} bytes at {:#x}, {}", bytes, address, why)};
    };
    const auto next = ranges_.upper_bound(address);
    const bool inside =
        next != ranges_.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes;
    if (!inside) return refuse("bounds", "which is no multicast address");
    if (address % align != 0) return refuse("misaligned", "which is no multiple");
    const Range& range = std::prev(next)->second;
    const std::size_t offset = address - std::prev(next)->first;
    if (places.empty()) places.resize(range.ranks.size());
    if (places.size() != range.ranks.size()) {
      return refuse("bounds",
                    "a range of other ranks than that of other threads of its warp, which the cpu "
                    "device does not support");
    }
    for (std::size_t r = 0; r < range.ranks.size(); ++r) {
      places[r][lane] = place(range, r, offset, bytes);
      if (places[r][lane] != 0) continue;
      return refuse("bounds", fmt::format("byte {} of a range, where rank {} has bound no memory",
                                          offset, range.ranks[r]));
    }
  }
  return {};
}

}  // namespace braid::cpu
