#pragma once

#include <xmmintrin.h>

#include <array>
#include <cfenv>
#include <cstdint>

#include "ir/non_copyable.h"

namespace braid::cpu {

/// Sets the host's rounding mode (rn, rz, rm, rp) while it exists. Arithmetic between a load and a
/// store within it stays there, since no memory access moves past the calls that set the mode.
class RoundingScope : NonCopyable {
 public:
  explicit RoundingScope(std::uint32_t mode) : saved_(std::fegetround()) {
    constexpr std::array<int, 4> kModes = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[mode & 3]);
  }
  ~RoundingScope() { std::fesetround(saved_); }

 private:
  int saved_;
};

/// While one exists, the calling thread computes as kernels do, whatever its program or library
/// set: round to nearest, with subnormals, without exceptions. (A new thread inherits the settings
/// of its creator.)
class FloatDefaults : NonCopyable {
 public:
  FloatDefaults() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FloatDefaults() { _mm_setcsr(saved_); }

 private:
  static constexpr unsigned kDefault = 0x1f80;  // all exceptions masked
  unsigned saved_;
};

}  // namespace braid::cpu
