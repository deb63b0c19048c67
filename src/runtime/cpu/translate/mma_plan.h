#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace braid::cpu {

/// Makes the words of an MmaPlan.
class MmaPlanBuilder {
 public:
  using Places = std::array<std::uint32_t, 4>;

  /// The number of an A in these registers, or a B, which has two; an equal one is the same.
  std::uint32_t add_a(const Places& places) { return add(as_, places); }
  std::uint32_t add_b(const Places& places) { return add(bs_, places); }
  /// A product of these (numbers of A and B), step by step, added to C.
  void add_product(const std::vector<std::uint32_t>& as, const std::vector<std::uint32_t>& bs,
                   const Places& c, const Places& d);
  [[nodiscard]] std::vector<std::uint32_t> words() const;

 private:
  /// By its places; they go in the order of their numbers.
  using Fragments = std::vector<Places>;
  static std::uint32_t add(Fragments& fragments, const Places& places);

  struct Product {
    std::vector<std::uint32_t> bs;
    Places c, d;
  };
  struct Tile {
    std::vector<std::uint32_t> as;
    std::vector<Product> products;
  };
  Fragments as_, bs_;
  std::vector<Tile> tiles_;
  std::map<std::vector<std::uint32_t>, std::size_t> open_;  ///< by its A: a tile with room
};

}  // namespace braid::cpu
