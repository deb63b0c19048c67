// Rules for packets. They lie in the step's scratch, which is zeroed before the first run and which
// nobody else writes, so a place with an epoch holds a packet of that epoch. A packet has 4 bytes
// of payload.

#include "codegen/tile/verify_packets.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/tile/op_info.h"
#include "codegen/tile/remote.h"
#include "ir/collective.h"

namespace braid::tile {

std::optional<Problem> packet_problem(const Program& program, const Inst& inst) {
  using P = KernelParam::Kind;
  const bool moves = op_info(inst.op).packets;
  if (!moves && inst.op != Op::kEpoch) return std::nullopt;
  for (const P kind : {P::kPeers, P::kRank, P::kFlags, P::kTimeout, P::kRecord, P::kStep}) {
    const bool known = std::any_of(program.params.begin(), program.params.end(),
                                   [&](const Param& param) { return param.what.kind == kind; });
    if (!known) {
      return Problem{fmt::format("no parameter '{}'", param_name(kind)),
                     "the parameters of a kernel that communicates"};
    }
  }
  if (!moves) {
    if (inst.type == Type{Kind::kI64}) return std::nullopt;
    return Problem{type_text(inst.type), "i64"};
  }
  if (!fits_packet(inst.dtype)) {
    return Problem{std::string(dtype_name(inst.dtype)), "a dtype of at most 4 bytes"};
  }
  const KernelParam* buffer = symmetric_buffer(program, inst.args[0]);
  if (buffer != nullptr && buffer->kind == P::kScratch) return std::nullopt;
  return Problem{buffer == nullptr ? "a pointer to no buffer of the group"
                                   : fmt::format("a pointer to '{}'", param_name(buffer->kind)),
                 "one to the scratch of a rank: peer of parameter 'scratch'"};
}

}  // namespace braid::tile
