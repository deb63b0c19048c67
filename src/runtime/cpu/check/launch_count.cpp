#include "runtime/cpu/check/launch_count.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/cpu/check/access_cost.h"

namespace braid::cpu {
namespace {

/// A sum of amounts, each of which stands for several.
struct Scaled {
  double bytes = 0, sectors = 0;
  void add(const TouchedBytes::Amount& amount, double weight) {
    bytes += weight * static_cast<double>(amount.bytes);
    sectors += weight * static_cast<double>(amount.sectors);
  }
  /// At most what there is from address `from` up to `to`.
  [[nodiscard]] TouchedBytes::Amount up_to(std::uint64_t from, std::uint64_t to) const {
    const auto least = [](double sum, std::uint64_t most) {
      return std::min(static_cast<std::uint64_t>(std::llround(sum)), most);
    };
    return {least(bytes, to - from),
            least(sectors, (to - 1) / SectorSet::kBytes - from / SectorSet::kBytes + 1)};
  }
};

}  // namespace

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
    const TouchedBytes::Traffic now = page.traffic();
    TouchedBytes::Traffic& before = known_[page.number()];
    if (now == before) return;
    TouchedBytes::Traffic& fresh = fresh_[group][page.number()];
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

TouchedBytes::Traffic LaunchCount::least_traffic() const {
  if (sample_) return scaled_traffic();
  TouchedBytes::Traffic all;
  touched_.for_each([&](const TouchedBytes::Page& page) {
    const TouchedBytes::Traffic here = page.traffic();
    all.read += here.read;
    all.written += here.written;
  });
  return all;
}

/// Scales what each group was the first to touch. This separates blocks that share their
/// rows with others of a row, and their columns with others of a column. Kernels that number their
/// blocks otherwise seem to touch more, but not more than exists: the ends of a grid reach the ends
/// of a buffer.
TouchedBytes::Traffic LaunchCount::scaled_traffic() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reaches;
  for (std::size_t l = 0; l < sites_.lines().size(); ++l) {
    LineTally all;
    for (const Tally& sum : sums_) all.reach(sum.lines[l].from, sum.lines[l].to);
    if (all.from < all.to) reaches.emplace_back(all.from, all.to);
  }
  std::ranges::sort(reaches);
  TouchedBytes::Traffic all;
  std::uint64_t next = 0;  // a page shared by two buffers belongs to the first
  for (std::size_t first = 0; first < reaches.size();) {
    auto [from, to] = reaches[first];
    for (++first; first < reaches.size() && reaches[first].first < to; ++first) {
      to = std::max(to, reaches[first].second);
    }
    Scaled read, written;
    for (std::size_t g = 0; g < fresh_.size(); ++g) {
      const std::uint64_t end = (to - 1) / TouchedBytes::kPageBytes;
      for (auto page = fresh_[g].lower_bound(std::max(from / TouchedBytes::kPageBytes, next));
           page != fresh_[g].end() && page->first <= end; ++page) {
        read.add(page->second.read, sample_->groups()[g].weight());
        written.add(page->second.written, sample_->groups()[g].weight());
      }
    }
    next = (to - 1) / TouchedBytes::kPageBytes + 1;
    all.read += read.up_to(from, to);
    all.written += written.up_to(from, to);
  }
  return all;
}

}  // namespace braid::cpu
