// Four warps that follow each other, and what they may only do together.

#include "runtime/cpu/run/block_runner.h"

namespace braid::cpu {

void BlockRunner::check_group(Warp& warp, std::uint32_t lanes, std::uint32_t line) {
  if (warp.warp / kGroupWarps * kGroupWarps + kGroupWarps > block_warps_) {
    fail(warp, "barrier", "the block ends within this group of four warps", line);
  }
  if (lanes != ~0U) fail(warp, "barrier", "a wgmma instruction in divergent code of a warp", line);
}

std::uint32_t BlockRunner::meet_group(Warp& warp, std::uint32_t lanes, BarrierKind kind,
                                      std::uint32_t line) {
  check_group(warp, lanes, line);
  warp.barrier_line = line;
  return come(warp, kNamedBarriers + warp.warp / kGroupWarps, kGroupWarps, kind);
}

}  // namespace braid::cpu
