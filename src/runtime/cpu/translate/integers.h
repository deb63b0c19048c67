#pragma once

#include "runtime/cpu/translate/emitter.h"

namespace braid::cpu {

Value* widen(Emitter& e, const Operand& operand, ptx::Type from, unsigned to);
/// The k-th of the parts of a word, with its sign or zeros above it.
Value* part(Emitter& e, Value* word, const Operand::Parts& parts, unsigned k, bool is_signed,
            unsigned bits);

}  // namespace braid::cpu
