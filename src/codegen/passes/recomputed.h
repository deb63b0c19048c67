#pragma once

#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// For each tile whether it is cheaper to recompute at each use than to keep: constants, ranges,
/// and indices and masks made from these and scalars (or one value per row). Such tiles have no
/// registers and no layout of their own; they take their user's. Values that an instruction needs
/// in registers (a stored value, an operand of a dot) are excluded.
std::vector<bool> recomputed_tiles(const Program& program);

}  // namespace braid::tile
