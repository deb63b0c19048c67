#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/dim3.h"

namespace braid::cpu {

/// A sample of a grid's blocks: along each axis the first, the last and some between. Blocks that
/// are first, between or last along the same axes form a group, whose counts are scaled to all of
/// its blocks.
class BlockSample {
 public:
  struct Group {
    std::uint64_t blocks = 0;  ///< in the grid
    std::uint64_t chosen = 0;  ///< of these, in the sample
    [[nodiscard]] double weight() const {
      return static_cast<double>(blocks) / static_cast<double>(chosen);
    }
  };
  explicit BlockSample(Dim3 grid);
  /// Sorted ascending.
  [[nodiscard]] const std::vector<std::uint64_t>& blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  [[nodiscard]] std::size_t group_of(std::uint64_t block) const;

 private:
  Dim3 grid_;
  std::vector<std::uint64_t> blocks_;
  std::vector<Group> groups_;
};

}  // namespace braid::cpu
