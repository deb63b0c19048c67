// One-shot all-reduce with everything that follows it: every rank reads the operand of every rank
// from the symmetric arena and sums in rank order in f32, so that all ranks hold the same bits. The
// grid is constant and the blocks loop over the pieces, so every block signals in every call
// (DESIGN §7).
//
//     for each piece:     where the kernel computes its operand: into this rank's arena. Block b of
//                         every rank reads what the blocks b wrote, so its own signal suffices.
//     signal, wait        every peer has entered this step, so its operand is complete
//     for each piece:     sum over ranks, then the rest of the body
//     signal, wait        only at the group's last step of a run: no remote read outlives it

#include <algorithm>

#include "codegen/protocol.h"
#include "codegen/templates/body.h"

namespace braid {

void build_collective(const KernelSpec& spec, const BodyInfo& info, int ranks_per_device,
                      tile::Program& program) {
  tile::Builder b(program);
  const std::string& group = *info.collective->attr<std::string>("group");
  program.world = static_cast<int>(spec.body->groups().at(group).size);
  const PieceWork work = piece_work(spec, info);
  const std::int64_t most = std::max<std::int64_t>(1, protocol::kMaxBlocks / ranks_per_device);
  program.grid = std::clamp<std::int64_t>(work.count.max(spec.body->symbols()), 1, most);
  using P = KernelParam::Kind;
  for (P kind : {P::kPeers, P::kRank, P::kChannel, P::kTimeout}) {
    b.param({.kind = kind, .index = 0, .expr = 0, .group = group});
  }
  b.can_fail();
  const tile::Id closing = b.param({.kind = P::kClosing, .index = 0, .expr = 0, .group = group});
  const auto for_each_piece = [&](auto emit) {
    const tile::Id loop = b.begin_for(b.program_id(), b.scalar(work.count), b.num_programs(), {});
    emit(b, spec, info, work, b.induction(loop));
    b.end_for(loop, {});
  };
  if (info.prologue >= 0) for_each_piece(emit_prologue);
  b.signal(0);
  b.wait(0);
  for_each_piece(emit_piece);
  b.signal(1, closing);
  b.wait(1, closing);
}

}  // namespace braid
