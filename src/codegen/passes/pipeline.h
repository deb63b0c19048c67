#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Turns each loop whose loads feed a dot into a ring of `num_stages` shared-memory slots, filled
/// by asynchronous copies num_stages - 1 iterations ahead.
void pipeline(Program& program, int num_stages);

}  // namespace braid::tile
