#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace braid::cpu {

/// Sets of global-memory sectors by number: 64 consecutive ones per word.
using SectorBits = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

[[nodiscard]] std::uint64_t sectors_of(const SectorBits& words);

/// A set of sectors that grows.
class SectorWords {
 public:
  void add(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t number = first / 64; number <= last / 64; ++number) {
      const std::uint64_t from = number == first / 64 ? first % 64 : 0;
      const std::uint64_t to = number == last / 64 ? last % 64 : 63;
      bits_of(number) |= ~std::uint64_t{0} >> (63 - (to - from)) << from;
    }
  }
  /// In no particular order.
  [[nodiscard]] const SectorBits& words() const { return words_; }
  void clear();

 private:
  std::uint64_t& bits_of(std::uint64_t number) {
    if (2 * words_.size() >= places_.size()) grow();
    std::size_t place = first_place(number);
    for (; places_[place] != 0; place = next_place(place)) {
      auto& word = words_[places_[place] - 1];
      if (word.first == number) return word.second;
    }
    words_.emplace_back(number, 0);
    places_[place] = static_cast<std::uint32_t>(words_.size());
    return words_.back().second;
  }
  /// Hashes the number: blocks access rows that are a power of two apart.
  [[nodiscard]] std::size_t first_place(std::uint64_t number) const {
    return (number * 0x9e3779b97f4a7c15 >> 32U) & (places_.size() - 1);
  }
  [[nodiscard]] std::size_t next_place(std::size_t place) const {
    return (place + 1) & (places_.size() - 1);
  }
  void grow();

  SectorBits words_;
  std::vector<std::uint32_t> places_;  ///< hash table, its size a power of two: index of a word +
                                       ///< 1, or 0
};

}  // namespace braid::cpu
