#pragma once

#include <emmintrin.h>

#include <array>
#include <cstdint>
#include <utility>

#include "runtime/cpu/run/bulk_copy.h"
#include "runtime/cpu/run/shared_matrix.h"
#include "runtime/cpu/run/warp_helpers.h"

namespace braid::cpu {

/// Reads a matrix product's operand in shared memory block by block, and tells the warp's observers
/// of it. What is not in the block's shared memory is left out.
class MatrixReader {
 public:
  using Rows = __m128i[8];

  /// `shared`: the window that the descriptor's addresses are in. `place`: where the reads are
  /// counted, or kNotCounted.
  MatrixReader(Warp& warp, const std::uint8_t* shared, const SharedMatrix& matrix,
               AccessCode::Kind kind, std::uint32_t line, std::uint32_t place)
      : warp_(warp),
        matrix_(matrix),
        kind_(kind),
        line_(line),
        place_(place),
        checked_(warp.runner->sanitizer() != nullptr),
        shared_(shared),
        bytes_(warp.total_shared) {}

  /// Returns whether the block is there. `count`: of its rows, from the first on. `used`: bytes of
  /// a row that have elements.
  bool block(std::uint32_t mn, std::uint32_t part, Rows& rows, std::uint32_t count = 8,
             std::uint32_t used = 16) {
    for (std::uint32_t r = 0; r < count; ++r) {
      const std::uint32_t at = matrix_.row(mn, part, r);
      if (at + 16 > bytes_) {
        outside_ = at;
        return false;
      }
      rows[r] = _mm_load_si128(reinterpret_cast<const __m128i*>(shared_ + at));
    }
    if (checked_ || place_ != kNotCounted) tell(mn, part, count, used);
    return true;
  }
  /// An address that is outside, or 0.
  [[nodiscard]] std::uint32_t outside() const { return outside_; }

 private:
  void tell(std::uint32_t mn, std::uint32_t part, std::uint32_t count, std::uint32_t used) {
    std::array<std::uint64_t, 32> lanes{};
    for (std::uint32_t r = 0; r < count; ++r) {
      lanes[r] = reinterpret_cast<std::uint64_t>(shared_) + matrix_.row(mn, part, r);
      if (checked_) warp_.runner->check_async_access(warp_, lanes[r], used, kind_, line_);
    }
    if (place_ == kNotCounted || count != 8) return;
    warp_.runner->counter().matrix_rows(lanes.data(), !std::exchange(counted_, true), place_);
  }

  Warp& warp_;
  SharedMatrix matrix_;
  AccessCode::Kind kind_;
  std::uint32_t line_, place_;
  bool checked_;
  bool counted_ = false;
  const std::uint8_t* shared_;
  std::uint32_t bytes_;
  std::uint32_t outside_ = 0;
};

}  // namespace braid::cpu
