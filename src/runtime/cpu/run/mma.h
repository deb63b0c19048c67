#pragma once

#include <cstdint>

namespace braid::cpu {

/// The most A and B of a plan, so that their decoded forms stay in the first-level cache.
inline constexpr std::uint32_t kMaxMmaA = 16;
inline constexpr std::uint32_t kMaxMmaB = 32;
/// The most products of a tile, so that they fill the registers of AVX-512.
inline constexpr std::uint32_t kMaxMmaWidth = 2;

/// Independent products with the same A: D = A B + C. There may be several steps with other A and
/// B, each adding to the previous D.
struct MmaTile {
  std::uint32_t steps, width;
  const std::uint32_t* inputs;  ///< for each step: index of A, then of B for each product
  const std::uint32_t* places;  ///< for each product: registers of the first C, and of the last D

  [[nodiscard]] std::uint32_t a(std::uint32_t step) const { return inputs[step * (1 + width)]; }
  [[nodiscard]] std::uint32_t b(std::uint32_t step, std::uint32_t product) const {
    return inputs[step * (1 + width) + 1 + product];
  }
};

/// Matrix products over fragments in the 32 lanes of registers, encoded in `words`: the numbers of
/// A, B and tiles; the places of the 4 registers of each A and the 2 of each B; the tiles. Places
/// are offsets in the register file; short shapes leave some unused. No product writes an A or B of
/// another.
class MmaPlan {
 public:
  MmaPlan(std::uint8_t* file, const std::uint32_t* words) : file_(file), words_(words) {}

  [[nodiscard]] std::uint32_t a_count() const { return words_[0]; }
  [[nodiscard]] std::uint32_t b_count() const { return words_[1]; }
  /// Register `r` of the n-th A or B, for all lanes.
  [[nodiscard]] std::uint32_t* a(std::uint32_t n, std::uint32_t r) const {
    return at(words_[kHead + 4 * n + r]);
  }
  [[nodiscard]] std::uint32_t* b(std::uint32_t n, std::uint32_t r) const {
    return at(words_[kHead + 4 * a_count() + 2 * n + r]);
  }
  [[nodiscard]] std::uint32_t* c(const MmaTile& tile, std::uint32_t product,
                                 std::uint32_t r) const {
    return at(tile.places[8 * product + r]);
  }
  [[nodiscard]] std::uint32_t* d(const MmaTile& tile, std::uint32_t product,
                                 std::uint32_t r) const {
    return at(tile.places[8 * product + 4 + r]);
  }
  /// In the order of execution.
  template <class Body>
  void for_each_tile(Body&& body) const {
    const std::uint32_t* next = words_ + kHead + 4 * a_count() + 2 * b_count();
    for (std::uint32_t n = 0; n < words_[2]; ++n) {
      MmaTile tile{next[0], next[1], next + 2, nullptr};
      tile.places = tile.inputs + tile.steps * (1 + tile.width);
      next = tile.places + 8 * tile.width;
      body(tile);
    }
  }

 private:
  static constexpr std::uint32_t kHead = 3;
  [[nodiscard]] std::uint32_t* at(std::uint32_t place) const {
    return reinterpret_cast<std::uint32_t*>(file_ + place);
  }

  std::uint8_t* file_;
  const std::uint32_t* words_;
};

/// `code` has bits kMma.. of runtime_helpers.h. With kMmaHalfSum or kMmaSaturate tiles have one
/// step.
void multiply_fragments(const MmaPlan& plan, std::uint32_t code);

/// The same on a host with AVX-512, without kMmaHopper.
void multiply_fragments_avx512(const MmaPlan& plan, std::uint32_t code);

}  // namespace braid::cpu
