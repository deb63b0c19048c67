#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

namespace braid::cpu {

/// For each rank of a multicast range, where the lanes of an access are in its memory.
using MulticastPlaces = std::vector<std::array<std::uint64_t, 32>>;

/// The multicast ranges of a device: addresses that nobody can load from or store to, each of which
/// stands for memory of several ranks. Thread safe.
class MulticastTable {
 public:
  /// A range of addresses, for memory of these ranks.
  void add(std::uint64_t address, std::size_t bytes, std::vector<int> ranks);
  void remove(std::uint64_t address);
  /// Makes `bytes` bytes of memory the rank's part, from byte `offset` of the range on. Throws
  /// kInvalidArgument where they do not fit, or another one is there.
  void bind(std::uint64_t range, std::size_t offset, int rank, std::uint64_t memory,
            std::size_t bytes);
  /// The memory is no part of any range any more.
  void unbind(std::uint64_t memory);

  /// Fills `places` for accesses of `bytes` bytes, at multiples of `align`, by the lanes of `mask`,
  /// in the order of the ranks. Returns what is wrong with the first that cannot be, and of what
  /// kind that is (Finding::kind); else no message.
  struct Refusal {
    const char* kind = "bounds";
    std::string message;
  };
  Refusal find(const std::uint64_t* addresses, std::uint32_t mask, std::size_t bytes,
               std::size_t align, MulticastPlaces& places) const;

 private:
  struct Part {
    std::size_t bytes;
    std::uint64_t memory;
  };
  struct Range {
    std::size_t bytes;
    std::vector<int> ranks;
    std::vector<std::map<std::size_t, Part>> parts;  ///< of each rank, by their offset
  };
  static std::uint64_t place(const Range& range, std::size_t rank, std::size_t offset,
                             std::size_t bytes);

  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace braid::cpu
