#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// How often a block of a kernel ran. Generated code adds to it: what its instructions come to is
/// worked out from that at the end.
struct BlockTally {
  std::uint64_t full = 0;     ///< with all 32 lanes
  std::uint64_t partial = 0;  ///< with some of them
  std::uint64_t lanes = 0;    ///< of those
  std::uint64_t parted = 0;   ///< times that lanes went different ways at its end
  BlockTally& operator+=(const BlockTally& other);
  [[nodiscard]] BlockTally scaled(double weight) const;
};

/// What the accesses and barriers of a line did, as in Counts. Generated code adds to it, to the
/// six from `shared_requests` on at once.
struct LineTally {
  std::uint64_t global_requests = 0;
  std::uint64_t global_sectors = 0;
  std::uint64_t global_bytes = 0;
  std::uint64_t peer_bytes = 0;
  std::uint64_t global_wavefronts = 0;
  std::uint64_t shared_requests = 0;
  std::uint64_t shared_wavefronts = 0;
  std::uint64_t bank_conflicts = 0;
  std::uint64_t issued_requests = 0;
  std::uint64_t issued_wavefronts = 0;
  std::uint64_t atomics = 0;
  std::uint64_t barriers = 0;
  std::uint64_t from = ~std::uint64_t{0}, to = 0;  ///< where accesses to global memory are
  void reach(std::uint64_t begin, std::uint64_t end) {
    if (begin < from) from = begin;
    if (end > to) to = end;
  }
  LineTally& operator+=(const LineTally& other);
  [[nodiscard]] LineTally scaled(double weight) const;
  [[nodiscard]] Counts counts() const;
};

/// What of a kernel is counted one by one: the blocks of its ControlFlow, in that order, and the
/// lines with accesses or barriers.
class CountSites {
 public:
  struct Block {
    std::uint32_t first = 0, end = 0;  ///< instructions, the terminator too
    std::uint32_t line = 0;            ///< of the branch at its end
    bool branches = false;             ///< it has a conditional one
  };
  CountSites(const ptx::Function& function, const ControlFlow& flow);
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<std::uint32_t>& lines() const { return lines_; }
  /// Whether what the line at that place reads goes past L1: copies to shared memory.
  [[nodiscard]] bool past_l1(std::size_t place) const { return past_l1_[place]; }
  [[nodiscard]] std::size_t place_of(std::uint32_t line) const;

 private:
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> lines_;  ///< ascending
  std::vector<bool> past_l1_;
};

struct Tally {
  std::vector<BlockTally> blocks;
  std::vector<LineTally> lines;
  // Of blocks whose accesses to global memory are followed.
  std::uint64_t followed = 0;
  std::uint64_t sectors = 0;  ///< that each of them touches, by itself
  std::uint64_t busiest = 0;  ///< instructions of the block that has most
  /// Starts again at zero, for these sites.
  void reset(const CountSites& sites);
  /// Of the same sites.
  Tally& operator+=(const Tally& other);
  /// What so many times as many blocks come to.
  [[nodiscard]] Tally scaled(double weight) const;
  /// Of warps.
  [[nodiscard]] std::uint64_t instructions(const CountSites& sites) const;
};

}  // namespace braid::cpu
