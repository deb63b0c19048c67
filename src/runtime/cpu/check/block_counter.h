#pragma once

#include <array>
#include <cstdint>

#include "runtime/cpu/check/launch_count.h"
#include "runtime/cpu/check/read_glances.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/check/sector_words.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/check/touched_bytes.h"
#include "runtime/cpu/run/multicast.h"

namespace braid::cpu {

/// Counts what the blocks of one BlockRunner do; only one thread at a time calls it. `line` is a
/// place in the lines of CountSites; addresses are by lane, of those in `mask`.
class BlockCounter {
 public:
  /// What comes belongs to this launch, and of a sample to this block.
  void start(LaunchCount& launch, std::uint64_t block);
  /// What comes belongs to another block, or a cluster of so many. Which sectors of global memory
  /// it touches is noted, if it is followed. `glance`: of one that does not count, and is looked at
  /// for its first reads alone.
  void next_block(std::uint64_t block, std::uint32_t blocks, bool followed, bool glance);
  /// Whether this warp of a block that does not count may end.
  [[nodiscard]] bool seen_enough(std::uint32_t warp) const {
    return glance_ && looked_[warp] >= ReadGlances::kAccesses;
  }
  /// Adds what was counted to the launch.
  void finish();
  [[nodiscard]] Tally& tally() { return tally_; }

  void global_access(std::uint32_t warp, const std::uint64_t* addresses, std::uint32_t mask,
                     AccessCode code, std::uint32_t line);
  /// The same where lane l is at base + l * step: all at one place, or side by side.
  void global_row(std::uint32_t warp, std::uint64_t base, std::uint32_t step, std::uint32_t mask,
                  AccessCode code, std::uint32_t line);
  void shared_access(const std::uint64_t* addresses, std::uint32_t mask, AccessCode code,
                     std::uint32_t line);
  /// Of an operand of wgmma 8 rows of 16 bytes, which the tensor cores read at once; `first`: of
  /// it.
  void matrix_rows(const std::uint64_t* addresses, bool first, std::uint32_t line);
  /// An access by multimem, whose lanes are at `places` on each rank. A reduction is done on the
  /// way: one answer comes over the links; what is stored goes to each rank.
  void multicast_access(const MulticastPlaces& places, std::uint32_t mask, AccessCode code,
                        std::uint32_t line);

 private:
  void end_block();
  void global_lanes(std::uint32_t warp, const std::uint64_t* addresses, std::uint32_t mask,
                    AccessCode code, std::uint32_t line);
  /// Whether what this access reads is among what is looked at.
  bool looks_at(std::uint32_t warp, AccessCode code);
  TouchedBytes::Page& page_of(std::uint64_t address) {
    const std::uint64_t number = address / TouchedBytes::kPageBytes;
    // Buffers often lie a power of two of pages apart.
    TouchedBytes::Page*& page = pages_[(number ^ number >> 10U ^ number >> 20U) % pages_.size()];
    if (page == nullptr || page->number() != number) page = &launch_->touched().page(number);
    return *page;
  }

  LaunchCount* launch_ = nullptr;
  std::size_t group_ = 0;
  Tally tally_;
  std::uint64_t before_ = 0;  ///< instructions of the blocks before
  bool followed_ = false;
  SectorWords sectors_;  ///< of the block
  // Of a block whose first reads are looked at.
  std::uint64_t block_ = 0, blocks_ = 1;
  bool looks_ = false, glance_ = false;
  std::array<std::uint32_t, 32> looked_{};  ///< accesses, by warp
  SectorWords seen_;
  /// Pages of the launch by their number, so that a lock is seldom needed.
  std::array<TouchedBytes::Page*, 1024> pages_{};
};

}  // namespace braid::cpu
