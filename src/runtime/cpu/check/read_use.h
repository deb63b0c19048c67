#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// How a kernel uses the values that a line reads from memory.
struct ReadUse {
  /// Whether the block of the line, and which others, does more with them than to move them. A warp
  /// that enters none of these later has dropped them.
  bool in_block = false;
  std::vector<int> blocks;
  std::vector<std::uint32_t> moved_by;  ///< stores of these very values
  bool always = false;                  ///< they may decide a branch or an address, or escape
  bool crosses_lanes = false;           ///< they may reach other lanes of the warp
  /// Some are what a compare-and-swap of the same word expects, which fails where they are wrong.
  bool guesses = false;
  std::vector<std::uint32_t> stores;  ///< otherwise they matter only if one of these lines stores
  /// An instruction that may drop them (ptx::is_choice), by its line, and which of its two values
  /// they are.
  struct Choice {
    std::uint32_t line = 0;
    std::uint32_t value = 0;
  };
  std::vector<Choice> choices;  ///< or if one of these takes them, and its result matters
};

/// Follows the values through the registers: to their readers as control flows, from there in any
/// order of the instructions. For the line of a choice its result is followed.
ReadUse use_of_reads(const ptx::Function& function, std::uint32_t line);

}  // namespace braid::cpu
