#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/device.h"
#include "lowering/plan/program.h"

namespace braid {

/// The members of a rank's instance of a group, by index in the group.
[[nodiscard]] std::vector<std::int64_t> group_members(const Program& program,
                                                      std::string_view group, std::int64_t rank);

/// The `symmetric:<group>` arenas of a program: their memory on the ranks of this process, and the
/// addresses at which these reach the memory of all peers.
class SymmetricHeap {
 public:
  /// Allocates on `ranks`. zero_flags() must zero it before others can see it.
  SymmetricHeap(const Program& program, Device& device, std::span<const int> ranks);

  /// Handles with which other ranks import the arenas of ranks[local], and then the multicasts that
  /// it leads; empty if all ranks are in this process.
  [[nodiscard]] std::vector<std::string> exports(std::size_t local);
  /// `handles[rank]` are the exports of every rank of the world. Called once.
  void connect(std::span<const std::vector<std::string>> handles);
  /// Whether all ranks must meet after connect(), and then call bind().
  [[nodiscard]] bool has_multicasts() const { return !ranges_.empty(); }
  void bind();

  /// The address of an arena on ranks[local] itself; 0 if it is not symmetric.
  [[nodiscard]] std::uint64_t own(std::size_t arena, std::size_t local) const;
  /// The addresses at which ranks[local] reaches each arena of each rank: by arena, then by rank. 0
  /// for ranks outside its group, empty for other arenas.
  [[nodiscard]] const std::vector<std::vector<std::uint64_t>>& peers(std::size_t local) const {
    return peers_[local];
  }
  /// By arena: the multicast address for ranks[local]'s group; 0 if no kernel needs it.
  [[nodiscard]] const std::vector<std::uint64_t>& multicasts(std::size_t local) const {
    return multicasts_[local];
  }
  /// The head of each arena of ranks[local], which belongs to no buffer.
  [[nodiscard]] std::vector<MemoryPart> heads(std::size_t local) const;
  /// Enqueues zeroing all state with which ranks wait for each other (heads, flags, scratch) on
  /// ranks[local].
  void zero_flags(std::size_t local, Stream& stream) const;
  /// Enqueues that all waiting kernels of ranks[local], present and later, give up.
  void give_up(std::size_t local, Stream& stream) const;
  // If some ranks are elsewhere: others may have aborted. Enqueues a copy of the abort words for
  // gave_up(), valid once the stream is synchronized.
  void note_giving_up(std::size_t local, Stream& stream) const;
  /// Whether kernels of ranks[local] were told to give up, by any rank.
  [[nodiscard]] bool gave_up(std::size_t local) const;

 private:
  /// A multicast address range for an arena of these ranks; one for all of them in this process.
  struct Range {
    std::size_t arena;
    std::vector<int> members;
    std::unique_ptr<Multicast> multicast;
    std::vector<Memory*> memory;  ///< memory of the members, once connected
  };
  [[nodiscard]] bool wants_multicast(const std::string& group) const;
  [[nodiscard]] std::vector<int> members_of(std::size_t arena, std::size_t local) const;
  Range& range_of(std::size_t arena, const std::vector<int>& members, std::string_view handle);
  void find_peers(std::size_t local, std::size_t arena,
                  std::span<const std::vector<std::string>> handles);

  const Program& program_;
  Device& device_;
  std::vector<int> ranks_;
  std::vector<std::size_t> arenas_;                           ///< indices of symmetric arenas
  std::vector<std::vector<std::unique_ptr<Memory>>> memory_;  ///< by local rank, then as arenas_
  /// By local rank: host-visible copies of the abort words, as arenas_.
  std::vector<std::unique_ptr<Memory>> abort_words_;
  std::vector<std::unique_ptr<Memory>> imported_;
  std::vector<Range> ranges_;
  std::vector<std::vector<std::vector<std::uint64_t>>> peers_;
  std::vector<std::vector<std::uint64_t>> multicasts_;  ///< by local rank, then by arena
};

}  // namespace braid
