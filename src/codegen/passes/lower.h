#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// All passes, in order: what a template or a text gives becomes what the printer spells.
/// `num_stages` (of rings in shared memory) matters where a loop holds a dot.
void lower(Program& program, int num_stages);

}  // namespace braid::tile
