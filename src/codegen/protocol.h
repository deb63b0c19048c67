#pragma once

#include <cstdint>

namespace braid::protocol {

// The head of every `symmetric:<group>` arena: the abort word, and for each channel the flags and
// epochs of its blocks (DESIGN §7). All words are 32-bit, zeroed before rendezvous. Kernels print
// these offsets.
//
//   channel: flags[phase 0, 1][block][peer], then epochs[block]

inline constexpr std::int64_t kMaxBlocks = 32;   ///< blocks of a kernel that waits
inline constexpr std::int64_t kAbortOffset = 0;  ///< set to 1 on every rank when a wait times out
inline constexpr std::int64_t kChannelsOffset = 256;
inline constexpr int kPhases = 2;  ///< opening and closing barrier

/// What went wrong on one rank: host-visible memory outside of the arenas, a parameter of every
/// kernel that can fail, zero while all is well. The first failure claims `kind` and writes the
/// rest; later ones leave it alone. The preamble prints the same struct.
struct Record {
  enum Kind : std::uint32_t { kNothing, kLostWait, kBadIndex };
  std::uint32_t kind;
  std::uint32_t step;  ///< of the program
  // kLostWait
  std::uint32_t block;
  std::uint32_t channel;
  std::uint32_t peer;      ///< its index in the group
  std::uint32_t expected;  ///< epochs
  std::uint32_t seen;
  // kBadIndex: `index` is not in [0, extent)
  std::uint32_t node;  ///< of the kernel's body
  std::int64_t index;
  std::int64_t extent;
};
static_assert(sizeof(Record) == 48);

constexpr std::int64_t flags_bytes(std::int64_t world) { return kMaxBlocks * world * 4; }
constexpr std::int64_t channel_bytes(std::int64_t world) {
  return kPhases * flags_bytes(world) + kMaxBlocks * 4;
}
/// Bytes of the head for `channels` channels, a multiple of 4096.
constexpr std::int64_t head_bytes(std::int64_t channels, std::int64_t world) {
  return (kChannelsOffset + channels * channel_bytes(world) + 4095) / 4096 * 4096;
}

}  // namespace braid::protocol
