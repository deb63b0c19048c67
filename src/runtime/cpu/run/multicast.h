#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

namespace braid::cpu {

/// For each rank of a multicast range, the addresses of an access's lanes in its memory.
using MulticastPlaces = std::vector<std::array<std::uint64_t, 32>>;

/// The multicast ranges of a device: addresses that nobody can load from or store to, each standing
/// for memory of several ranks. Thread safe.
class MulticastTable {
 public:
  /// Adds a range for memory of these ranks.
  void add(std::uint64_t address, std::size_t bytes, std::vector<int> ranks);
  void remove(std::uint64_t address);
  /// Binds `bytes` bytes of memory as the rank's part, from byte `offset` of the range on. Throws
  /// kInvalidArgument if they do not fit, or overlap another part.
  void bind(std::uint64_t range, std::size_t offset, int rank, std::uint64_t memory,
            std::size_t bytes);
  /// Removes the memory from all ranges.
  void unbind(std::uint64_t memory);

  /// The result of filling `places` for accesses of `bytes` bytes, at multiples of `align`, by the
  /// lanes of `mask`, in rank order: the error of the first impossible access and its kind
  /// (Finding::kind); an empty message if there is none.
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
    std::vector<std::map<std::size_t, Part>> parts;  ///< for each rank, by offset
  };
  static std::uint64_t place(const Range& range, std::size_t rank, std::size_t offset,
                             std::size_t bytes);

  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace braid::cpu
