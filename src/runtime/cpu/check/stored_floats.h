#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/ptx/ptx.h"

namespace braid::cpu {

/// The type of a store's values, if they all come from arithmetic of one float type.
enum class StoredFloats : std::uint8_t { kNone, kF16, kBf16, kF32, kF64 };

/// The type for the stores of a line. Follows moves, selections and shuffles back to arithmetic.
StoredFloats stored_floats(const ptx::Function& function, std::uint32_t line);

/// The size of the largest finite value.
double largest_of(StoredFloats kind, const std::uint8_t* values, std::size_t bytes);

/// Whether values are as close as the same sum in two orders: within 2^-16 of their size for f32
/// (some hundred terms), 2^-45 for f64, and two roundings for 16 bits. Of a sum that cancels it is
/// the size of its terms that counts: `size_of_terms`, where it is larger.
bool differ_by_rounding(StoredFloats kind, const std::uint8_t* a, const std::uint8_t* b,
                        std::size_t bytes, double size_of_terms);

}  // namespace braid::cpu
