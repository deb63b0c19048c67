#pragma once

#include "runtime/cpu/translate/emitter.h"

namespace braid::cpu {

AtomicKind atomic_kind(ptx::Type type);
/// Whether these are the types that the operation is for: numbers or bits.
bool operates_on(AtomicOp operation, ptx::Type type);
/// An atomic operation of the lanes, whose result is there or not.
void emit_atomic(Emitter& e, const Instruction& i, ptx::Space space);

}  // namespace braid::cpu
