#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::tile {

/// A linear map over GF(2) between indices: bit i of the input XORs images[i] into the result.
/// Layouts, swizzles and addresses are such maps, so they can be composed and inverted.
struct LinearMap {
  std::vector<std::uint32_t> images;

  bool operator==(const LinearMap&) const = default;

  [[nodiscard]] int bits() const { return static_cast<int>(images.size()); }
  [[nodiscard]] std::uint32_t apply(std::uint32_t index) const;
  /// The dimension of the image.
  [[nodiscard]] int rank() const;
  /// The map restricted to `count` input bits from `first`.
  [[nodiscard]] LinearMap slice(int first, int count) const;
  /// A right inverse on `bits` bits: apply(inverse(x)) == x for every x. Among inputs with the same
  /// image it chooses the one whose later bits are 0, that is, the first copy. Nothing if the map
  /// does not reach all numbers of `bits` bits.
  [[nodiscard]] std::optional<LinearMap> inverse(int bits) const;
  /// The number k of low input bits with images 1, 2, 4, ...: 2^k inputs stay contiguous.
  [[nodiscard]] int contiguous_bits() const;

  static LinearMap identity(int bits);
};

/// The map x -> outer(inner(x)).
LinearMap compose(const LinearMap& outer, const LinearMap& inner);

/// A term of a linear index computation: ((x >> shift) & mask) << out.
struct BitRun {
  int shift;
  int mask;
  int out;
};
/// Splits a map into few terms to be combined by XOR; an image with several bits needs several
/// terms.
std::vector<BitRun> bit_runs(const LinearMap& map);

/// The bits of indices below a power of two.
[[nodiscard]] int log2_of(int power);

}  // namespace braid::tile
