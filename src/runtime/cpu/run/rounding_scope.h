#pragma once

#include <array>
#include <cfenv>
#include <cstdint>

namespace braid::cpu {

/// Sets the host's rounding mode (rn, rz, rm, rp) while it lives. Arithmetic between a load and a
/// store within it stays there: no access to memory moves past the calls that set the mode.
class RoundingScope {
 public:
  explicit RoundingScope(std::uint32_t mode) : saved_(std::fegetround()) {
    constexpr std::array<int, 4> kModes = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[mode & 3]);
  }
  ~RoundingScope() { std::fesetround(saved_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  int saved_;
};

}  // namespace braid::cpu
