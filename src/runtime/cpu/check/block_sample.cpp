#include "runtime/cpu/check/block_sample.h"

#include <algorithm>
#include <array>

namespace braid::cpu {
namespace {

/// Positions along an axis of `extent`: its ends, and `between` spaced ones between them.
std::vector<std::uint64_t> places(std::uint64_t extent, std::uint64_t between) {
  std::vector<std::uint64_t> chosen{0};
  const std::uint64_t inner = extent < 2 ? 0 : extent - 2;
  between = std::min(between, inner);
  for (std::uint64_t i = 0; i < between; ++i) {
    // The middle of part i of the inner positions.
    chosen.push_back(1 + (2 * i + 1) * inner / (2 * between));
  }
  if (extent > 1) chosen.push_back(extent - 1);
  return chosen;
}

/// 0: first along the axis, 1: between, 2: last.
std::size_t part(std::uint64_t place, std::uint64_t extent) {
  return place == 0 ? 0 : place + 1 == extent ? 2 : 1;
}

}  // namespace

BlockSample::BlockSample(Dim3 grid) : grid_(grid), groups_(27) {
  const std::array<std::uint64_t, 3> extents = {grid.x, grid.y, grid.z};
  const auto axes = std::ranges::count_if(extents, [](auto e) { return e > 1; });
  // Many along a single axis: kernels often number the tiles of a matrix by it.
  const std::uint64_t between = axes <= 1 ? 14 : axes == 2 ? 4 : 2;
  std::array<std::array<std::uint64_t, 3>, 3> in_part{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint64_t extent = extents[axis];
    in_part[axis] = {1, extent < 2 ? 0 : extent - 2, extent > 1 ? 1U : 0U};
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].blocks = in_part[0][g % 3] * in_part[1][g / 3 % 3] * in_part[2][g / 9];
  }
  for (const std::uint64_t z : places(extents[2], between)) {
    for (const std::uint64_t y : places(extents[1], between)) {
      for (const std::uint64_t x : places(extents[0], between)) {
        blocks_.push_back(x + extents[0] * (y + extents[1] * z));
        ++groups_[group_of(blocks_.back())].chosen;
      }
    }
  }
}

std::size_t BlockSample::group_of(std::uint64_t block) const {
  const std::uint64_t rows = block / grid_.x;
  return part(block % grid_.x, grid_.x) + 3 * part(rows % grid_.y, grid_.y) +
         9 * part(rows / grid_.y, grid_.z);
}

}  // namespace braid::cpu
