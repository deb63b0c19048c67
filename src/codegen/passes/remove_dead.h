#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Takes instructions out of their blocks that have no effect and whose results nothing uses. What
/// passes leave behind would be printed, and NVRTC reads every line.
void remove_dead(Program& program);

}  // namespace braid::tile
