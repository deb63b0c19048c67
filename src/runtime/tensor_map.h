#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// A tensor in global memory and the boxes that tensor copies cut out of it: what
/// cuTensorMapEncodeTiled takes. Dims are in the order of that function, the innermost first.
struct TensorMap {
  static constexpr std::size_t kMaxRank = 5;
  static constexpr std::size_t kBytes = 128;  ///< of an encoded map
  static constexpr std::size_t kAlign = 64;

  /// Numbered as `tensormap.replace.elemtype` has them.
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
  /// The span of bytes within which pieces of 16 change places.
  enum class Swizzle : std::uint8_t { kNone, k32, k64, k128 };

  Type type = Type::kU8;
  Swizzle swizzle = Swizzle::kNone;
  bool nan_fill = false;  ///< elements outside of the tensor are read as NaN, else as 0
  std::uint32_t rank = 1;
  std::uint64_t address = 0;
  std::array<std::uint64_t, kMaxRank> dims{};
  std::array<std::uint64_t, kMaxRank - 1> strides{};  ///< bytes, from the second dim on
  std::array<std::uint32_t, kMaxRank> box{};          ///< elements, those that are skipped included
  std::array<std::uint32_t, kMaxRank> steps{1, 1, 1, 1, 1};  ///< the first is not looked at

  /// Pixels of a column, and then the map is one of cuTensorMapEncodeIm2col: the dims are channels,
  /// width, [height, [depth,]] and images, a box is the first box[0] channels of so many pixels,
  /// and the first of these are inside of the dims by `lower` and `upper`.
  std::uint32_t pixels = 0;
  std::array<std::int32_t, kMaxRank - 2> lower{}, upper{};

  [[nodiscard]] std::size_t element_bytes() const;
  /// Elements of the box along a dim that are copied.
  [[nodiscard]] std::uint32_t extent(std::size_t dim) const {
    return dim == 0 ? box[0] : (box[dim] + steps[dim] - 1) / steps[dim];
  }
  [[nodiscard]] std::uint64_t box_bytes() const;
  /// Bytes from the address to the end of the last element.
  [[nodiscard]] std::uint64_t tensor_bytes() const;

  /// What is wrong with it, by the rules of cuTensorMapEncodeTiled.
  [[nodiscard]] std::optional<std::string> problem() const;

  /// As the `cpu` device reads it. On a GPU only the driver knows how these bytes are laid out.
  [[nodiscard]] std::array<std::byte, kBytes> encoded() const;
  static TensorMap decode(const void* bytes);

  static std::string_view name_of(Swizzle swizzle);  ///< "none", "128B"
};

}  // namespace braid
