#pragma once

#include <vector>

#include "codegen/kernel/spec.h"
#include "codegen/tile/tile.h"

namespace braid::tile {

/// The symmetric buffer that a pointer leads to, or null.
[[nodiscard]] const KernelParam* symmetric_buffer(const Program& program, Id pointer);

/// Whether the pointer leads to all ranks at once.
[[nodiscard]] bool is_multicast(const Program& program, Id pointer);

/// The operands of the body that ranks write in each other's arenas, or each in its own through its
/// rank.
[[nodiscard]] std::vector<Clobbered> clobbered_operands(const Program& program);

/// Whether every run of the program is a barrier of all ranks: some of its blocks always wait for
/// every rank, not only in a closing run.
[[nodiscard]] bool meets(const Program& program);

/// The operands of the body that the program reads and writes in memory of peers, in order.
[[nodiscard]] std::vector<RemoteAccess> remote_accesses(const Program& program);

}  // namespace braid::tile
