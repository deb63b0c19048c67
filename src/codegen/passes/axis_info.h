#pragma once

#include <cstdint>
#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Facts about an integer tile along its columns, or rows (Triton's axis analysis), as powers of
/// two.
struct AxisInfo {
  std::int64_t contiguity = 1;    ///< aligned runs of this many columns count up by one
  std::int64_t divisibility = 1;  ///< the first value of each such run is a multiple of this
  std::int64_t constancy = 1;     ///< aligned runs of this many columns are equal
};

/// Computes AxisInfo on demand; scalars count as constant tiles.
class AxisAnalysis {
 public:
  /// `axis`: 1, or 0 for facts along rows.
  explicit AxisAnalysis(const Program& program, int axis = 1)
      : program_(program),
        axis_(axis),
        known_(program.insts.size(), false),
        info_(program.insts.size()) {}

  const AxisInfo& of(Id id);

  /// How many elements of `dtype` one access may move: consecutive columns at consecutive, aligned
  /// addresses under one mask, at most 16 bytes and `limit` elements.
  int access_width(Id pointer, Id offset, Id mask, DType dtype, int limit);

  /// In bytes.
  std::int64_t pointer_alignment(Id pointer);

 private:
  AxisInfo compute(Id id);

  const Program& program_;
  int axis_;
  std::vector<bool> known_;
  std::vector<AxisInfo> info_;
};

}  // namespace braid::tile
