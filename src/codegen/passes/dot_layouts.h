#pragma once

#include "codegen/tile/layout.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// The layouts in which a dot wants its tiles: matrix fragments, or of f32 elements what an FMA per
/// element needs. Operands are [M, K] and [K, N], however they are stored.
struct DotLayouts {
  Layout accumulator;
  Layout a;
  Layout b;
};
DotLayouts dot_layouts(const Program& program, const Inst& dot);

}  // namespace braid::tile
