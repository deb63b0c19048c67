// Rules for accesses to all ranks at once. The hardware sums f32, f16 and bf16, and only these
// instructions may use such an address. They must stand between two barriers of all ranks, so that
// what they read is complete and none of them outlives the step on any rank.

#include "codegen/tile/verify_multimem.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/tile/op_info.h"
#include "codegen/tile/remote.h"
#include "ir/collective.h"

namespace braid::tile {
namespace {

bool accesses_all(const Program& p, Id id) {
  const Inst& inst = p.at(id);
  return op_info(inst.op).multimem || std::any_of(inst.body.begin(), inst.body.end(),
                                                  [&](Id inner) { return accesses_all(p, inner); });
}

bool meets_all(const Inst& inst) {
  return inst.op == Op::kWait && inst.args[1] == kNone && inst.args[2] == kNone;
}

}  // namespace

std::optional<Problem> multimem_problem(const Program& program, const Inst& inst) {
  using P = KernelParam::Kind;
  const bool all = op_info(inst.op).multimem;
  if (all || inst.op == Op::kMulticast) {
    for (const P kind : {P::kMulticast, P::kPeers}) {
      const bool known = std::any_of(program.params.begin(), program.params.end(),
                                     [&](const Param& param) { return param.what.kind == kind; });
      if (!known) {
        return Problem{fmt::format("no parameter '{}'", param_name(kind)),
                       "the parameters of a kernel that knows the addresses of all ranks"};
      }
    }
  }
  if (all && !fits_multimem(inst.dtype)) {
    return Problem{std::string(dtype_name(inst.dtype)), "f32, f16 or bf16"};
  }
  const int pointer = op_info(inst.op).pointer;
  if (pointer < 0) return std::nullopt;
  if (is_multicast(program, inst.args[pointer]) == all) {
    return std::nullopt;
  }
  if (all) return Problem{"a pointer to one rank", "one to all: multicast"};
  return Problem{"a pointer to all ranks", "multimem_reduce or multimem_store of it"};
}

Id multimem_without_meeting(const Program& program) {
  const std::vector<Id>& body = program.body;
  const auto meets = [&](Id id) { return meets_all(program.at(id)); };
  for (auto it = body.begin(); it != body.end(); ++it) {
    if (!accesses_all(program, *it)) continue;
    if (std::none_of(body.begin(), it, meets) || std::none_of(it, body.end(), meets)) return *it;
  }
  return kNone;
}

}  // namespace braid::tile
