#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cpu/vector_clock.h"

namespace braid::cpu {

/// One access that a byte remembers.
struct Access {
  Epoch when;
  std::uint32_t line = 0;    ///< of the PTX; 0 for the host
  std::uint16_t kernel = 0;  ///< index of its name
  std::uint8_t lane = 0;
  std::uint8_t scope = 0;  ///< of a strong access: 1 cta, 2 gpu, 3 sys; 0 for a weak one
};

/// What is known of a byte: its last write, and earlier accesses that it does not stand for. Those
/// are the reads since then that are not ordered, and weak accesses before a strong write: another
/// strong access may race with them, but not with that write.
struct Cell {
  static constexpr std::size_t kOthers = 4;
  Access write;
  std::array<Access, kOthers> others;  ///< the first `other_count` of them
  std::uint8_t other_count = 0;
  std::uint8_t other_writes = 0;  ///< bit i: others[i] is a write
  bool initialized = false;
  std::uint32_t async =
      0;  ///< number of the cp.async group that writes it, until that is waited for

  [[nodiscard]] bool is_write(std::size_t other) const { return (other_writes >> other & 1U) != 0; }
  /// What finds no room is forgotten.
  void keep(const Access& access, bool writes) {
    if (other_count == kOthers) return;
    if (writes) other_writes |= static_cast<std::uint8_t>(1U << other_count);
    others[other_count++] = access;
  }
  /// A new last write. A strong one does not stand for the weak accesses before it.
  void replace_write(const Access& access) {
    const Access before = std::exchange(write, access);
    const std::size_t count = std::exchange(other_count, std::uint8_t{0});
    const std::uint8_t written = std::exchange(other_writes, std::uint8_t{0});
    if (access.scope == 0) return;
    for (std::size_t o = 0; o < count; ++o) {
      if (others[o].scope == 0) keep(others[o], (written >> o & 1U) != 0);
    }
    if (before.scope == 0 && before.when.time != 0) keep(before, true);
  }
};

/// The shadow of one stretch of memory, in pieces of 16 bytes: one cell for all of a piece, until
/// an access touches a part of it.
class Shadow {
 public:
  explicit Shadow(std::size_t bytes) : pieces_((bytes + kPiece - 1) / kPiece) {}

  /// Calls visit(cell, offset of its first byte) for cells that cover [offset, offset + bytes).
  template <class Visit>
  void visit(std::size_t offset, std::size_t bytes, const Visit& visit) {
    const std::size_t end = offset + bytes;
    while (offset < end) {
      Piece& piece = pieces_[offset / kPiece];
      const std::size_t first = offset % kPiece;
      const std::size_t last = std::min(kPiece, first + (end - offset));
      if (piece.split == nullptr && last - first < kPiece) {
        piece.split = std::make_unique<std::array<Cell, kPiece>>();
        piece.split->fill(piece.whole);
      }
      if (piece.split == nullptr) {
        visit(piece.whole, offset);
      } else {
        for (std::size_t b = first; b < last; ++b) visit((*piece.split)[b], offset - first + b);
      }
      offset += last - first;
    }
  }
  /// Forgets everything.
  void reset() {
    for (Piece& piece : pieces_) piece = {};
  }

 private:
  static constexpr std::size_t kPiece = 16;
  struct Piece {
    Cell whole;
    std::unique_ptr<std::array<Cell, kPiece>> split;
  };
  std::vector<Piece> pieces_;
};

}  // namespace braid::cpu
