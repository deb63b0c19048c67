#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Runs all passes in order, from a template's output or a text to what the printer takes.
/// Passes and printer use the target's units alone. `num_stages`, the depth of rings in shared
/// memory, matters only where a loop contains a dot. Throws kInvalidArgument where no unit does
/// what an operation needs.
void lower(Program& program, const Target& target, int num_stages);

}  // namespace braid::tile
