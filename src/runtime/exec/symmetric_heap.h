#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/device.h"
#include "lowering/plan/program.h"

namespace braid {

/// The members of a rank's instance of a group, in order of their index in the group.
[[nodiscard]] std::vector<std::int64_t> group_members(const Program& program,
                                                      std::string_view group, std::int64_t rank);

/// The `symmetric:<group>` arenas of a program: their memory on the ranks that live here, and where
/// these find the memory of their peers, wherever those live.
class SymmetricHeap {
 public:
  /// Allocates on `ranks`; all of it is to be zeroed by zero_flags() before others may see it.
  SymmetricHeap(const Program& program, Device& device, std::span<const int> ranks);

  /// By which the other ranks import the arenas of ranks[local], and then the multicasts that it
  /// leads; nothing when all ranks live here.
  [[nodiscard]] std::vector<std::string> exports(std::size_t local);
  /// `handles[rank]` are the exports of every rank of the world. To be called once.
  void connect(std::span<const std::vector<std::string>> handles);
  /// Whether all ranks are to meet after connect(), and to call bind() then.
  [[nodiscard]] bool has_multicasts() const { return !ranges_.empty(); }
  void bind();

  /// Of an arena on ranks[local] itself; 0 when it is not a symmetric one.
  [[nodiscard]] std::uint64_t own(std::size_t arena, std::size_t local) const;
  /// Where ranks[local] finds each arena of each rank: by arena, then by rank; 0 for one that is
  /// not in its group, nothing for other arenas.
  [[nodiscard]] const std::vector<std::vector<std::uint64_t>>& peers(std::size_t local) const {
    return peers_[local];
  }
  /// By arena, the address that stands for those of all ranks of ranks[local]'s group at once; 0
  /// where no kernel asks for it.
  [[nodiscard]] const std::vector<std::uint64_t>& multicasts(std::size_t local) const {
    return multicasts_[local];
  }
  /// The head of each arena of ranks[local], which no buffer holds.
  [[nodiscard]] std::vector<MemoryPart> heads(std::size_t local) const;
  /// Enqueues that all by which ranks wait for each other (heads, flags, scratch) is zero on
  /// ranks[local], as before the first run.
  void zero_flags(std::size_t local, Stream& stream) const;
  /// Enqueues that all kernels of ranks[local] that wait, now or later, give up.
  void give_up(std::size_t local, Stream& stream) const;
  // Where some ranks live elsewhere: the others know what was recorded here.
  /// Enqueues that gave_up() knows it, once the stream is synchronized.
  void note_giving_up(std::size_t local, Stream& stream) const;
  /// Whether kernels of ranks[local] were told to give up, by whomever.
  [[nodiscard]] bool gave_up(std::size_t local) const;

 private:
  /// Addresses that stand for an arena of these ranks at once. One for all of them that live here.
  struct Range {
    std::size_t arena;
    std::vector<int> members;
    std::unique_ptr<Multicast> multicast;
    std::vector<Memory*> memory;  ///< of the members, once they are connected
  };
  [[nodiscard]] bool wants_multicast(const std::string& group) const;
  [[nodiscard]] std::vector<int> members_of(std::size_t arena, std::size_t local) const;
  Range& range_of(std::size_t arena, const std::vector<int>& members, std::string_view handle);
  void find_peers(std::size_t local, std::size_t arena,
                  std::span<const std::vector<std::string>> handles);

  const Program& program_;
  Device& device_;
  std::vector<int> ranks_;
  std::vector<std::size_t> arenas_;                           ///< those that are symmetric
  std::vector<std::vector<std::unique_ptr<Memory>>> memory_;  ///< by local rank, then as arenas_
  /// By local rank, copies of the abort words that the host sees, as arenas_.
  std::vector<std::unique_ptr<Memory>> abort_words_;
  std::vector<std::unique_ptr<Memory>> imported_;
  std::vector<Range> ranges_;
  std::vector<std::vector<std::vector<std::uint64_t>>> peers_;
  std::vector<std::vector<std::uint64_t>> multicasts_;  ///< by local rank, then by arena
};

}  // namespace braid
