#pragma once

#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Which tiles are cheaper computed again wherever they are used than kept: constants, ranges, and
/// indices and masks made from those and scalars (or one value per row). They have no registers and
/// so no layout of their own; they take that of their user. Not those that an instruction wants in
/// registers: a value that is stored, an operand of a dot.
std::vector<bool> recomputed_tiles(const Program& program);

}  // namespace braid::tile
