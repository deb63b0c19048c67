#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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

/// One of 1, 2 or 4 loads of shared memory that ptxas makes one of, where the first lies so that
/// that one is aligned.
struct JoinedLoad {
  std::uint8_t parts : 4 = 1, part : 4 = 0;
};

/// What one access takes as a GPU gets it: the first of joined loads is all of them, the others are
/// nothing. A phase has twice as many lanes, where all lanes l and l ^ 1, or all l and l ^ 2, that
/// take part are at one place (NVIDIA on its forum, of bank conflicts of 128-bit loads; a phase
/// returns 128 bytes). `cost`: what shared_cost() says of it.
struct IssuedCost {
  std::uint32_t requests = 0, wavefronts = 0;
};
[[nodiscard]] IssuedCost issued_cost(const SharedCost& cost, const std::uint64_t* addresses,
                                     std::uint32_t mask, std::uint32_t bytes, JoinedLoad joined);

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
  /// How many different ones. They ascend from then on.
  [[nodiscard]] std::uint64_t count();
  /// Those counted.
  [[nodiscard]] std::span<const std::uint64_t> all() const { return {sectors_.data(), size_}; }
  /// Lines of 128 bytes of those counted.
  [[nodiscard]] std::uint64_t lines() const;

 private:
  std::array<std::uint64_t, 64> sectors_;  // NOLINT: only the first `size_` count
  std::size_t size_ = 0;
  bool ascending_ = true;
};

}  // namespace braid::cpu
