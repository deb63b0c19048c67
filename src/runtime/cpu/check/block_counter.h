#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/cpu/check/launch_count.h"
#include "runtime/cpu/check/read_glances.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/check/sector_words.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/check/touched_bytes.h"
#include "runtime/cpu/run/multicast.h"
#include "runtime/cpu/run/warp_context.h"

namespace braid::cpu {

/// Counts what the blocks of one BlockRunner do; not thread safe. `line` is an index into the lines
/// of CountSites; addresses are indexed by lane, for the lanes in `mask`.
class BlockCounter {
 public:
  /// Starts counting for this launch, in a sample for this block.
  void start(LaunchCount& launch, std::uint64_t block);
  /// Continues with another block, or a cluster of that many. If `followed`, the sectors of global
  /// memory that it touches are recorded. `glance`: the block does not count; only its first reads
  /// are recorded.
  void next_block(std::uint64_t block, std::uint32_t blocks, bool followed, bool glance);
  /// Whether this warp of a block that does not count may end.
  [[nodiscard]] bool seen_enough(std::uint32_t warp) const {
    return glance_ && looked_[warp] >= ReadGlances::kAccesses;
  }
  /// Adds the counts to the launch.
  void finish();
  [[nodiscard]] Tally& tally() { return tally_; }

  void global_access(const WarpContext& warp, const std::uint64_t* addresses, std::uint32_t mask,
                     AccessCode code, std::uint32_t line);
  /// The same with sizes by lane, of which those above code.bytes are as many.
  void global_copy(const WarpContext& warp, const std::uint64_t* addresses,
                   const std::uint32_t* sizes, std::uint32_t mask, AccessCode code,
                   std::uint32_t line) {
    if (mask != 0) global_lanes(warp, addresses, mask, code, line, sizes);
  }
  /// The same with lane l at base + l * step: all at one place, or contiguous.
  void global_row(const WarpContext& warp, std::uint64_t base, std::uint32_t step,
                  std::uint32_t mask, AccessCode code, std::uint32_t line);
  void shared_access(const std::uint64_t* addresses, std::uint32_t mask, AccessCode code,
                     std::uint32_t line);
  /// Counts a product of so many operations.
  void matrix_product(std::uint64_t flops, std::uint32_t line) {
    if (!glance_) tally_.lines[line].mma_flops += flops;
  }
  /// Counts 8 rows of 16 bytes of an operand of wgmma or tcgen05, which the tensor cores read
  /// together; `first` marks the operand's first rows.
  void matrix_rows(const std::uint64_t* addresses, bool first, std::uint32_t line);
  /// Counts a multimem access, whose lanes are at `places` on each rank. A reduction happens in the
  /// switch, so one answer comes over the links; a store goes to each rank.
  void multicast_access(const MulticastPlaces& places, std::uint32_t mask, AccessCode code,
                        std::uint32_t line);

 private:
  void end_block();
  [[nodiscard]] bool follows(std::uint32_t line) const {
    return followed_ && launch_->sites().route(line) == CountSites::Route::kThroughL1;
  }
  /// Records the sectors of a followed access. Those of each block of a cluster have numbers of
  /// their own, which are no addresses.
  void follow(const WarpContext& warp, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t block = std::uint64_t{warp.cluster_rank} << 59U;
    tally_.asked += last - first + 1;
    sectors_.add(block + first, block + last);
  }
  void note_busiest();
  void global_lanes(const WarpContext& warp, const std::uint64_t* addresses, std::uint32_t mask,
                    AccessCode code, std::uint32_t line, const std::uint32_t* sizes = nullptr);
  /// Whether the reads of this access are among those recorded.
  bool looks_at(std::uint32_t warp, AccessCode code);
  TouchedBytes::Page& page_of(std::uint64_t address) {
    const std::uint64_t number = address / TouchedBytes::kPageBytes;
    // Buffers are often a power of two of pages apart.
    TouchedBytes::Page*& page = pages_[(number ^ number >> 10U ^ number >> 20U) % pages_.size()];
    if (page == nullptr || page->number() != number) page = &launch_->touched().page(number);
    return *page;
  }

  LaunchCount* launch_ = nullptr;
  std::size_t group_ = 0;
  Tally tally_;
  std::vector<std::uint64_t> before_;  ///< warps of earlier blocks, by basic block
  bool followed_ = false;
  SectorWords sectors_;  ///< of the current block
  // State of a block whose first reads are recorded.
  std::uint64_t block_ = 0, blocks_ = 1;
  bool looks_ = false, glance_ = false;
  std::array<std::uint32_t, 32> looked_{};  ///< accesses, by warp
  SectorWords seen_;
  /// A cache of the launch's pages by number, which makes locks rare.
  std::array<TouchedBytes::Page*, 1024> pages_{};
};

}  // namespace braid::cpu
