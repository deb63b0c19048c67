#include "runtime/cpu/check/sector_words.h"

#include <algorithm>
#include <bit>

namespace braid::cpu {

std::uint64_t sectors_of(const SectorBits& words) {
  std::uint64_t sectors = 0;
  for (const auto& [number, bits] : words) {
    sectors += static_cast<std::uint64_t>(std::popcount(bits));
  }
  return sectors;
}

void SectorWords::clear() {
  if (words_.empty()) return;
  words_.clear();
  std::ranges::fill(places_, 0);
}

void SectorWords::grow() {
  places_.assign(std::max<std::size_t>(64, 2 * places_.size()), 0);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::size_t place = first_place(words_[i].first);
    while (places_[place] != 0) place = next_place(place);
    places_[place] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace braid::cpu
