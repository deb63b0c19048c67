#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Makes loads and stores of index tiles of those that name a tile of a tensor.
void lower_tensors(Program& program);

}  // namespace braid::tile
