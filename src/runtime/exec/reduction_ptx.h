#pragma once

#include <cstddef>
#include <string>

#include "braid/dtype.h"
#include "ir/collective.h"

namespace braid {

inline constexpr const char* kReductionEntry = "braid_reduce";

/// A kernel that reduces `count` elements of several ranks, from element `first` on, in rank order,
/// in f32 or the integer dtype, and rounds once. Parameters: the `sources` (an array of addresses
/// by value), `result`, `first` and `count`, all 64 bits wide; any grid of one-dimensional blocks
/// does it. Throws kInvalidArgument for a dtype that cannot be reduced.
[[nodiscard]] std::string reduction_ptx(DType dtype, ReduceOp op, std::size_t sources);

}  // namespace braid
