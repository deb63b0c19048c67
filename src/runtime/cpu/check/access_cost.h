#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid::cpu {

/// What one access of a warp to shared memory takes, by the rules of braid/counts.h.
struct SharedCost {
  std::uint32_t wavefronts = 0;
  std::uint32_t conflicts = 0;  ///< wavefronts above one in each phase
  bool operator==(const SharedCost&) const = default;
};

/// Of the lanes of `mask`, `bytes` (a power of two) each. Addresses that all move by a multiple of
/// 4 cost the same: the banks only change their names.
[[nodiscard]] SharedCost shared_cost(const std::uint64_t* addresses, std::uint32_t mask,
                                     std::uint32_t bytes);

/// The sectors of global memory that the lanes of one access touch.
class SectorSet {
 public:
  static constexpr std::uint64_t kBytes = 32;

  /// Up to 32 bytes of one lane. Cheap where lanes ascend.
  void add(std::uint64_t address, std::uint32_t bytes) {
    for (std::uint64_t sector = address / kBytes; sector <= (address + bytes - 1) / kBytes;
         ++sector) {
      if (size_ != 0 && sectors_[size_ - 1] == sector) continue;
      ascending_ = ascending_ && (size_ == 0 || sectors_[size_ - 1] < sector);
      sectors_[size_++] = sector;
    }
  }
  /// How many different ones.
  [[nodiscard]] std::uint64_t count();

 private:
  std::array<std::uint64_t, 64> sectors_;  // NOLINT: only the first `size_` count
  std::size_t size_ = 0;
  bool ascending_ = true;
};

}  // namespace braid::cpu
