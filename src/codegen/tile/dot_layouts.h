#pragma once

#include "codegen/tile/layout.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// The layouts that a dot wants for its tiles. Operands are [M, K] and [K, N], however they are
/// stored.
struct DotLayouts {
  Layout accumulator;
  Layout a;
  Layout b;
};

/// Those of its unit (units.h). Throws kInvalidArgument where the target has none.
[[nodiscard]] DotLayouts dot_layouts(const Program& program, const Inst& dot);

// Of each unit, and the row step of an operand in shared memory.

/// A thread needs the rows and the columns of its elements, at every k.
[[nodiscard]] DotLayouts fma_layouts(const Program& program, const Inst& dot);
[[nodiscard]] int fma_row_step(const Inst& dot, std::size_t side);
[[nodiscard]] DotLayouts mma_layouts(const Program& program, const Inst& dot);
[[nodiscard]] int mma_row_step(const Inst& dot, std::size_t side);
/// Operands are in shared memory alone, and have no layouts.
[[nodiscard]] DotLayouts wgmma_layouts(const Program& program, const Inst& dot);
[[nodiscard]] int wgmma_row_step(const Inst& dot, std::size_t side);

/// How many matrix instructions of a dot follow one another along K.
[[nodiscard]] int mma_steps(const Program& program, const Inst& dot);

}  // namespace braid::tile
