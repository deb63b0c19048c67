#pragma once

#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// Which operands of the body the program reads and writes in the memory of peers, in order.
[[nodiscard]] std::vector<RemoteAccess> remote_accesses(const Program& program);

}  // namespace braid::tile
