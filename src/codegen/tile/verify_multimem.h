#pragma once

#include <optional>

#include "codegen/tile/verify_packets.h"

namespace braid::tile {

/// What is wrong with an access of all ranks at once, or by a pointer to all, beside the types of
/// its operands.
[[nodiscard]] std::optional<Problem> multimem_problem(const Program& program, const Inst& inst);

/// An access of all ranks, or a loop that holds one, that is not between two meetings of all; else
/// kNone.
[[nodiscard]] Id multimem_without_meeting(const Program& program);

}  // namespace braid::tile
