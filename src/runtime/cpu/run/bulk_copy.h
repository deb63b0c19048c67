#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/tensor_map.h"

// Bulk copies between global and shared memory, and the boxes of tensors that they move.

namespace braid::cpu {

/// The line index of a bulk copy that is not counted.
inline constexpr std::uint32_t kNotCounted = ~0U;

/// Tiles are located by address, and swizzles repeat every 1024 bytes.
inline constexpr std::uint32_t kTileAlign = 1024;

/// What helper "copy_bulk" does.
struct BulkCode {
  /// kAnswer: the answer of clusterlaunchcontrol, which arrives like a load.
  enum What : std::uint8_t { kLoad, kCluster, kStore, kAnswer };
  /// For a tensor: a box, four rows, or a column of pixels.
  enum Part : std::uint8_t { kTile, kRows, kColumn };
  What what : 2 = kLoad;
  bool reduces : 1 = false;
  bool multicast : 1 = false;
  std::uint8_t rank : 4 = 0;         ///< dims of the tensor; 0 for a stretch of bytes
  AtomicOp op : 4 = AtomicOp::kAdd;  ///< of a reduction
  bool masked : 1 = false;           ///< writes some bytes of each 16
  bool everywhere : 1 = false;       ///< stores to a multicast address
  Part part : 2 = kTile;
  AtomicKind kind = AtomicKind::kUnsigned;  ///< .. of stretches; for tensors the map says it
  std::uint8_t bits = 0;
};

/// Operands of a warp's bulk copies, by lane, as stored in scratch memory.
struct BulkOperands {
  std::uint64_t to[32], from[32];  ///< for tensors one is the map's address
  std::uint64_t barriers[32];
  std::uint32_t sizes[32];
  std::uint32_t blocks[32];  ///< cluster blocks, a bit each; for a masked store the bytes
  std::int32_t coordinates[TensorMap::kMaxRank][32];
  std::int32_t offsets[TensorMap::kMaxRank - 2][32];  ///< for a column's pixels
};

/// The fields of the tensormap.replace instruction, in the order of its table entry.
enum class TensorMapField : std::uint8_t {
  kAddress,
  kRank,
  kBox,
  kDim,
  kStride,
  kStep,
  kType,
  kInterleave,
  kSwizzle,
  kFill,
  kAtomicity
};

/// Contiguous bytes in shared memory, and in global memory where they are in the tensor.
struct BulkRow {
  std::uint64_t global = 0;  ///< address of the first
  std::uint32_t offset = 0;  ///< in shared memory
  std::uint32_t bytes = 0;
  std::uint32_t first = 0, last = 0;  ///< [first, last) is inside the tensor
};

/// The row at these coordinates; `at` has all but the first.
inline BulkRow row_of(const TensorMap& map, std::int32_t first,
                      const std::array<std::int64_t, TensorMap::kMaxRank>& at) {
  const std::uint64_t size = map.element_bytes();
  BulkRow row;
  row.bytes = static_cast<std::uint32_t>(map.box[0] * size);
  row.global = map.address + static_cast<std::uint64_t>(std::int64_t{first}) * size;
  bool in_tensor = true;
  for (std::size_t d = 1; d < map.rank; ++d) {
    row.global += static_cast<std::uint64_t>(at[d]) * map.strides[d - 1];
    in_tensor = in_tensor && at[d] >= 0 && static_cast<std::uint64_t>(at[d]) < map.dims[d];
  }
  if (!in_tensor) return row;
  const auto inside = [&](std::int64_t element) {
    return static_cast<std::uint32_t>(
        std::min<std::int64_t>(std::max<std::int64_t>(element - first, 0), map.box[0]) *
        static_cast<std::int64_t>(size));
  };
  row.first = inside(0);
  row.last = inside(static_cast<std::int64_t>(map.dims[0]));
  return row;
}

/// Calls visit(row) for the rows of a tensor's box at these coordinates.
template <class Visit>
void for_each_row(const TensorMap& map, const std::int32_t* coordinates, const Visit& visit) {
  std::array<std::uint32_t, TensorMap::kMaxRank> at{};
  std::array<std::int64_t, TensorMap::kMaxRank> place{};
  std::uint32_t offset = 0;
  for (bool more = true; more;) {
    for (std::size_t d = 1; d < map.rank; ++d) {
      place[d] = std::int64_t{coordinates[d]} + std::int64_t{at[d]} * std::int64_t{map.steps[d]};
    }
    BulkRow row = row_of(map, coordinates[0], place);
    row.offset = offset;
    offset += row.bytes;
    visit(std::as_const(row));
    more = false;
    for (std::size_t d = 1; d < map.rank && !more; ++d) {
      more = ++at[d] < map.extent(d);
      if (!more) at[d] = 0;
    }
  }
}

/// The same for four rows of a matrix, from column coordinates[0] on.
template <class Visit>
void for_each_gathered_row(const TensorMap& map, const std::int32_t* coordinates,
                           const Visit& visit) {
  std::uint32_t offset = 0;
  for (std::size_t k = 1; k <= 4; ++k) {
    BulkRow row = row_of(map, coordinates[0], {0, coordinates[k]});
    row.offset = offset;
    offset += row.bytes;
    visit(std::as_const(row));
  }
}

/// The same for the pixels of a column, which starts at these coordinates and continues along
/// width, height, depth and images. `offsets` lead from there to the copied pixels.
template <class Visit>
void for_each_pixel(const TensorMap& map, const std::int32_t* coordinates,
                    const std::int32_t* offsets, const Visit& visit) {
  const std::size_t images = map.rank - 1;
  std::array<std::int64_t, TensorMap::kMaxRank> at{};
  for (std::size_t d = 1; d < map.rank; ++d) at[d] = coordinates[d];
  for (std::uint32_t pixel = 0; pixel < map.pixels; ++pixel) {
    std::array<std::int64_t, TensorMap::kMaxRank> place = at;
    for (std::size_t d = 1; d < images; ++d) place[d] += offsets[d - 1];
    BulkRow row = row_of(map, coordinates[0], place);
    row.offset = pixel * row.bytes;
    visit(std::as_const(row));
    std::size_t d = 1;
    for (; d < images; ++d) {
      at[d] += map.steps[d];
      if (at[d] < static_cast<std::int64_t>(map.dims[d]) + map.upper[d - 1]) break;
      at[d] = map.lower[d - 1];
    }
    if (d == images) ++at[images];
  }
}

/// The swizzled address of a byte of a box in a block's memory: the index of its 16-byte piece is
/// XORed with bits of its 128-byte line's index.
inline std::uint32_t swizzled(std::uint32_t address, TensorMap::Swizzle swizzle) {
  const std::uint32_t flips = (1U << static_cast<unsigned>(swizzle)) - 1;
  return address ^ (address >> 7U & flips) << 4U;
}

}  // namespace braid::cpu
