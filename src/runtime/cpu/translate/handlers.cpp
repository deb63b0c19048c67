#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {

Handler* handler(Op op) {
  static constexpr Handler* kHandlers[] = {
#define PTX(op, names, modifiers, operands, handler, ...) &handler,
#include "runtime/cpu/ptx/opcodes.inc"
#undef PTX
  };
  return kHandlers[static_cast<std::size_t>(op)];
}

bool is_grouped(const Instruction& instruction) {
  return ptx::traits(instruction).unit == ptx::Unit::kMatrix &&
         handler(instruction.entry->op) == &op_elsewhere;
}

}  // namespace braid::cpu
