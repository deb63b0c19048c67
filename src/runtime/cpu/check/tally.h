#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/counts.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {

/// How often a basic block ran. Generated code updates it; the counts of its instructions are
/// derived at the end.
struct BlockTally {
  std::uint64_t full = 0;     ///< with all 32 lanes
  std::uint64_t partial = 0;  ///< with some of them
  std::uint64_t lanes = 0;    ///< lanes in those
  std::uint64_t parted = 0;   ///< times that its branch diverged
  [[nodiscard]] std::uint64_t warps() const { return full + partial; }
  BlockTally& operator+=(const BlockTally& other);
  [[nodiscard]] BlockTally scaled(double weight) const;
};

/// Counts of the accesses and barriers of a line, as in Counts. Generated code updates it, and adds
/// the six from `shared_requests` on together.
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
  std::uint64_t mma_flops = 0;                     ///< where only the operands say how many
  std::uint64_t from = ~std::uint64_t{0}, to = 0;  ///< range of its accesses to global memory
  void reach(std::uint64_t begin, std::uint64_t end) {
    if (begin < from) from = begin;
    if (end > to) to = end;
  }
  LineTally& operator+=(const LineTally& other);
  [[nodiscard]] LineTally scaled(double weight) const;
  [[nodiscard]] Counts counts() const;
};

/// What is counted separately in a kernel: the basic blocks of its ControlFlow, in order, and the
/// lines with accesses or barriers.
class CountSites {
 public:
  struct Block {
    std::uint32_t first = 0, end = 0;  ///< instructions, including the terminator
    std::uint32_t line = 0;            ///< line of the branch at its end
    bool branches = false;             ///< the branch is conditional
  };
  CountSites(const ptx::Function& function, const ControlFlow& flow);
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<std::uint32_t>& lines() const { return lines_; }
  /// How the line at that place gets to what it accesses of global memory.
  enum class Route : std::uint8_t {
    kThroughL1,
    kPastL1,  ///< as LineCounts::past_l1
    kToL2,    ///< prefetches, which end there
  };
  [[nodiscard]] Route route(std::size_t place) const { return routes_[place]; }
  [[nodiscard]] std::size_t place_of(std::uint32_t line) const;

 private:
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> lines_;  ///< sorted ascending
  std::vector<Route> routes_;         ///< likewise
};

/// The block of a grid that executes the most instructions.
struct BusiestBlock {
  std::uint64_t instructions = 0;
  std::vector<std::uint64_t> warps;  ///< how many ran each basic block
};

struct Tally {
  std::vector<BlockTally> blocks;
  std::vector<LineTally> lines;
  // Sectors of the blocks whose accesses through L1 are followed.
  std::uint64_t asked = 0;    ///< counted for each access
  std::uint64_t sectors = 0;  ///< counted once for each block
  BusiestBlock busiest;
  void reset(const CountSites& sites);
  /// Both must be for the same sites. The busier one of the busiest blocks stays.
  Tally& operator+=(const Tally& other);
  /// The tally for `weight` times as many blocks.
  [[nodiscard]] Tally scaled(double weight) const;
  /// How many warps ran each basic block.
  [[nodiscard]] std::vector<std::uint64_t> warps() const;
};

}  // namespace braid::cpu
