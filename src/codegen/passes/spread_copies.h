#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Puts the asynchronous copies of a loop's body between its products. After lower_to_threads.
void spread_copies(Program& program);

}  // namespace braid::tile
