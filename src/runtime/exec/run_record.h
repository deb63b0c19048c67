#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "lowering/plan/program.h"

namespace braid {

struct RankRecord {
  int rank = 0;  ///< rank in the world
  protocol::Record record{};
};

/// The error in the records of a run; nothing if there is none. If a wait expired: kTimeout, naming
/// for each rank that recorded one the step, kernel, block, slot and the silent peer; other
/// failures may be its consequences. Else kInvalidArgument, naming the node, the rank and the value
/// of the out-of-range index of the earliest step.
[[nodiscard]] std::optional<Error> run_error(const Program& program,
                                             std::span<const RankRecord> records,
                                             std::uint64_t timeout_ns);

}  // namespace braid
