#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Turns each loop whose loads feed a dot into a ring of `num_stages` shared-memory slots, filled
/// by asynchronous copies num_stages - 1 iterations ahead.
void pipeline(Program& program, int num_stages);

/// The most bytes that are copied for each byte of an operand that is made of them, and the least
/// bytes of a row that are copied asynchronously.
inline constexpr double kMostCopied = 1.125;
inline constexpr int kLeastCopied = 4;

}  // namespace braid::tile
