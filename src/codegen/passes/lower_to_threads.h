#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Decides how threads execute each instruction and records it in the program: places of values,
/// widths of accesses, unrolling, the lanes and warps of a reduction, addresses in shared memory.
/// The printer only spells the result.
void lower_to_threads(Program& program);

}  // namespace braid::tile
