#pragma once

#include <cstdint>

namespace braid::protocol {

// What every kernel that can fail knows without being told: the head of each `symmetric:<group>`
// arena, and the record of a rank. Flags and scratch are buffers that the planner places
// (Requirements). All words are zeroed before rendezvous.

/// A 32-bit word, set to 1 on every rank of the group when a wait times out.
inline constexpr std::int64_t kAbortOffset = 0;
inline constexpr std::int64_t kHeadBytes = 256;

/// What went wrong on one rank: host-visible memory outside of the arenas, a parameter of every
/// kernel that can fail, zero while all is well. The first failure claims `kind` and writes the
/// rest; later ones leave it alone. The preamble prints the same struct.
struct Record {
  enum Kind : std::uint32_t { kNothing, kLostWait, kBadIndex };
  std::uint32_t kind;
  std::uint32_t step;  ///< of the program
  // kLostWait
  std::uint32_t block;
  std::uint32_t slot;      ///< of the step's flags; of a packet its place in the scratch
  std::uint32_t peer;      ///< its index in the group
  std::uint32_t expected;  ///< epochs
  std::uint32_t seen;
  // kBadIndex: `index` is not in [0, extent)
  std::uint32_t node;  ///< of the kernel's body
  std::int64_t index;
  std::int64_t extent;
};
static_assert(sizeof(Record) == 48);

/// When a block of a kernel that notes it began with what it did next, in the order of its doing;
/// zero past the last. A block has room for so many; what does not fit is not there. The preamble
/// prints the same struct.
inline constexpr std::int64_t kMarksOfBlock = 512;
struct Mark {
  enum What : int { kEnd, kMeet, kCopy, kWait, kMultiply };
  std::uint64_t ns;  ///< %globaltimer
  std::uint16_t what;
  std::uint16_t rank;    ///< whose rows, by its index in the group
  std::uint32_t number;  ///< of a panel of these
};
static_assert(sizeof(Mark) == 16);

}  // namespace braid::protocol
