#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Makes loops that load from the arenas of ranks, or reduce what they load, do so iterations
/// ahead. No iteration of such a loop may store what a later one loads.
void prefetch(Program& program);

}  // namespace braid::tile
