#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Assigns a layout to every tile: accumulators, and what is computed with them, get the mma (or
/// FMA) layout, others blocked rows. A reduction's layout depends only on its extent, so fusing
/// never changes its order of summation.
void assign_layouts(Program& program);

}  // namespace braid::tile
