#pragma once

#include "runtime/cpu/translate/emitter.h"

// What the products of matrices have in common.

namespace braid::cpu {

/// Whether a product with this code does: one with f32 sums, where the device is asked to.
bool adds_as_hopper(Emitter& e, std::uint32_t code);
/// Emits the matrix product at `first`, and those right behind it that have the same shape and do
/// not need what others make but to add to it, in one call; returns how many.
std::uint32_t emit_mma(Emitter& e, std::uint32_t first, std::uint32_t last);
Value* constant_code(Emitter& e, const MatrixCode& code);
/// A constant in operand `n`: one of 0, `step`, ... below `end`.
std::uint8_t choice_of(const Instruction& i, std::size_t n, const Operand& operand, unsigned end,
                       unsigned step);
/// The number of a barrier, or of the threads that come to it; 0 where it is not given.
Value* uniform_operand(Emitter& e, const Instruction& i, std::size_t n);
/// Run-time helpers may read and write this register in its slot.
bool passes_in_slot(Emitter& e, const Operand& operand);
/// The offset in the register file where a helper finds an operand: its slot or scratch memory.
std::uint32_t place_of_input(Emitter& e, const Operand& operand, unsigned scratch_index);
/// The offset in the register file where a helper is to leave a result. What only a part of the
/// lanes may write goes through scratch memory.
std::uint32_t place_of_result(Emitter& e, const Operand& operand, unsigned scratch_index);
/// Behind the helper's call.
void take_result(Emitter& e, const Operand& operand, unsigned scratch_index);
/// The value of an operand that is the same for all lanes.
Value* first_lane(Emitter& e, const Operand& operand, unsigned bits);
/// Numbers the registers of wgmma instructions, and those that they are moved to or from: compilers
/// give sums other names as they like.
void number_accumulators(Emitter& e);
/// Tells checks of a use of such a register, but for that by wgmma itself.
void track_accumulators(Emitter& e, const Instruction& i);

}  // namespace braid::cpu
