#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codegen/protocol.h"
#include "lowering/program.h"

namespace braid {

/// The first bytes of a symmetric arena: what a kernel leaves there when a wait runs past its
/// deadline.
struct WaitHead {
  std::uint32_t abort;
  std::uint32_t reserved[15];
  protocol::Record record;
};
static_assert(sizeof(WaitHead) == protocol::kRecordOffset + sizeof(protocol::Record));

/// Empty when no wait timed out; else one line that names, for each rank that recorded one, the
/// step, kernel, block, channel and the peer that did not signal. `heads[rank]` opens the
/// arena of `group` on that rank.
[[nodiscard]] std::string describe_timeouts(const Program& program, std::string_view group,
                                            std::span<const WaitHead> heads);

}  // namespace braid
