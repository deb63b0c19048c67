#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "braid/device.h"

namespace braid {

/// A tensor in global memory and the boxes that tensor copies take from it: the arguments of
/// cuTensorMapEncodeTiled. Dims are in its order, innermost first.
struct TensorMap {
  static constexpr std::size_t kMaxRank = 5;
  static constexpr std::size_t kBytes = 128;  ///< size of an encoded map
  static constexpr std::size_t kAlign = 64;

  /// Numbered as in `tensormap.replace.elemtype`.
  enum class Type : std::uint8_t {
    kU8 = 0,
    kU16 = 1,
    kU32 = 2,
    kS32 = 3,
    kU64 = 4,
    kS64 = 5,
    kF16 = 6,
    kF32 = 7,
    kF64 = 9,
    kBf16 = 10,
  };
  /// The span of bytes within which 16-byte pieces are permuted.
  enum class Swizzle : std::uint8_t { kNone, k32, k64, k128 };

  Type type = Type::kU8;
  Swizzle swizzle = Swizzle::kNone;
  bool nan_fill = false;  ///< elements outside the tensor read as NaN, else as 0
  std::uint32_t rank = 1;
  std::uint64_t address = 0;
  std::array<std::uint64_t, kMaxRank> dims{};
  std::array<std::uint64_t, kMaxRank - 1> strides{};  ///< in bytes, from the second dim on
  std::array<std::uint32_t, kMaxRank> box{};          ///< in elements, including skipped ones
  std::array<std::uint32_t, kMaxRank> steps{1, 1, 1, 1, 1};  ///< the first is ignored

  /// If not 0, the map is one of cuTensorMapEncodeIm2col: the dims are channels, width, [height,
  /// [depth,]] and images; a box has the first box[0] channels of that many pixels; and `lower` and
  /// `upper` bound the first pixel's position inside the dims.
  std::uint32_t pixels = 0;
  std::array<std::int32_t, kMaxRank - 2> lower{}, upper{};

  [[nodiscard]] std::size_t element_bytes() const;
  /// Copied elements of the box along a dim.
  [[nodiscard]] std::uint32_t extent(std::size_t dim) const {
    return dim == 0 ? box[0] : (box[dim] + steps[dim] - 1) / steps[dim];
  }
  [[nodiscard]] std::uint64_t box_bytes() const;
  /// Bytes from the address to the end of the last element.
  [[nodiscard]] std::uint64_t tensor_bytes() const;

  /// The first violation of the rules of cuTensorMapEncodeTiled, if any.
  [[nodiscard]] std::optional<std::string> problem() const;

  /// The encoding that the `cpu` device reads. For GPUs only the driver knows the layout.
  [[nodiscard]] std::array<std::byte, kBytes> encoded() const;
  static TensorMap decode(const void* bytes);

  /// Of a matrix.
  static TensorMap of(const MatrixMap& matrix);

  static std::string_view name_of(Swizzle swizzle);  ///< "none", "128B"
};

}  // namespace braid
