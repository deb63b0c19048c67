#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "lowering/plan/program.h"

namespace braid {

/// What the records of a run say, `records[rank]`; nothing when all is well. kTimeout, naming for
/// each rank that recorded one the step, kernel, block, slot and the peer that did not signal,
/// when a wait was lost: whatever else went wrong may follow from it. Else kInvalidArgument with
/// the node, the rank and the value of an index out of range, of the earliest step.
[[nodiscard]] std::optional<Error> run_error(const Program& program,
                                             std::span<const protocol::Record> records,
                                             std::uint64_t timeout_ns);

}  // namespace braid
