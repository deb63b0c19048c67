#pragma once

#include <cstdint>

namespace braid::cpu {

/// A plan has at most so many A and B: what they are decoded to then stays in the first cache.
inline constexpr std::uint32_t kMaxMmaA = 16;
inline constexpr std::uint32_t kMaxMmaB = 32;
/// .. and a tile so many products, which fill the registers of AVX-512.
inline constexpr std::uint32_t kMaxMmaWidth = 2;

/// Products that are independent of each other and have the same A: D = A B + C. They may do so
/// several times, with other A and B, each from the D before.
struct MmaTile {
  std::uint32_t steps, width;
  const std::uint32_t* inputs;  ///< of each step: the number of A, and of the B of each product
  const std::uint32_t* places;  ///< of each product: of the first C's registers, and the last D's

  [[nodiscard]] std::uint32_t a(std::uint32_t step) const { return inputs[step * (1 + width)]; }
  [[nodiscard]] std::uint32_t b(std::uint32_t step, std::uint32_t product) const {
    return inputs[step * (1 + width) + 1 + product];
  }
};

/// Matrix products over fragments that lie in the 32 lanes of registers, as `words` have them: how
/// many A, B and tiles there are, the places of the 4 registers of each A and the 2 of each B, and
/// the tiles. Places are offsets in the register file; short shapes leave some of them unused. No
/// product has an A or B that another one writes.
class MmaPlan {
 public:
  MmaPlan(std::uint8_t* file, const std::uint32_t* words) : file_(file), words_(words) {}

  [[nodiscard]] std::uint32_t a_count() const { return words_[0]; }
  [[nodiscard]] std::uint32_t b_count() const { return words_[1]; }
  /// Register `r` of the n-th A or B, of all lanes.
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
  /// In the order in which they are to be done.
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

/// `code`: the bits kMma.. of runtime_helpers.h. Those with kMmaHalfSum or kMmaSaturate have tiles
/// of one step.
void multiply_fragments(const MmaPlan& plan, std::uint32_t code);

/// The same, on a host with AVX-512.
void multiply_fragments_avx512(const MmaPlan& plan, std::uint32_t code);

}  // namespace braid::cpu
