#include "codegen/tile/linear_map.h"

#include <algorithm>
#include <bit>

namespace braid::tile {
namespace {

/// A vector in echelon form, with the input bits that produce it.
struct Row {
  std::uint32_t image;
  std::uint32_t input;
};

/// A basis of the map's image in echelon form, each vector with a distinct highest bit. Input bits
/// whose image is in the span of earlier ones add none.
std::vector<Row> echelon(const LinearMap& map) {
  std::vector<Row> rows;
  for (int i = 0; i < map.bits(); ++i) {
    Row row{map.images[i], std::uint32_t{1} << i};
    for (const Row& have : rows) {
      if ((row.image ^ have.image) < row.image &&
          std::bit_width(row.image ^ have.image) < std::bit_width(row.image)) {
        row.image ^= have.image;
        row.input ^= have.input;
      }
    }
    if (row.image == 0) continue;
    rows.push_back(row);
    std::sort(rows.begin(), rows.end(),
              [](const Row& a, const Row& b) { return a.image > b.image; });
  }
  return rows;
}

}  // namespace

std::uint32_t LinearMap::apply(std::uint32_t index) const {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if ((index >> i & 1) != 0) out ^= images[i];
  }
  return out;
}

int LinearMap::rank() const { return static_cast<int>(echelon(*this).size()); }

LinearMap LinearMap::slice(int first, int count) const {
  return {{images.begin() + first, images.begin() + first + count}};
}

std::optional<LinearMap> LinearMap::inverse(int bits) const {
  const std::vector<Row> rows = echelon(*this);
  LinearMap out;
  for (int bit = 0; bit < bits; ++bit) {
    std::uint32_t rest = std::uint32_t{1} << bit;
    std::uint32_t input = 0;
    for (const Row& row : rows) {
      if (std::bit_width(rest) != std::bit_width(row.image) || rest == 0) continue;
      rest ^= row.image;
      input ^= row.input;
    }
    if (rest != 0) return std::nullopt;
    out.images.push_back(input);
  }
  return out;
}

int LinearMap::contiguous_bits() const {
  int count = 0;
  while (count < bits() && images[count] == std::uint32_t{1} << count) {
    ++count;
  }
  return count;
}

LinearMap LinearMap::identity(int bits) {
  LinearMap out;
  for (int bit = 0; bit < bits; ++bit) out.images.push_back(std::uint32_t{1} << bit);
  return out;
}

LinearMap compose(const LinearMap& outer, const LinearMap& inner) {
  LinearMap out;
  for (std::uint32_t image : inner.images) out.images.push_back(outer.apply(image));
  return out;
}

std::vector<BitRun> bit_runs(const LinearMap& map) {
  std::vector<BitRun> runs;
  std::vector<int> widths;
  for (int at = 0; at < map.bits(); ++at) {
    for (std::uint32_t image = map.images[at]; image != 0; image &= image - 1) {
      const int out = std::countr_zero(image);
      std::size_t run = 0;
      while (run < runs.size() &&
             (runs[run].shift + widths[run] != at || runs[run].out + widths[run] != out)) {
        ++run;
      }
      if (run == runs.size()) {
        runs.push_back({at, 0, out});
        widths.push_back(0);
      }
      runs[run].mask = runs[run].mask * 2 + 1;
      ++widths[run];
    }
  }
  return runs;
}

int log2_of(int power) { return std::countr_zero(static_cast<std::uint32_t>(power)); }

}  // namespace braid::tile
