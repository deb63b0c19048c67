#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Decides how threads carry out each instruction and writes it down in the program: where values
/// live, widths of accesses, unrolling, who combines with whom in a reduction, addresses in shared
/// memory. The printer only spells what stands there.
void lower_to_threads(Program& program);

}  // namespace braid::tile
