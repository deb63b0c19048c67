#pragma once

#include <cstdint>

namespace braid::cpu {

/// What helper "mbarrier" does: one word.
struct MbarrierCode {
  enum What : std::uint8_t { kInit, kInval, kArrive, kDrop, kExpect, kComplete, kTest };
  What what = kArrive;
  bool expects = false;      ///< an arrival that expects bytes first
  bool keeps_phase = false;  ///< .noComplete
  bool parity = false;       ///< a test by the phase's parity
  bool orders = false;       ///< an arrival that releases, a test that acquires
  bool wide = false;         ///< .. for all of the cluster
  [[nodiscard]] std::uint32_t pack() const {
    return static_cast<std::uint32_t>(what) | (expects ? 8U : 0U) | (keeps_phase ? 16U : 0U) |
           (parity ? 32U : 0U) | (orders ? 64U : 0U) | (wide ? 128U : 0U);
  }
  static MbarrierCode unpack(std::uint32_t code) {
    return {static_cast<What>(code & 7U),
            (code & 8U) != 0,
            (code & 16U) != 0,
            (code & 32U) != 0,
            (code & 64U) != 0,
            (code & 128U) != 0};
  }
};

/// The 64 bits of an mbarrier object: the PTX manual leaves open how they are laid out. The low
/// word changes with whatever a waiting thread may wait for.
struct Mbarrier {
  static constexpr std::uint32_t kMaxCount = (1U << 20U) - 1;

  bool valid = false;
  bool parity = false;  ///< of the phase that is not complete
  std::uint32_t expected = 0;
  std::uint32_t pending = 0;
  std::int32_t bytes = 0;  ///< the tx-count

  static Mbarrier unpack(std::uint64_t word) {
    return {(word >> 21U & 1U) != 0, (word >> 20U & 1U) != 0,
            static_cast<std::uint32_t>(word >> 22U) & kMaxCount,
            static_cast<std::uint32_t>(word) & kMaxCount,
            static_cast<std::int32_t>(static_cast<std::int64_t>(word) >> 42)};
  }
  [[nodiscard]] std::uint64_t pack() const {
    return std::uint64_t{pending} | std::uint64_t{parity} << 20U | std::uint64_t{valid} << 21U |
           std::uint64_t{expected} << 22U | static_cast<std::uint64_t>(bytes) << 42U;
  }

  // Each gives what is wrong, or null.
  const char* init(std::uint32_t count) {
    if (count == 0 || count > kMaxCount) return "an mbarrier counts 1 to 1048575 arrivals";
    *this = {true, false, count, count, 0};
    return nullptr;
  }
  const char* expect(std::int64_t more) {
    const std::int64_t sum = bytes + more;
    const auto most = static_cast<std::int64_t>(kMaxCount);
    if (sum < -most || sum > most) return "the tx-count of an mbarrier leaves its range";
    bytes = static_cast<std::int32_t>(sum);
    return nullptr;
  }
  const char* complete(std::uint32_t done) {
    const char* wrong = expect(-static_cast<std::int64_t>(done));
    end_phase();
    return wrong;
  }
  const char* arrive(std::uint32_t count, bool keeps_phase) {
    if (count == 0 || count > pending) return "more arrivals than the mbarrier's phase expects";
    if (keeps_phase && count == pending && bytes == 0) {
      return "an arrival with .noComplete completes the mbarrier's phase";
    }
    pending -= count;
    end_phase();
    return nullptr;
  }
  const char* drop(std::uint32_t count, bool keeps_phase) {
    if (count > expected) return "more arrivals are dropped than the mbarrier expects";
    expected -= count;
    return arrive(count, keeps_phase);
  }

 private:
  void end_phase() {
    if (pending != 0 || bytes != 0) return;
    parity = !parity;
    pending = expected;
  }
};

}  // namespace braid::cpu
