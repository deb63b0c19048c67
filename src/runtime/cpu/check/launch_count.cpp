#include "runtime/cpu/check/launch_count.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::cpu {

LaunchCount::LaunchCount(const CountSites& sites, const RankMemory& memory,
                         TouchedBytes::Pool& pages, int rank, std::uint64_t blocks,
                         std::optional<BlockSample> sample)
    : sites_(sites),
      rank_(rank),
      sample_(std::move(sample)),
      touched_(memory, pages, rank),
      glances_(blocks),
      sums_(sample_ ? sample_->groups().size() : 1),
      fresh_(sums_.size()) {
  for (Tally& sum : sums_) sum.reset(sites);
}

void LaunchCount::add(const Tally& tally, std::size_t group) {
  const std::lock_guard lock(mutex_);
  sums_[group] += tally;
  if (sample_) note_fresh(group);
}

void LaunchCount::note_fresh(std::size_t group) {
  touched_.for_each([&](const TouchedBytes::Page& page) {
    const Fresh now{page.read(), page.written()};
    Fresh& before = known_[page.number()];
    if (now.read == before.read && now.written == before.written) return;
    Fresh& fresh = fresh_[group][page.number()];
    fresh.read += now.read - before.read;
    fresh.written += now.written - before.written;
    before = now;
  });
}

Tally LaunchCount::sum() const {
  if (!sample_) return sums_[0];
  Tally all;
  all.reset(sites_);
  for (std::size_t g = 0; g < sums_.size(); ++g) {
    const BlockSample::Group& group = sample_->groups()[g];
    if (group.chosen != 0) all += sums_[g].scaled(group.weight());
  }
  return all;
}

LaunchCount::LeastBytes LaunchCount::least_bytes() const {
  if (sample_) return scaled_bytes();
  LeastBytes bytes;
  touched_.for_each([&](const TouchedBytes::Page& page) {
    bytes.read += page.read();
    bytes.written += page.written();
  });
  return bytes;
}

/// Scales the bytes that each group was the first to touch. This separates blocks that share their
/// rows with others of a row, and their columns with others of a column. Kernels that number their
/// blocks otherwise seem to touch more, but not more than exists: the ends of a grid reach the ends
/// of a buffer.
LaunchCount::LeastBytes LaunchCount::scaled_bytes() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reaches;
  for (std::size_t l = 0; l < sites_.lines().size(); ++l) {
    LineTally all;
    for (const Tally& sum : sums_) all.reach(sum.lines[l].from, sum.lines[l].to);
    if (all.from < all.to) reaches.emplace_back(all.from, all.to);
  }
  std::ranges::sort(reaches);
  LeastBytes bytes;
  std::uint64_t next = 0;  // a page shared by two buffers belongs to the first
  for (std::size_t first = 0; first < reaches.size();) {
    auto [from, to] = reaches[first];
    for (++first; first < reaches.size() && reaches[first].first < to; ++first) {
      to = std::max(to, reaches[first].second);
    }
    double read = 0, written = 0;
    for (std::size_t g = 0; g < fresh_.size(); ++g) {
      const std::uint64_t end = (to - 1) / TouchedBytes::kPageBytes;
      for (auto page = fresh_[g].lower_bound(std::max(from / TouchedBytes::kPageBytes, next));
           page != fresh_[g].end() && page->first <= end; ++page) {
        read += static_cast<double>(page->second.read) * sample_->groups()[g].weight();
        written += static_cast<double>(page->second.written) * sample_->groups()[g].weight();
      }
    }
    next = (to - 1) / TouchedBytes::kPageBytes + 1;
    const auto all = static_cast<double>(to - from);
    bytes.read += static_cast<std::uint64_t>(std::llround(std::min(read, all)));
    bytes.written += static_cast<std::uint64_t>(std::llround(std::min(written, all)));
  }
  return bytes;
}

}  // namespace braid::cpu
