#pragma once

#include <mutex>

#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/check/touched_bytes.h"

namespace braid::cpu {

/// One launch that is counted. Thread safe.
class LaunchCount {
 public:
  LaunchCount(const CountSites& sites, const RankMemory& memory, TouchedBytes::Pool& pages,
              int rank)
      : sites_(sites), rank_(rank), touched_(memory, pages) {
    sum_.reset(sites);
  }
  [[nodiscard]] const CountSites& sites() const { return sites_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] TouchedBytes& touched() { return touched_; }
  void add(const Tally& tally) {
    const std::lock_guard lock(mutex_);
    sum_ += tally;
  }
  /// Once all blocks have ended.
  [[nodiscard]] const Tally& sum() const { return sum_; }

 private:
  const CountSites& sites_;
  int rank_;
  TouchedBytes touched_;
  std::mutex mutex_;
  Tally sum_;
};

}  // namespace braid::cpu
