#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Gives every tile its layout: accumulators and what is computed with them the mma (or FMA)
/// layout, the rest blocked rows. A reduction's layout depends only on its extent, so fusing never
/// changes its order.
void assign_layouts(Program& program);

}  // namespace braid::tile
