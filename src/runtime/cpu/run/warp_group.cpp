// Four warps that follow each other, and what they may only do together.

#include <array>
#include <bit>

#include "runtime/cpu/run/block_runner.h"

namespace braid::cpu {

void BlockRunner::check_group(Warp& warp, std::uint32_t lanes, std::uint32_t line) {
  if (warp.warp / kGroupWarps * kGroupWarps + kGroupWarps > block_warps_) {
    fail(warp, "barrier", "the block ends within this group of four warps", line);
  }
  if (lanes != ~0U) fail(warp, "barrier", "a wgmma instruction in divergent code of a warp", line);
}

std::uint32_t BlockRunner::meet_group(Warp& warp, std::uint32_t lanes, std::uint32_t pending,
                                      BarrierKind kind, std::uint32_t line) {
  check_group(warp, lanes, line);
  warp.barrier_line = line;
  warp.pending_groups = pending;
  if (sanitizer() != nullptr) warp.check.wgmma.ran(std::uint64_t{line} << 32U | pending);
  return come(warp, kNamedBarriers + warp.warp / kGroupWarps, kGroupWarps, kind);
}

/// The warps of `waiting` have met.
void BlockRunner::tell_group(const Block& block, std::uint32_t waiting) {
  std::array<WarpCheck*, kGroupWarps> checks{};
  const Warp* last = nullptr;
  std::size_t count = 0;
  for (; waiting != 0; waiting &= waiting - 1) {
    const auto in_block = static_cast<std::uint32_t>(std::countr_zero(waiting));
    Warp& warp = *warps_[block.rank * block_warps_ + in_block];
    checks[count++] = &warp.check;
    last = &warp;
  }
  sanitizer()->wgmma_waited({checks.data(), count}, last->pending_groups, last->barrier_line);
}

}  // namespace braid::cpu
