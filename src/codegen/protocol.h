#pragma once

#include <cstdint>

namespace braid::protocol {

// Memory layouts that every kernel that can fail relies on: the head of each `symmetric:<group>`
// arena, and the error record of a rank. Flags and scratch are buffers that the planner places
// (Requirements). All words are zeroed before rendezvous.

/// A 32-bit word, set to 1 on every rank of the group when a wait times out.
inline constexpr std::int64_t kAbortOffset = 0;
inline constexpr std::int64_t kHeadBytes = 256;

/// The error record of one rank: host-visible memory outside the arenas, a parameter of every
/// kernel that can fail, zero while all is well. The first failure claims `kind` and writes the
/// rest; later ones leave it alone. The preamble prints the same struct.
struct Record {
  enum Kind : std::uint32_t { kNothing, kLostWait, kBadIndex };
  std::uint32_t kind;
  std::uint32_t step;  ///< index in the program
  // kLostWait
  std::uint32_t block;
  std::uint32_t slot;      ///< among the step's flags; for a packet, its place in the scratch
  std::uint32_t peer;      ///< index in the group
  std::uint32_t expected;  ///< epoch
  std::uint32_t seen;
  // kBadIndex: `index` is not in [0, extent)
  std::uint32_t node;  ///< in the kernel's body, or one of its operands (check_of)
  std::int64_t index;
  std::int64_t extent;
};
static_assert(sizeof(Record) == 48);

/// What a record calls operand `operand` of node `node`, where a node's operands are told apart.
constexpr int check_of(int node, int operand) { return node + (operand << 16); }

/// When a block began each of its activities, in order, zero past the last; for kernels that record
/// marks. Each block has this many; further ones are dropped. The preamble prints the same struct.
inline constexpr std::int64_t kMarksOfBlock = 512;
struct Mark {
  enum What : int { kEnd, kMeet, kCopy, kWait, kMultiply };
  std::uint64_t ns;  ///< %globaltimer
  std::uint16_t what;
  std::uint16_t rank;    ///< whose rows, as an index in the group
  std::uint32_t number;  ///< panel among that rank's rows
};
static_assert(sizeof(Mark) == 16);

}  // namespace braid::protocol
