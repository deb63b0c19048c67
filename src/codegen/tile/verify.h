#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Checks that a program is one: every value is defined once and before its uses, in a scope they
/// stand in; operands have the number, kinds and shapes that their operation needs; a layout is one
/// of the tile's shape and the block's warps. Throws kInvalidArgument naming the first instruction
/// that is wrong, what was found and what was expected.
void verify(const Program& program);

}  // namespace braid::tile
