#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Checks that a program is well-formed: definitions dominate uses; operands have the number, kinds
/// and shapes that their operation needs; a layout fits the tile's shape and the block's warps.
/// Throws kInvalidArgument naming the first wrong instruction, what was found and what was
/// expected.
void verify(const Program& program);

}  // namespace braid::tile
