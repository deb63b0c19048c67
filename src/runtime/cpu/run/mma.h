#pragma once

#include <cstdint>

namespace braid::cpu {

/// `count` matrix products with one A. `places` are offsets of registers in `registers`: 4 of A,
/// then per product 2 of B, 4 of C and 4 of D. `code`: the bits kMma.. of runtime_helpers.h.
void multiply_fragments(std::uint8_t* registers, const std::uint32_t* places, std::uint32_t count,
                        std::uint32_t code);

}  // namespace braid::cpu
