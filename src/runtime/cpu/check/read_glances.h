#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/cpu/check/sector_words.h"

namespace braid::cpu {

/// What some consecutive blocks read first: the sectors of the first accesses of each of their
/// warps. Blocks that run at the same time progress in step, so this shows how much they read in
/// common. Thread safe.
class ReadGlances {
 public:
  static constexpr std::uint32_t kAccesses = 192;  ///< per warp

  /// For a grid of that many blocks: chooses some from its middle.
  explicit ReadGlances(std::uint64_t blocks);
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] bool has(std::uint64_t block) const {
    return first_ <= block && block < first_ + blocks_;
  }
  void add(std::uint64_t block, SectorBits sectors);
  /// Computes KernelCounts::shared_reads.
  [[nodiscard]] std::vector<double> shares() const;

 private:
  static constexpr std::uint64_t kMostBlocks = 1024;
  std::uint64_t first_ = 0, blocks_ = 0;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, SectorBits> seen_;  ///< by block
};

}  // namespace braid::cpu
