#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/cpu/check/block_sample.h"
#include "runtime/cpu/check/read_glances.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/check/touched_bytes.h"

namespace braid::cpu {

/// The counts of one launch. Thread safe, except that blocks of a sample run one after the other.
class LaunchCount {
 public:
  /// With a `sample`, only its blocks run, and their counts are scaled.
  LaunchCount(const CountSites& sites, const RankMemory& memory, TouchedBytes::Pool& pages,
              int rank, std::uint64_t blocks, std::optional<BlockSample> sample);
  [[nodiscard]] const CountSites& sites() const { return sites_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] TouchedBytes& touched() { return touched_; }
  [[nodiscard]] ReadGlances& glances() { return glances_; }
  /// Null if all blocks run.
  [[nodiscard]] const BlockSample* sample() const { return sample_ ? &*sample_ : nullptr; }
  /// Adds what blocks did; in a sample they belong to this group.
  void add(const Tally& tally, std::size_t group);

  // Called once all blocks have ended.
  [[nodiscard]] Tally sum() const;
  [[nodiscard]] TouchedBytes::Traffic least_traffic() const;

 private:
  void note_fresh(std::size_t group);
  [[nodiscard]] TouchedBytes::Traffic scaled_traffic() const;

  const CountSites& sites_;
  int rank_;
  std::optional<BlockSample> sample_;
  TouchedBytes touched_;
  ReadGlances glances_;
  std::mutex mutex_;
  std::vector<Tally> sums_;  ///< by group
  using ByPage = std::map<std::uint64_t, TouchedBytes::Traffic>;
  std::vector<ByPage> fresh_;  ///< in a sample, by group: what its blocks were the first to touch
  ByPage known_;               ///< over all groups so far
};

}  // namespace braid::cpu
