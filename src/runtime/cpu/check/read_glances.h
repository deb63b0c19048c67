#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/cpu/check/sector_words.h"

namespace braid::cpu {

/// What some blocks in a row read first: the sectors of the first accesses of each of their warps.
/// Blocks that run at one time go through what they read in step, so how much of it they have in
/// common shows there. Thread safe.
class ReadGlances {
 public:
  static constexpr std::uint32_t kAccesses = 192;  ///< of each warp

  /// Of a grid of so many blocks: some from its middle.
  explicit ReadGlances(std::uint64_t blocks);
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] bool has(std::uint64_t block) const {
    return first_ <= block && block < first_ + blocks_;
  }
  void add(std::uint64_t block, SectorBits sectors);
  /// As KernelCounts::shared_reads.
  [[nodiscard]] std::vector<double> shares() const;

 private:
  static constexpr std::uint64_t kMostBlocks = 1024;
  std::uint64_t first_ = 0, blocks_ = 0;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, SectorBits> seen_;  ///< by block
};

}  // namespace braid::cpu
