#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// What a kernel does with the values that a line reads from memory.
struct ReadUse {
  bool always = false;                ///< they may decide a branch or an address, or more
  bool crosses_lanes = false;         ///< they may come to other lanes of the warp
  std::vector<std::uint32_t> stores;  ///< else they count where one of these lines stores
};

/// Follows the values through the registers, in whatever order the instructions may run.
ReadUse use_of_reads(const ptx::Function& function, std::uint32_t line);

}  // namespace braid::cpu
