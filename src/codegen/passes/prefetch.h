#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Loops that load from the arenas of ranks do so an iteration ahead. No iteration of such a loop
/// may store what a later one loads.
void prefetch(Program& program);

}  // namespace braid::tile
