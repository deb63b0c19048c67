#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Assigns offsets to shared tiles and scratch.
void allocate_shared(Program& program);

}  // namespace braid::tile
