#pragma once

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cpu/check/vector_clock.h"

namespace braid::cpu {

/// An access remembered for a stretch of bytes, by consecutive lanes of a warp.
struct Access {
  Epoch when;
  std::uint32_t line = 0;       ///< PTX line; 0 for the host
  std::uint16_t kernel = 0;     ///< index of the kernel's name
  std::uint8_t lane = 0;        ///< lane that accessed the first byte
  std::uint8_t scope : 2 = 0;   ///< of a strong access: 1 cta, 2 gpu, 3 sys; 0 for a weak one
  std::uint8_t width : 4 = 15;  ///< each lane accessed 2^width bytes
  bool copied : 1 = false;      ///< by cp.async
  bool by_several : 1 = false;  ///< other lanes accessed these bytes, too

  /// The lanes that accessed the first `bytes` bytes.
  [[nodiscard]] std::uint32_t lanes(std::size_t bytes) const {
    const std::size_t count = (bytes + (std::size_t{1} << width) - 1) >> width;
    if (by_several || lane + count >= 32) return ~0U << (by_several ? 0 : lane);
    return ((1U << count) - 1) << lane;
  }
  /// The same access for the bytes from `distance` on.
  [[nodiscard]] Access after(std::size_t distance) const {
    Access access = *this;
    access.lane = static_cast<std::uint8_t>(lane + (distance >> width));
    return access;
  }
};

/// The history of bytes: their last write, and earlier accesses that it does not supersede. Those
/// are unordered reads since then, and weak accesses before a strong write: another strong access
/// may race with them, but not with that write.
struct Cell {
  struct Other {
    Access access;
    bool writes = false;
    bool same = false;  ///< it wrote the same value as `write`, unordered
  };
  /// As many as there mostly are have room in the cell.
  using Others = boost::container::small_vector<Other, 4>;
  Access write;
  Others others;
  bool initialized = false;
  std::uint32_t async = 0;  ///< number of the cp.async group that writes it, until waited for

  [[nodiscard]] bool any_same() const {
    return std::ranges::any_of(others, [](const Other& other) { return other.same; });
  }
  /// Keeps an access; it is dropped if there are `most`.
  void keep(const Other& other, std::size_t most) {
    if (others.size() < most) others.push_back(other);
  }
  /// Sets the last write. A strong write does not supersede earlier weak accesses, and a write of
  /// the `same` value does not supersede unordered writes.
  void replace_write(const Access& access, bool same, std::size_t most) {
    const Access before = std::exchange(write, access);
    const Others kept = std::exchange(others, {});
    const bool strong = access.scope != 0;
    if (!strong && !same) return;
    for (const Other& other : kept) {
      const bool stays_same = same && other.same;
      if (stays_same || (strong && other.access.scope == 0)) {
        keep({other.access, other.writes, stays_same}, most);
      }
    }
    if (before.when.time != 0 && (same || before.scope == 0)) keep({before, true, same}, most);
  }
  /// The same for the bytes from `distance` on.
  [[nodiscard]] Cell after(std::size_t distance) const {
    Cell cell = *this;
    cell.write = write.after(distance);
    for (Other& other : cell.others) other.access = other.access.after(distance);
    return cell;
  }
};

/// The shadow of a range of memory: one cell per 512 bytes, the most that a warp accesses at a
/// time, and smaller cells where an access touched a part. Cells begin where the memory begins,
/// since rows of a tensor do.
class Shadow {
 public:
  Shadow(std::uint64_t address, std::size_t bytes, bool initialized)
      : start_(address / kWidest * kWidest),
        rows_((address + bytes - start_ + kSizes[0] - 1) / kSizes[0]) {
    for (Node& row : rows_) row.cell.initialized = initialized;
  }

  /// Calls visit(cell, address of its first byte, its bytes) for cells that make up [address,
  /// address + bytes), in order.
  template <class Visit>
  void visit(std::uint64_t address, std::size_t bytes, const Visit& visit) {
    const std::uint64_t end = address + bytes;
    for (std::size_t r = (address - start_) / kSizes[0]; r < rows_.size(); ++r) {
      const std::uint64_t row = start_ + r * kSizes[0];
      if (row >= end) return;
      visit_part<0>(rows_[r], row, address, end, visit);
    }
  }

 private:
  static constexpr std::array<std::size_t, 5> kSizes = {512, 64, 16, 4, 1};
  static constexpr std::size_t kWidest = 16;  ///< access of a lane, which a cell never cuts
  struct Node {
    Cell cell;
    std::unique_ptr<Node[]> parts;  ///< cells of the next smaller size; if set, this cell is unused
  };

  template <std::size_t Level, class Visit>
  static void visit_part(Node& node, std::uint64_t start, std::uint64_t from, std::uint64_t to,
                         const Visit& visit) {
    if (node.parts == nullptr && from <= start && start + kSizes[Level] <= to) {
      visit(node.cell, start, kSizes[Level]);
      return;
    }
    if constexpr (Level + 1 < kSizes.size()) {
      constexpr std::size_t kPart = kSizes[Level + 1];
      if (node.parts == nullptr) {
        node.parts = std::make_unique<Node[]>(kSizes[Level] / kPart);
        for (std::size_t p = 0; p < kSizes[Level] / kPart; ++p) {
          node.parts[p].cell = node.cell.after(p * kPart);
        }
      }
      const std::uint64_t end = std::min(to, start + kSizes[Level]);
      for (std::size_t p = from <= start ? 0 : (from - start) / kPart; start + p * kPart < end;
           ++p) {
        visit_part<Level + 1>(node.parts[p], start + p * kPart, from, end, visit);
      }
    }
  }

  std::uint64_t start_;
  std::vector<Node> rows_;
};

}  // namespace braid::cpu
