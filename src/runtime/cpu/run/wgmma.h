#pragma once

#include <cstdint>

namespace braid::cpu {

/// What helper "wgmma" does, beside the code of the products.
struct WgmmaCode {
  std::uint16_t columns : 11 = 8;   ///< of B and D
  bool a_in_registers : 1 = false;  ///< else by descriptor, as B is
  bool exchanged_a : 1 = false;     ///< columns of A lie together, not rows
  bool exchanged_b : 1 = false;     ///< rows of B lie together, not columns
  bool negated : 1 = false;         ///< the products
  bool bits : 1 = false;            ///< elements are single bits: products are their conjunctions
};

/// A matrix in shared memory, as its descriptor defines it: 32 bytes of k in two parts of 16 (64
/// bytes in four parts for a B with a sparse A), for as many rows of A or columns of B as the
/// product has. It consists of blocks of 8 x 16 bytes; in a transposed matrix a block is 8 of k by
/// 8 elements. Rows of a block are 16 bytes apart, or as far as the swizzle is wide, with other
/// blocks in between.
class WgmmaMatrix {
 public:
  static constexpr std::uint64_t kFields = 0xc00e3fff3fff3fff;  ///< all other fields are zero

  WgmmaMatrix(std::uint64_t descriptor, bool exchanged)
      : start_(field(descriptor, 0)),
        leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)),
        base_(static_cast<std::uint32_t>(descriptor >> 49U & 7U)),
        exchanged_(exchanged) {
    constexpr std::uint32_t kWidths[] = {16, 128, 64, 32};
    width_ = kWidths[descriptor >> 62U];
  }
  /// The start of row `row` of a block in shared memory; `mn` selects 8 rows of A or columns of B,
  /// `part` a part of k.
  [[nodiscard]] std::uint32_t row(std::uint32_t mn, std::uint32_t part, std::uint32_t row) const {
    const bool swizzled = width_ != 16;
    std::uint32_t at = start_ + row * width_;
    if (!exchanged_) {
      at += mn * stride_ + part * (swizzled ? 16 : leading_);
    } else if (!swizzled) {
      at += mn * stride_ + part * leading_;
    } else {
      const std::uint32_t across = width_ / 16;
      at += mn % across * 16 + mn / across * leading_ + part * stride_;
    }
    const std::uint32_t turn = ((at >> 7U) - base_) & (width_ / 16 - 1);
    return at ^ turn << 4U;
  }
  /// Whether the parts of a row would be in different rows of the swizzle.
  [[nodiscard]] bool leaves_its_rows(std::uint32_t parts) const {
    return !exchanged_ && width_ != 16 && start_ % width_ + 16 * parts > width_;
  }

 private:
  static std::uint32_t field(std::uint64_t descriptor, unsigned from) {
    return static_cast<std::uint32_t>(descriptor >> from & 0x3fffU) << 4U;
  }

  std::uint32_t start_, leading_, stride_, base_;
  std::uint32_t width_ = 16;  ///< bytes in which blocks are adjacent
  bool exchanged_;
};

}  // namespace braid::cpu
