#include "runtime/cpu/check/read_glances.h"

#include <algorithm>
#include <utility>

namespace braid::cpu {
namespace {

/// The union of two sorted sets.
SectorBits both(const SectorBits& a, const SectorBits& b) {
  SectorBits all;
  all.reserve(a.size() + b.size());
  for (auto x = a.begin(), y = b.begin(); x != a.end() || y != b.end();) {
    const bool takes_x = y == b.end() || (x != a.end() && x->first <= y->first);
    const bool takes_y = x == a.end() || (y != b.end() && y->first <= x->first);
    all.push_back(takes_x ? *x : *y);
    if (takes_x && takes_y) all.back().second |= y->second;
    if (takes_x) ++x;
    if (takes_y) ++y;
  }
  return all;
}

}  // namespace

ReadGlances::ReadGlances(std::uint64_t blocks) : blocks_(std::min(blocks, kMostBlocks)) {
  first_ = (blocks - blocks_) / 2;
}

void ReadGlances::add(std::uint64_t block, SectorBits sectors) {
  std::ranges::sort(sectors);
  const std::lock_guard lock(mutex_);
  seen_[block] = std::move(sectors);
}

std::vector<double> ReadGlances::shares() const {
  const std::lock_guard lock(mutex_);
  std::vector<SectorBits> rows;
  std::uint64_t alone = 0;
  for (const auto& [block, sectors] : seen_) {
    rows.push_back(sectors);
    alone += sectors_of(sectors);
  }
  std::vector<double> shares;
  for (std::size_t row = 1; alone != 0 && row <= seen_.size(); row *= 2) {
    std::uint64_t together = 0;
    for (const SectorBits& sectors : rows) together += sectors_of(sectors);
    shares.push_back(static_cast<double>(together) / static_cast<double>(alone));
    // Two rows are merged into one of twice the length.
    for (std::size_t r = 0; r < rows.size(); r += 2) {
      rows[r / 2] = r + 1 < rows.size() ? both(rows[r], rows[r + 1]) : std::move(rows[r]);
    }
    rows.resize((rows.size() + 1) / 2);
  }
  return shares;
}

}  // namespace braid::cpu
