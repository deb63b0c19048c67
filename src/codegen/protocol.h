#pragma once

#include <cstdint>

namespace braid::protocol {

// The head of every `symmetric:<group>` arena: the abort word, the record of the first wait that
// timed out, and for each channel the flags and epochs of its blocks (DESIGN §7). All words are
// 32-bit, zeroed before rendezvous. Kernels print these offsets; the executable reads the record.
//
//   channel: flags[phase 0, 1][block][peer], then epochs[block]

inline constexpr std::int64_t kMaxBlocks = 32;     ///< blocks of a kernel that waits
inline constexpr std::int64_t kAbortOffset = 0;    ///< set to 1 on every rank when a wait times out
inline constexpr std::int64_t kRecordOffset = 64;  ///< Record
inline constexpr std::int64_t kChannelsOffset = 256;
inline constexpr int kPhases = 2;  ///< opening and closing barrier

/// Written once, by the block that first timed out on this rank.
struct Record {
  std::uint32_t claimed;
  std::uint32_t rank;
  std::uint32_t step;
  std::uint32_t block;
  std::uint32_t channel;
  std::uint32_t peer;
  std::uint32_t expected;
  std::uint32_t seen;
};

constexpr std::int64_t flags_bytes(std::int64_t world) { return kMaxBlocks * world * 4; }
constexpr std::int64_t channel_bytes(std::int64_t world) {
  return kPhases * flags_bytes(world) + kMaxBlocks * 4;
}
/// Bytes of the head for `channels` channels, a multiple of 4096.
constexpr std::int64_t head_bytes(std::int64_t channels, std::int64_t world) {
  return (kChannelsOffset + channels * channel_bytes(world) + 4095) / 4096 * 4096;
}

}  // namespace braid::protocol
