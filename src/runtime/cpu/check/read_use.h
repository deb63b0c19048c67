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
  /// Lanes of the warp that they may reach. A matrix product brings a row of its left operand to
  /// the four lanes that have the row of the result, a column of the right one to those that have
  /// the column.
  bool crosses_lanes = false, crosses_quads = false, crosses_columns = false;
  [[nodiscard]] std::uint32_t reached(std::uint32_t lanes) const;
  /// Of ldmatrix: a register for each matrix, whose rows eight lanes have the addresses of.
  int matrices = 0;
  bool transposed = false;
  /// The lanes that get what these ones have the addresses of, in the register of a matrix.
  [[nodiscard]] std::uint32_t receiving(std::uint32_t lanes, int matrix) const;
  /// Some are what a compare-and-swap of the same word expects, which fails where they are wrong.
  bool guesses = false;
  std::vector<std::uint32_t> stores;  ///< otherwise they matter only if one of these lines stores
  std::vector<std::uint32_t> computed_by;  ///< of these those where a lane stores what it has
  /// An instruction that may drop them (ptx::is_choice), by its line, and which of its two values
  /// they are.
  struct Choice {
    std::uint32_t line = 0;
    std::uint32_t value = 0;
  };
  std::vector<Choice> choices;  ///< or if one of these takes them, and its result matters
};

/// Follows the values through the registers: to their readers as control flows, from there in any
/// order of the instructions. For the line of a choice its result is followed. Of ldmatrix all
/// registers are, or that of one matrix.
inline constexpr int kAllMatrices = -1;
ReadUse use_of_reads(const ptx::Function& function, std::uint32_t line, int matrix = kAllMatrices);

}  // namespace braid::cpu
