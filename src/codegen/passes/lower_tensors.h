#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Rewrites accesses to tensor tiles into loads and stores with index tiles.
void lower_tensors(Program& program);

}  // namespace braid::tile
