#pragma once

#include <bit>
#include <cstdint>

namespace braid::cpu {

/// What helper "mbarrier" does.
struct MbarrierCode {
  enum What : std::uint8_t { kInit, kInval, kArrive, kDrop, kExpect, kComplete, kTest };
  What what : 3 = kArrive;
  bool expects : 1 = false;      ///< an arrival that expects bytes first
  bool keeps_phase : 1 = false;  ///< .noComplete
  bool parity : 1 = false;       ///< a test by the phase's parity
  bool orders : 1 = false;       ///< an arrival that releases, a test that acquires
  bool wide : 1 = false;         ///< .. for all of the cluster
};

/// The 64 bits of an mbarrier object, whose layout the PTX manual leaves open. The low word changes
/// with everything that a waiting thread may wait for.
struct Mbarrier {
  static constexpr std::uint32_t kMaxCount = (1U << 20U) - 1;

  std::uint64_t pending : 20 = 0;
  std::uint64_t parity : 1 = 0;  ///< of the phase that is not complete
  std::uint64_t valid : 1 = 0;
  std::uint64_t expected : 20 = 0;
  std::int64_t bytes : 22 = 0;  ///< the tx-count

  static Mbarrier unpack(std::uint64_t word) { return std::bit_cast<Mbarrier>(word); }
  [[nodiscard]] std::uint64_t pack() const { return std::bit_cast<std::uint64_t>(*this); }

  // Each function returns an error text, or null.
  const char* init(std::uint32_t count) {
    if (count == 0 || count > kMaxCount) return "an mbarrier counts 1 to 1048575 arrivals";
    *this = {.pending = count, .valid = 1, .expected = count};
    return nullptr;
  }
  const char* expect(std::int64_t more) {
    const std::int64_t sum = bytes + more;
    const auto most = static_cast<std::int64_t>(kMaxCount);
    if (sum < -most || sum > most) return "the tx-count of an mbarrier leaves its range";
    bytes = sum;
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
    parity = parity ^ 1U;
    pending = expected;
  }
};

}  // namespace braid::cpu
