#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <functional>

#include "runtime/cpu/translate/translator.h"

// Global memory that warps go through from block to block.

namespace braid::cpu {

using ptx::Space;
using ptx::Special;

/// The registers whose values may be others in another block: all but those made of numbers,
/// parameters and the places of threads in their block alone.
BitSet Translator::find_block_registers() const {
  BitSet result(function_.registers.size());
  const std::function<bool(const Operand&)> differs = [&](const Operand& operand) {
    if (operand.is_register()) return result.has(operand.index);
    if (operand.form == Operand::Form::kSpecial) {
      return static_cast<Special>(operand.index) >= Special::kCtaid;
    }
    return std::ranges::any_of(operand.elements, differs);
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (const Instruction& i : function_.body) {
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

/// Gives a place to every access that may go through global memory from block to block.
void Translator::find_streams(const std::function<std::uint32_t(std::uint32_t)>& place) {
  stream_slots_.assign(function_.body.size(), -1);
  if (instrumentation_.checks || instrumentation_.counts) return;
  const BitSet block_registers = find_block_registers();
  for (std::size_t k = 0; k < function_.body.size(); ++k) {
    const Instruction& i = function_.body[k];
    if (!i.is(Op::kLd) && !i.is(Op::kSt)) continue;
    const Space space = parse_access(i).space;
    if (space != Space::kGlobal && space != Space::kGeneric) continue;
    const Operand& base = i.operands[i.is(Op::kLd) ? 1 : 0].elements[0];
    if (base.is_register() && !block_registers.has(base.index)) continue;
    stream_slots_[k] = static_cast<std::int32_t>(place(8));
  }
}

/// Fetches what the access will touch next time, if that is as far on as this time was from the
/// last: mostly in the warp's next block. Blocks with barriers read in bursts, which the host's own
/// prefetchers lose track of. Into the second cache, without a claim to write: the first one has
/// few places for lines on their way, which a burst of them takes from the accesses of this block.
/// What stands in the place at first does no harm.
void Translator::prefetch_next(const Instruction& i, const Access& access, const Address& address) {
  const std::int32_t slot = stream_slots_[&i - function_.body.data()];
  if (slot < 0 || recomputing_) return;
  Value* pointer = register_file(static_cast<std::uint32_t>(slot));
  Value* last = b_.CreateAlignedLoad(b_.getInt64Ty(), pointer, llvm::Align(8));
  b_.CreateAlignedStore(address.base, pointer, llvm::Align(8));
  Value* next = b_.CreateAdd(address.base, b_.CreateSub(address.base, last));
  const unsigned bytes = 4 * access.count * access.type.total_bits();
  constexpr unsigned kLine = 64;
  for (unsigned at = 0; at < bytes; at += kLine) {
    Value* line = pointer_to(b_.CreateAdd(next, b_.getInt64(at)));
    constexpr unsigned kRead = 0, kSecondCache = 2, kData = 1;
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {line, b_.getInt32(kRead), b_.getInt32(kSecondCache), b_.getInt32(kData)});
  }
}

}  // namespace braid::cpu
