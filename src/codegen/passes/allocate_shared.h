#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Gives shared tiles and reduction scratch their offsets.
void allocate_shared(Program& program);

}  // namespace braid::tile
