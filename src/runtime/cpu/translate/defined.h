#pragma once

#include <functional>
#include <string_view>

#include "runtime/cpu/translate/emitter.h"

// Which registers are defined, in kernels that are checked.

namespace braid::cpu {

bool is_unread(Emitter& e, const Operand& result);
/// Finds the registers that a thread may read before it wrote them, which are those that live on
/// entry, those that lanes outside of a shuffle give, and those computed from them; gives each a
/// word with the lanes where it is defined.
void find_undefined(Emitter& e, const std::function<std::uint32_t(std::uint32_t)>& place);
/// The lanes that run the instruction, of those of the current block.
Value* lanes_of_guard(Emitter& e, const Instruction& i);
/// Tells the sanitizer of those of `lanes` where a register of the operand is undefined.
void check_defined(Emitter& e, const Operand& operand, Value* lanes, std::string_view use);
/// Tells the sanitizer, after a store whose addresses are in scratch memory, in which lanes its
/// source is undefined: `bytes` bytes, `offset` behind the address.
void check_stored(Emitter& e, const Operand& source, unsigned offset, unsigned bytes);
/// Checks what an instruction that is emitted next reads for a branch, an address or a store, and
/// notes where its results are defined.
void track(Emitter& e, const Instruction& i);
/// Tells the sanitizer in which lanes each value that ptx::is_choice() names counts.
void track_choice(Emitter& e, const Instruction& i);

}  // namespace braid::cpu
