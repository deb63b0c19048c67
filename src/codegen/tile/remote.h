#pragma once

#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// The symmetric buffer that a pointer leads to on a rank, or null.
[[nodiscard]] const KernelParam* symmetric_buffer(const Program& program, Id pointer);

/// Whether it leads to all ranks at once.
[[nodiscard]] bool is_multicast(const Program& program, Id pointer);

/// The operands of the body that ranks write to in each other's arenas, or each in its own by way
/// of its rank.
[[nodiscard]] std::vector<Clobbered> clobbered_operands(const Program& program);

/// Whether each run of it is a barrier of all ranks: blocks of it, some or all, wait for every
/// rank, not only where the run closes.
[[nodiscard]] bool meets(const Program& program);

/// Which operands of the body the program reads and writes in the memory of peers, in order.
[[nodiscard]] std::vector<RemoteAccess> remote_accesses(const Program& program);

}  // namespace braid::tile
