#pragma once

#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// Which outputs of the body may lie where an input does, of a program after all passes: the thread
/// that stores an element of the output is the only one that loads that of the input, in the same
/// turn of the same loops and before, or ahead for that turn. Nothing is promised of what is
/// accessed in another way: by peers, into shared memory, by a tensor map.
[[nodiscard]] std::vector<InPlace> in_place_operands(const Program& program);

}  // namespace braid::tile
