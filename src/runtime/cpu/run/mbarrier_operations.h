#pragma once

#include <cstdint>

#include "runtime/cpu/run/block_runner.h"

namespace braid::cpu {

/// Tells the mbarrier at an address that bytes of a lane's copy have come.
void complete_bytes(BlockRunner::Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                    std::uint32_t line);

}  // namespace braid::cpu
