#pragma once

#include <cstddef>
#include <string>

#include "braid/dtype.h"
#include "ir/collective.h"

namespace braid {

inline constexpr const char* kReductionEntry = "braid_reduce";

/// PTX of a kernel that reduces `count` elements of several ranks, from element `first` on, in rank
/// order, in f32 or the integer dtype, rounding once. Parameters: `sources` (an array of addresses
/// by value), `result`, `first` and `count`, all 64 bits wide. Any grid of one-dimensional blocks
/// works. Throws kInvalidArgument for a dtype that cannot be reduced.
[[nodiscard]] std::string reduction_ptx(DType dtype, ReduceOp op, std::size_t sources);

}  // namespace braid
