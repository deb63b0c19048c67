#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::cpu {

/// The cost of a warp's access to shared memory, by the rules of braid/counts.h.
struct SharedCost {
  std::uint32_t wavefronts = 0;
  std::uint32_t conflicts = 0;  ///< wavefronts beyond the first of each phase
  bool operator==(const SharedCost&) const = default;
};

/// The cost for the lanes of `mask`, each accessing `bytes` (a power of two). Adding a multiple of
/// 4 to all addresses does not change it: that only permutes the banks.
[[nodiscard]] SharedCost shared_cost(const std::uint64_t* addresses, std::uint32_t mask,
                                     std::uint32_t bytes);

/// A load that is one of 1, 2 or 4 shared-memory loads which ptxas merges, if the first is aligned
/// for the merged load.
struct JoinedLoad {
  std::uint8_t parts : 4 = 1, part : 4 = 0;
};

/// The cost of an access as a GPU issues it: the first of merged loads has the whole cost, the
/// others none. A phase has twice as many lanes where all participating lanes l and l ^ 1, or all l
/// and l ^ 2, access the same place (NVIDIA's forum, about bank conflicts of 128-bit loads; a phase
/// returns 128 bytes). `cost` is the result of shared_cost().
struct IssuedCost {
  std::uint32_t requests = 0, wavefronts = 0;
};
[[nodiscard]] IssuedCost issued_cost(const SharedCost& cost, const std::uint64_t* addresses,
                                     std::uint32_t mask, std::uint32_t bytes, JoinedLoad joined);

/// The sectors of global memory touched by the lanes of one access.
class SectorSet {
 public:
  static constexpr std::uint64_t kBytes = 32;

  /// Adds up to 32 bytes of one lane. Fast if lanes ascend.
  void add(std::uint64_t address, std::uint32_t bytes) {
    for (std::uint64_t sector = address / kBytes; sector <= (address + bytes - 1) / kBytes;
         ++sector) {
      if (size_ != 0 && sectors_[size_ - 1] == sector) continue;
      ascending_ = ascending_ && (size_ == 0 || sectors_[size_ - 1] < sector);
      sectors_[size_++] = sector;
    }
  }
  /// The number of different sectors; sorts them.
  [[nodiscard]] std::uint64_t count();
  /// The sectors, after count().
  [[nodiscard]] std::span<const std::uint64_t> all() const { return {sectors_.data(), size_}; }
  /// The number of different 128-byte lines among the counted sectors.
  [[nodiscard]] std::uint64_t lines() const;

 private:
  std::array<std::uint64_t, 64> sectors_;  // NOLINT: only the first `size_` count
  std::size_t size_ = 0;
  bool ascending_ = true;
};

}  // namespace braid::cpu
