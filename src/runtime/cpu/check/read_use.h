#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// How a kernel uses the values that a line reads from memory.
struct ReadUse {
  bool always = false;                ///< they may decide a branch or an address, or escape
  bool crosses_lanes = false;         ///< they may reach other lanes of the warp
  std::vector<std::uint32_t> stores;  ///< otherwise they matter only if one of these lines stores
  /// An instruction that may drop them (ptx::is_choice), by its line, and which of its two values
  /// they are.
  struct Choice {
    std::uint32_t line = 0;
    std::uint32_t value = 0;
  };
  std::vector<Choice> choices;  ///< or if one of these takes them, and its result matters
};

/// Follows the values through the registers, in any possible order of the instructions. For the
/// line of a choice its result is followed.
ReadUse use_of_reads(const ptx::Function& function, std::uint32_t line);

}  // namespace braid::cpu
