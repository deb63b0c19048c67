#pragma once

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/translate/emitter.h"

// What translates each instruction: free functions in handlers/, named by the table of instructions
// (opcodes.inc). An instruction is a row there and a function here.

namespace braid::cpu {

/// Returns the value for the first operand, or null after it has written all results itself.
using Handler = Value*(Emitter& e, const Instruction& i);

#define PTX(op, names, modifiers, operands, handler, ...) Handler handler;
#include "runtime/cpu/ptx/opcodes.inc"
#undef PTX

Handler* handler(Op op);

/// The matrix products that emit_mma() takes, several at once.
bool is_grouped(const Instruction& instruction);

}  // namespace braid::cpu
