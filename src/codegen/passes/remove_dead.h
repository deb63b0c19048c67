#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Removes instructions that have no effect and whose results are unused. Otherwise they would be
/// printed, and NVRTC reads every line.
void remove_dead(Program& program);

}  // namespace braid::tile
