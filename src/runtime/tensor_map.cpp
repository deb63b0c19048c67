#include "runtime/tensor_map.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>

#include "ir/fail.h"

namespace braid {
namespace {

/// The memory layout of a map. All zeros is a map for `tensormap.replace` to fill in.
struct Encoded {
  std::uint64_t address;
  std::array<std::uint64_t, TensorMap::kMaxRank> dims;
  std::array<std::uint64_t, TensorMap::kMaxRank - 1> strides;
  std::array<std::uint16_t, TensorMap::kMaxRank> box;
  std::uint16_t pixels;
  std::array<std::int16_t, TensorMap::kMaxRank - 2> lower, upper;
  std::array<std::uint8_t, TensorMap::kMaxRank> steps;
  std::uint8_t type, swizzle, nan_fill, last_dim;
  std::array<std::byte, 15> unused;
};
static_assert(sizeof(Encoded) == TensorMap::kBytes);

template <class To, class From>
void copy_numbers(To& to, const From& from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<typename To::value_type>(from[i]);
  }
}

bool is_float(TensorMap::Type type) {
  using Type = TensorMap::Type;
  return type == Type::kF16 || type == Type::kF32 || type == Type::kF64 || type == Type::kBf16;
}

/// The problem with a dim and its properties.
std::optional<std::string> problem_of_dim(const TensorMap& map, std::size_t d) {
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 32;
  constexpr std::uint64_t kStrideEnd = std::uint64_t{1} << 40;
  if (map.dims[d] < 1 || map.dims[d] > kMostElements) {
    return fmt::format("dim {} has {} elements; expected 1 to 2^32", d, map.dims[d]);
  }
  if ((d == 0 || map.pixels == 0) && (map.box[d] < 1 || map.box[d] > 256)) {
    return fmt::format("the box has {} elements along dim {}; expected 1 to 256", map.box[d], d);
  }
  if (d == 0) return {};
  if (map.strides[d - 1] % 16 != 0 || map.strides[d - 1] >= kStrideEnd) {
    return fmt::format(
        "dim {} has a stride of {} bytes; expected a multiple of 16 bytes below 2^40", d,
        map.strides[d - 1]);
  }
  if (map.steps[d] < 1 || map.steps[d] > 8) {
    return fmt::format("dim {} has an element stride of {}; expected 1 to 8", d, map.steps[d]);
  }
  return {};
}

/// The problem with the pixels of an im2col map.
std::optional<std::string> problem_of_pixels(const TensorMap& map) {
  if (map.rank < 3) return fmt::format("columns of {} dims; expected 3 to 5", map.rank);
  if (map.pixels > 1024) {
    return fmt::format("a column has {} pixels; expected at most 1024", map.pixels);
  }
  constexpr std::array kMost = {32767, 127, 15};
  const int most = kMost[map.rank - 3];
  for (std::size_t a = 0; a < map.rank - 2; ++a) {
    for (const int corner : {map.lower[a], map.upper[a]}) {
      if (corner < -most - 1 || corner > most) {
        return fmt::format("a corner is {} along dim {}; expected {} to {}", corner, a + 1,
                           -most - 1, most);
      }
    }
    if (static_cast<std::int64_t>(map.dims[a + 1]) + map.upper[a] <= map.lower[a]) {
      return fmt::format("no pixel of dim {} is between the corners", a + 1);
    }
  }
  return {};
}

TensorMap::Type type_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return TensorMap::Type::kF16;
    case DType::kBF16:
      return TensorMap::Type::kBf16;
    case DType::kF32:
      return TensorMap::Type::kF32;
    default:
      break;
  }
  if (dtype_size(dtype) == 1) return TensorMap::Type::kU8;
  throw_invalid("tensor map", "of {}; expected f16, bf16, f32 or elements of a byte",
                dtype_name(dtype));
}

}  // namespace

std::size_t TensorMap::element_bytes() const {
  constexpr std::uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 0, 8, 2};  // by Type
  const auto number = static_cast<std::size_t>(type);
  return number < std::size(kBytes) ? kBytes[number] : 0;
}

std::uint64_t TensorMap::box_bytes() const {
  std::uint64_t bytes = element_bytes();
  if (pixels != 0) return bytes * box[0] * pixels;
  for (std::size_t d = 0; d < rank; ++d) bytes *= extent(d);
  return bytes;
}

