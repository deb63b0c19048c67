#pragma once

#include <vector>

#include "codegen/kernel/spec.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// The outputs of the body that may share memory with an input, for a program after all passes. The
/// thread that stores an element of the output must be the only one that loads that element of the
/// input, earlier in the same turn of the same loops, or ahead for that turn. Operands that are
/// accessed in other ways (by peers, into shared memory, by a tensor map) are excluded.
[[nodiscard]] std::vector<InPlace> in_place_operands(const Program& program);

}  // namespace braid::tile
