#include "runtime/cpu/check/read_glances.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace braid::cpu {

ReadGlances::ReadGlances(std::uint64_t blocks) : blocks_(std::min(blocks, kMostBlocks)) {
  first_ = (blocks - blocks_) / 2;
}

void ReadGlances::add(std::uint64_t block, SectorBits sectors) {
  const std::lock_guard lock(mutex_);
  seen_[block] = std::move(sectors);
}

std::vector<double> ReadGlances::shares() const {
  const std::lock_guard lock(mutex_);
  std::vector<const SectorBits*> blocks;
  std::uint64_t alone = 0;
  for (const auto& [block, sectors] : seen_) {
    blocks.push_back(&sectors);
    for (const auto& [word, bits] : sectors) {
      alone += static_cast<std::uint64_t>(std::popcount(bits));
    }
  }
  std::vector<double> shares;
  for (std::size_t row = 1; alone != 0 && row <= blocks.size(); row *= 2) {
    std::uint64_t together = 0;
    for (std::size_t first = 0; first < blocks.size(); first += row) {
      std::unordered_map<std::uint64_t, std::uint64_t> words;
      for (std::size_t b = first; b < std::min(first + row, blocks.size()); ++b) {
        for (const auto& [word, bits] : *blocks[b]) words[word] |= bits;
      }
      for (const auto& [word, bits] : words) {
        together += static_cast<std::uint64_t>(std::popcount(bits));
      }
    }
    shares.push_back(static_cast<double>(together) / static_cast<double>(alone));
  }
  return shares;
}

}  // namespace braid::cpu