std::uint64_t TensorMap::tensor_bytes() const {
  std::uint64_t bytes = dims[0] * element_bytes();
  for (std::size_t d = 1; d < rank; ++d) {
    std::uint64_t more = 0;
    if (__builtin_mul_overflow(dims[d] - 1, strides[d - 1], &more) ||
        __builtin_add_overflow(bytes, more, &bytes)) {
      return UINT64_MAX;
    }
  }
  return bytes;
}

std::optional<std::string> TensorMap::problem() const {
  if (rank < 1 || rank > kMaxRank) return fmt::format("it has {} dims; expected 1 to 5", rank);
  if (element_bytes() == 0) return "its element type is not supported";
  if (swizzle > Swizzle::k128) return "its swizzle is not supported";
  if (address % 16 != 0) {
    return fmt::format("the tensor is at {:#x}; expected a multiple of 16 bytes", address);
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (auto wrong = problem_of_dim(*this, d)) return wrong;
  }
  const std::uint64_t row = box[0] * element_bytes();
  if (row % 16 != 0) {
    return fmt::format("a row of the box has {} bytes; expected a multiple of 16", row);
  }
  const std::uint64_t span =
      swizzle == Swizzle::kNone ? row : 16U << static_cast<unsigned>(swizzle);
  if (row > span) {
    return fmt::format("a row of the box has {} bytes; expected at most {}, the swizzle's span",
                       row, span);
  }
  if (pixels != 0) {
    if (auto wrong = problem_of_pixels(*this)) return wrong;
  }
  if (nan_fill && !is_float(type)) return "only floats can be filled with NaN";
  return {};
}

TensorMap TensorMap::of(const MatrixMap& matrix) {
  constexpr std::uint32_t kRowBytes = 128;
  const auto element = static_cast<std::uint32_t>(dtype_size(matrix.dtype));
  TensorMap map{.type = type_of(matrix.dtype), .swizzle = Swizzle::k128, .rank = 2};
  map.address = matrix.address;
  map.dims = {matrix.columns, matrix.rows};
  map.strides = {(matrix.row_stride == 0 ? matrix.columns : matrix.row_stride) * element};
  map.box = {kRowBytes / element, matrix.box_rows};
  for (const auto& [extent, stride] : matrix.outer) {
    if (map.rank == kMaxRank) throw_invalid("tensor map", "it has over {} dims", kMaxRank);
    map.dims[map.rank] = extent;
    map.strides[map.rank - 1] = stride * element;
    map.box[map.rank++] = 1;
  }
  if (auto wrong = map.problem()) throw_invalid("tensor map", *wrong);
  return map;
}

std::array<std::byte, TensorMap::kBytes> TensorMap::encoded() const {
  Encoded map{};
  map.address = address;
  map.dims = dims;
  map.strides = strides;
  copy_numbers(map.box, box);
  map.pixels = static_cast<std::uint16_t>(pixels);
  copy_numbers(map.lower, lower);
  copy_numbers(map.upper, upper);
  copy_numbers(map.steps, steps);
  map.type = static_cast<std::uint8_t>(type);
  map.swizzle = static_cast<std::uint8_t>(swizzle);
  map.nan_fill = nan_fill ? 1 : 0;
  map.last_dim = static_cast<std::uint8_t>(rank - 1);
  std::array<std::byte, kBytes> bytes;
  std::memcpy(bytes.data(), &map, sizeof(map));
  return bytes;
}

TensorMap TensorMap::decode(const void* bytes) {
  Encoded map;
  std::memcpy(&map, bytes, sizeof(map));
  TensorMap result;
  result.address = map.address;
  result.dims = map.dims;
  result.strides = map.strides;
  copy_numbers(result.box, map.box);
  result.pixels = map.pixels;
  copy_numbers(result.lower, map.lower);
  copy_numbers(result.upper, map.upper);
  copy_numbers(result.steps, map.steps);
  result.type = static_cast<Type>(map.type);
  result.swizzle = static_cast<Swizzle>(map.swizzle);
  result.nan_fill = map.nan_fill != 0;
  result.rank = map.last_dim + 1U;
  return result;
}

std::string_view TensorMap::name_of(Swizzle swizzle) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "32B", "64B", "128B"};
  return kNames[static_cast<std::size_t>(swizzle)];
}

}  // namespace braid
