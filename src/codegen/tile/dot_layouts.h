#pragma once

#include "codegen/tile/layout.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// The layouts that a dot wants for its tiles: matrix fragments, or for f32 what per-element FMAs
/// need. Operands are [M, K] and [K, N], however they are stored.
struct DotLayouts {
  Layout accumulator;
  Layout a;
  Layout b;
};
DotLayouts dot_layouts(const Program& program, const Inst& dot);
/// How many matrix instructions of a dot follow one another along K.
[[nodiscard]] int mma_steps(const Program& program, const Inst& dot);

}  // namespace braid::tile
