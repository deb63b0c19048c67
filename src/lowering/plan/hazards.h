#pragma once

#include "lowering/plan/program.h"

namespace braid {

/// Checks that accesses to the same bytes are ordered where they must be. A read must find the
/// complete value of its buffer; a write must follow all earlier accesses. Between streams, events
/// order steps. Bytes that a peer reads may be written again only after the group's next barrier;
/// where a peer writes, all other accesses must precede the group's last barrier. Kernels wait for
/// their peers themselves; a copy from a peer reads what was there at the group's last barrier, and
/// a copy to a peer is complete at the next one. A kernel may write over one of its inputs if it
/// promises to have read it (Requirements::in_place). Two slices of a buffer never overlap each
/// other, but overlap everything else in its bytes. Flags and scratch overlap nothing. Runs follow
/// each other. Ids must be in range (verify). Throws kInternal, naming steps and buffers.
void check_hazards(const Program& program);

}  // namespace braid
