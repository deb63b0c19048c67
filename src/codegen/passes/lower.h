#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Runs all passes in order, from a template's output or a text to what the printer takes.
/// `num_stages`, the depth of rings in shared memory, matters only where a loop contains a dot.
void lower(Program& program, int num_stages);

}  // namespace braid::tile
