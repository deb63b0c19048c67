#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::tile {

/// A linear map over GF(2) between indices: bit i of the input adds (XOR) images[i] to the result.
/// Layouts, swizzles and addresses are such maps, so one is derived from others by composing and
/// inverting.
struct LinearMap {
  std::vector<std::uint32_t> images;

  bool operator==(const LinearMap&) const = default;

  [[nodiscard]] int bits() const { return static_cast<int>(images.size()); }
  [[nodiscard]] std::uint32_t apply(std::uint32_t index) const;
  /// The dimension of what it reaches.
  [[nodiscard]] int rank() const;
  /// The images of `count` input bits from `first`.
  [[nodiscard]] LinearMap slice(int first, int count) const;
  /// A map on `bits` bits back: apply(inverse(x)) == x for every x it reaches. Where several inputs
  /// have one image it takes that whose later bits are 0, so the first of the copies. Nothing when
  /// it does not reach all numbers of `bits` bits.
  [[nodiscard]] std::optional<LinearMap> inverse(int bits) const;
  /// The number of low input bits k with images 1, 2, 4, ...: so many stay side by side.
  [[nodiscard]] int contiguous_bits() const;

  static LinearMap identity(int bits);
};

/// First `inner`, then `outer`.
LinearMap compose(const LinearMap& outer, const LinearMap& inner);

/// One field of a linear index computation: ((x >> shift) & mask) << out.
struct BitRun {
  int shift;
  int mask;
  int out;
};
/// A map as few fields, to be added with XOR; an image of several bits is in several fields.
std::vector<BitRun> bit_runs(const LinearMap& map);

}  // namespace braid::tile
