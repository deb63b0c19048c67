#pragma once

#include <cstdint>
#include <string_view>

#include "braid/export.h"

namespace braid {

/// How the cpu device adds the products of mma.sync and wgmma to f32.
enum class MatrixSums : std::uint8_t {
  kRounded,  ///< one after the other, each with one rounding to nearest
  kHopper,   ///< to the bits that an H100 gave (docs/numerics.md); a matmul takes 15 times as long
};

/// Parses "" (rounded), "rounded" or "hopper". Throws kInvalidArgument with what was expected.
[[nodiscard]] BRAID_API MatrixSums parse_matrix_sums(std::string_view text);

}  // namespace braid
