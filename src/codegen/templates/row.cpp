// Row reduction: a block takes one row, or several short ones, with everything around the
// reductions in the same registers.

#include "codegen/templates/body.h"

namespace braid {

void build_row(const KernelSpec& spec, const BodyInfo& info, tile::Program& program) {
  tile::Builder b(program);
  const PieceWork work = piece_work(spec, info);
  program.grid = work.count;
  emit_piece(b, spec, info, work, b.program_id());
}

}  // namespace braid
