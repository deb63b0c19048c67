#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// What a store writes, where all that it writes comes from one kind of arithmetic.
enum class StoredFloats : std::uint8_t { kNone, kF16, kBf16, kF32, kF64 };

/// Of the stores of a line. Follows moves, selections and shuffles back to what computes.
StoredFloats stored_floats(const ptx::Function& function, std::uint32_t line);

/// Whether values are as close as those that one sum has in two orders: up to 2^-16 of their size
/// for f32 (of a few hundred terms), 2^-45 for f64, and two roundings for 16 bits.
bool differ_by_rounding(StoredFloats kind, const std::uint8_t* a, const std::uint8_t* b,
                        std::size_t bytes);

}  // namespace braid::cpu
