#pragma once

#include "lowering/plan/program.h"

namespace braid {

/// Checks that no two accesses to the same bytes meet that must not: a read finds the value that
/// its buffer was given, complete; a write waits for all earlier accesses. Between streams that
/// takes events. What a peer reads is written again only after the group's next barrier; where a
/// peer writes, all other accesses lie before the group's last barrier. Kernels wait for their
/// peers by themselves; a copy from a peer reads what was there at the group's last barrier, and
/// one to a peer is over at the next. A kernel may write where an input of it lies if it promises
/// to have read that (Requirements::in_place). Two slices of a buffer lie apart, and meet all else
/// that its bytes hold. Flags and scratch overlap nothing. One run follows another. Ids must be in
/// range (verify). Throws kInternal, naming steps and buffers.
void check_hazards(const Program& program);

}  // namespace braid
