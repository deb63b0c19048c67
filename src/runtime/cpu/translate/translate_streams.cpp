#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/translator.h"

// Global memory that warps go through from block to block.

namespace braid::cpu {

using ptx::Space;

/// Gives a place to every access that may go through global memory from block to block.
void Translator::find_streams(const std::function<std::uint32_t(std::uint32_t)>& place) {
  stream_slots_.assign(function_.body.size(), -1);
  if (instrumentation_.checks || instrumentation_.counts) return;
  for (std::size_t k = 0; k < function_.body.size(); ++k) {
    const Instruction& i = function_.body[k];
    if (!i.is(Op::kLd) && !i.is(Op::kSt)) continue;
    const Space space = parse_access(i).space;
    if (space != Space::kGlobal && space != Space::kGeneric) continue;
    stream_slots_[k] = static_cast<std::int32_t>(place(8));
  }
}

/// Fetches what the access will touch next time, if that is as far on as this time was from the
/// last: mostly in the warp's next block. Blocks with barriers read in bursts, which the host's own
/// prefetchers lose track of. What stands in the place at first does no harm.
void Translator::prefetch_next(const Instruction& i, const Access& access, const Address& address) {
  const std::int32_t slot = stream_slots_[static_cast<std::size_t>(&i - function_.body.data())];
  if (slot < 0) return;
  Value* pointer = register_file(static_cast<std::uint32_t>(slot));
  Value* last = b_.CreateAlignedLoad(b_.getInt64Ty(), pointer, llvm::Align(8));
  b_.CreateAlignedStore(address.base, pointer, llvm::Align(8));
  Value* next = b_.CreateAdd(address.base, b_.CreateSub(address.base, last));
  const unsigned bytes = 4 * access.count * access.type.total_bits();
  constexpr unsigned kLine = 64;
  for (unsigned at = 0; at < bytes; at += kLine) {
    Value* line = b_.CreateIntToPtr(b_.CreateAdd(next, b_.getInt64(at)), b_.getPtrTy());
    constexpr unsigned kKeep = 3, kData = 1;
    b_.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {b_.getPtrTy()},
        {line, b_.getInt32(i.is(Op::kSt) ? 1 : 0), b_.getInt32(kKeep), b_.getInt32(kData)});
  }
}

}  // namespace braid::cpu
