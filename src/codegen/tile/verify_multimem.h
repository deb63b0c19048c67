#pragma once

#include <optional>

#include "codegen/tile/verify_packets.h"

namespace braid::tile {

/// The problem of an access to all ranks, or of one through a pointer to all, besides its operand
/// types.
[[nodiscard]] std::optional<Problem> multimem_problem(const Program& program, const Inst& inst);

/// An access to all ranks, or a loop with one, that is not between two barriers of all; else kNone.
[[nodiscard]] Id multimem_without_meeting(const Program& program);

}  // namespace braid::tile
