#include <algorithm>
#include <functional>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/plans.h"

// Global memory that warps go through from block to block.

namespace braid::cpu {

using ptx::Space;
using ptx::Special;

namespace {

/// The registers whose values may be others in another block: all but those made of numbers,
/// parameters and the places of threads in their block alone.
BitSet find_block_registers(const ptx::Function& function) {
  BitSet result(function.registers.size());
  const std::function<bool(const Operand&)> differs = [&](const Operand& operand) {
    if (operand.is_register()) return result.has(operand.index);
    if (operand.form == Operand::Form::kSpecial) {
      return static_cast<Special>(operand.index) >= Special::kCtaid;
    }
    return std::ranges::any_of(operand.elements, differs);
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (const Instruction& i : function.body) {
      const bool pure =
          has_result(i) &&
          (ptx::traits(i).is_pure() || (i.is(Op::kLd) && parse_access(i).space == Space::kParam));
      if (pure && std::none_of(i.operands.begin() + 1, i.operands.end(), differs)) continue;
      for (const int r : register_use(i).writes) {
        grows = grows || !result.has(r);
        result.add(r);
      }
    }
  }
  return result;
}

}  // namespace

std::vector<bool> find_streams(const ptx::Function& function) {
  std::vector<bool> streams(function.body.size());
  const BitSet block_registers = find_block_registers(function);
  for (std::size_t k = 0; k < function.body.size(); ++k) {
    const Instruction& i = function.body[k];
    if (!i.is(Op::kLd) && !i.is(Op::kSt)) continue;
    const Space space = parse_access(i).space;
    if (space != Space::kGlobal && space != Space::kGeneric) continue;
    const Operand& base = i.operands[i.is(Op::kLd) ? 1 : 0].elements[0];
    streams[k] = !base.is_register() || block_registers.has(base.index);
  }
  return streams;
}

}  // namespace braid::cpu
