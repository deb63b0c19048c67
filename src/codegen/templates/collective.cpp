// One-shot all-reduce with everything that follows it: every rank reads the operand of every rank
// from the symmetric arena and sums in rank order in f32, so that all ranks hold the same bits. The
// grid is constant and the blocks loop over the pieces, so every block signals in every call
// (DESIGN §7). Its flags are two slots for each block, one for each barrier.
//
//     for each piece:     where the kernel computes its operand: into this rank's arena. Block b of
//                         every rank reads what the blocks b wrote, so its own signal suffices.
//     signal, wait        every peer has entered this step, so its operand is complete
//     for each piece:     sum over ranks, then the rest of the body
//     signal, wait        only at the group's last step of a run: no remote read outlives it

#include <algorithm>

#include "codegen/templates/body.h"

namespace braid {

void build_collective(const KernelSpec& spec, const BodyInfo& info, int ranks_per_device,
                      tile::Program& program) {
  tile::Builder b(program);
  const std::string& group = *info.collective->attr<std::string>("group");
  b.communicate(group, static_cast<int>(spec.body->groups().at(group).size));
  const PieceWork work = piece_work(spec, info);
  const std::int64_t most = std::max<std::int64_t>(1, kMaxCollectiveBlocks / ranks_per_device);
  program.grid = std::clamp<std::int64_t>(work.count.max(spec.body->symbols()), 1, most);
  program.flag_slots = 2 * program.grid.evaluate({});
  const tile::Id closing =
      b.param({.kind = KernelParam::Kind::kClosing, .index = 0, .expr = 0, .group = group});
  const auto for_each_piece = [&](auto emit) {
    const tile::Id loop = b.begin_for(b.program_id(), b.scalar(work.count), b.num_programs(), {});
    emit(b, spec, info, work, b.induction(loop));
    b.end_for(loop, {});
  };
  if (info.prologue >= 0) for_each_piece(emit_prologue);
  const tile::Id opening_slot = b.program_id();
  b.signal(opening_slot);
  b.wait(opening_slot);
  for_each_piece(emit_piece);
  const tile::Id closing_slot = b.map(tile::Fn::kAdd, {b.num_programs(), b.program_id()});
  b.signal(closing_slot, tile::kNone, closing);
  b.wait(closing_slot, tile::kNone, closing);
}

}  // namespace braid
