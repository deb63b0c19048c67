#pragma once

#include <cstdint>

namespace braid::cpu {

/// A matrix in shared memory, as a 64-bit descriptor defines it, for as many rows of A or columns
/// of B as a product has. It consists of blocks of 8 x 16 bytes: 8 rows of A or columns of B by 16
/// bytes of k; in a transposed matrix 8 of k by 16 bytes of rows or columns. Rows of a block are 16
/// bytes apart, or as far as the swizzle is wide, with other blocks in between.
class SharedMatrix {
 public:
  static constexpr std::uint64_t kWgmmaFields = 0xc00e3fff3fff3fff;  ///< all other fields are zero
  static constexpr std::uint64_t kTensorFields = 0xe00e3fff3fff3fff;
  static constexpr std::uint64_t kTensorVersion = std::uint64_t{1} << 46;

  static SharedMatrix of_wgmma(std::uint64_t descriptor, bool exchanged) {
    constexpr std::uint32_t kWidths[] = {16, 128, 64, 32};
    return {descriptor, exchanged, kWidths[descriptor >> 62U]};
  }
  /// Of tcgen05. A mode that is not there has width 0.
  static SharedMatrix of_tensor(std::uint64_t descriptor, bool exchanged) {
    constexpr std::uint32_t kWidths[] = {16, 0, 128, 0, 64, 0, 32, 0};
    return {descriptor, exchanged, kWidths[descriptor >> 61U]};
  }
  [[nodiscard]] std::uint32_t width() const { return width_; }
  /// The start of row `row` of a block in shared memory; `mn` selects 8 rows of A or columns of B
  /// (in a transposed matrix 16 bytes of them), `part` 16 bytes of k (8 of k).
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
  SharedMatrix(std::uint64_t descriptor, bool exchanged, std::uint32_t width)
      : start_(field(descriptor, 0)),
        leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)),
        base_(static_cast<std::uint32_t>(descriptor >> 49U & 7U)),
        width_(width),
        exchanged_(exchanged) {}
  static std::uint32_t field(std::uint64_t descriptor, unsigned from) {
    return static_cast<std::uint32_t>(descriptor >> from & 0x3fffU) << 4U;
  }

  std::uint32_t start_, leading_, stride_, base_;
  std::uint32_t width_;  ///< bytes in which blocks are adjacent
  bool exchanged_;
};

}  // namespace braid::cpu
