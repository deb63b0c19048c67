#include "runtime/cpu/translate/counts.h"

#include <llvm/IR/Constants.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "runtime/cpu/check/access_cost.h"
#include "runtime/cpu/run/bulk_copy.h"
#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"

// Counts cost little where they are the same each time: generated code adds to the tallies of its
// block, and of a line in shared memory where the lanes lie in a pattern that is known by now.

namespace braid::cpu {
namespace {

/// `tally`: the field of WarpContext with the tallies; `offset`: into them. Of one word, or
/// several.
void add_to(Emitter& e, std::size_t tally, std::size_t offset, Value* amount) {
  Value* tallies = e.pointer_to(e.field(tally, 64));
  Value* pointer = e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), tallies, offset);
  Value* old = e.ir.CreateAlignedLoad(amount->getType(), pointer, llvm::Align(8));
  e.ir.CreateAlignedStore(e.ir.CreateAdd(old, amount), pointer, llvm::Align(8));
}

/// An access to shared memory by lanes that are known, in places that are, but for their base.
void count_shared(Emitter& e, const Shape& shape, Value* base, AccessCode code,
                  std::uint32_t mask) {
  const bool atomic = code.kind == AccessCode::kAtomic || code.kind == AccessCode::kSwap;
  // Accesses of less than a word may straddle others, depending on where in a word the base is.
  std::array<llvm::Constant*, 4> amounts{};
  const auto amount_at = [&](std::uint64_t base_at, JoinedLoad joined) {
    std::array<std::uint64_t, 32> addresses{};
    for (std::size_t l = 0; l < 32; ++l) {
      constexpr std::uint64_t kOrigin = std::uint64_t{1} << 40U;  // offsets may be negative
      addresses[l] = kOrigin + base_at + static_cast<std::uint64_t>(shape.table[l]);
    }
    const SharedCost cost = shared_cost(addresses.data(), mask, code.bytes);
    const IssuedCost issued = issued_cost(cost, addresses.data(), mask, code.bytes, joined);
    const std::uint64_t atomics = atomic ? static_cast<std::uint64_t>(std::popcount(mask)) : 0;
    return llvm::ConstantDataVector::get(
        e.ir.getContext(),
        llvm::ArrayRef<std::uint64_t>(
            {1, cost.wavefronts, cost.conflicts, issued.requests, issued.wavefronts, atomics}));
  };
  const std::uint32_t step = std::min<std::uint32_t>(code.bytes, 4);
  for (std::uint32_t start = 0; start < 4; start += step) amounts[start] = amount_at(start, {});
  Value* amount = amounts[0];
  for (std::uint32_t start = step; start < 4; start += step) {
    if (amounts[start] == amounts[0]) continue;
    Value* here = e.ir.CreateICmpEQ(e.ir.CreateAnd(base, 3), e.ir.getInt64(start));
    amount = e.ir.CreateSelect(here, amounts[start], amount);
  }
  if (code.joined.parts > 1) {
    // The lanes as they are where the first of the joined loads begins at a multiple of their size.
    const std::uint64_t before = std::uint64_t{code.bytes} * code.joined.part;
    Value* wide = e.ir.getInt64(std::uint64_t{code.bytes} * code.joined.parts - 1);
    Value* offset = e.ir.CreateAnd(e.ir.CreateSub(base, e.ir.getInt64(before)), wide);
    Value* here = e.ir.CreateIsNull(offset);
    amount = e.ir.CreateSelect(here, amount_at(before, code.joined), amount);
  }
  static_assert(offsetof(LineTally, atomics) == offsetof(LineTally, shared_requests) + 40);
  add_to(e, offsetof(WarpContext, line_tally),
         count_place(e) * sizeof(LineTally) + offsetof(LineTally, shared_requests), amount);
}

}  // namespace

void count_block(Emitter& e, int block) {
  const auto add = [&](std::size_t member, Value* amount) {
    add_to(e, offsetof(WarpContext, block_tally),
           static_cast<std::size_t>(block) * sizeof(BlockTally) + member, amount);
  };
  if (e.mask == nullptr) {
    add(offsetof(BlockTally, full), e.ir.getInt64(1));
    return;
  }
  Value* lanes = e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, e.mask_bits);
  add(offsetof(BlockTally, partial), e.ir.getInt64(1));
  add(offsetof(BlockTally, lanes), e.ir.CreateZExt(lanes, e.ir.getInt64Ty()));
}

void count_parting(Emitter& e, int block, Value* lanes) {
  lanes = e.ir.CreateAnd(lanes, e.mask_bits);
  Value* parts = e.ir.CreateAnd(e.ir.CreateIsNotNull(lanes), e.ir.CreateICmpNE(lanes, e.mask_bits));
  add_to(e, offsetof(WarpContext, block_tally),
         static_cast<std::size_t>(block) * sizeof(BlockTally) + offsetof(BlockTally, parted),
         e.ir.CreateZExt(parts, e.ir.getInt64Ty()));
}

std::uint32_t count_place(Emitter& e) {
  return e.instrumentation.counts ? static_cast<std::uint32_t>(e.sites.place_of(e.line))
                                  : kNotCounted;
}

void count_barrier(Emitter& e) {
  add_to(e, offsetof(WarpContext, line_tally),
         count_place(e) * sizeof(LineTally) + offsetof(LineTally, barriers), e.ir.getInt64(1));
}

void count_access(Emitter& e, Address& address, AccessCode code, Value* lanes) {
  // Such memory belongs to no rank.
  if (address.space == ptx::Space::kLocal || address.space == ptx::Space::kConst) return;
  const bool shared = address.space == ptx::Space::kShared;
  const auto* known_lanes = llvm::dyn_cast<llvm::ConstantInt>(lanes);
  if (shared && address.table && known_lanes != nullptr) {
    count_shared(e, address.shape, address.base, code,
                 static_cast<std::uint32_t>(known_lanes->getZExtValue()));
    return;
  }
  const bool uniform = address.table && address.shape.is_uniform();
  if (address.space == ptx::Space::kGlobal &&
      (uniform || (address.table && is_consecutive(address.shape, code.bytes)))) {
    e.call("count_row",
           {e.context, address.base, uniform ? 0 : code.bytes, lanes, code, count_place(e)});
    return;
  }
  const bool global = address.space == ptx::Space::kGlobal;
  e.call(shared   ? "count_shared"
         : global ? "count_global"
                  : "count_access",
         {e.context, e.to_scratch(0, address_lanes(e, address)), lanes, code, count_place(e)});
}

std::vector<JoinedLoad> find_joined_loads(const ptx::Function& function, const ControlFlow& flow) {
  std::vector<JoinedLoad> joined(function.body.size());
  struct Load {
    std::int64_t offset;
    std::uint32_t at;
  };
  std::map<std::pair<int, unsigned>, std::vector<Load>> open;  // by register, and bytes
  const auto close = [&](std::vector<Load>& loads, unsigned bytes) {
    std::ranges::sort(loads, [](const Load& a, const Load& b) { return a.offset < b.offset; });
    for (std::size_t i = 0; i < loads.size();) {
      std::uint8_t parts = 1;
      for (std::uint8_t more : {4, 2}) {
        const auto all = static_cast<std::int64_t>(more) * bytes;
        const auto last = i + more - 1U;
        if (parts == 1 && all <= 16 && loads[i].offset % all == 0 && last < loads.size() &&
            loads[last].offset == loads[i].offset + all - bytes) {
          parts = more;
        }
      }
      for (std::uint8_t k = 0; k < parts; ++k) joined[loads[i + k].at] = {parts, k};
      i += parts;
    }
    loads.clear();
  };
  for (const Block& block : flow.blocks()) {
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const Instruction& instruction = function.body[i];
      const ptx::Unit unit = ptx::traits(instruction).unit.value_or(ptx::Unit::kMove);
      const bool plain = instruction.is(ptx::Op::kLd);
      const bool acts = !plain && (unit == ptx::Unit::kMemory || unit == ptx::Unit::kSync);
      for (auto& [key, loads] : open) {
        const auto& writes = register_use(instruction).writes;
        const bool moves = std::ranges::find(writes, key.first) != writes.end();
        if (acts || moves) close(loads, key.second);
      }
      if (!plain || instruction.guard >= 0) continue;
      const MemoryAccess access = parse_access(instruction);
      const Operand& from = instruction.operands[1];
      const unsigned bytes = access.count * access.type.total_bits() / 8;
      if (access.space != ptx::Space::kShared || bytes < 4 || bytes > 8 ||
          !from.elements[0].is_register()) {
        continue;
      }
      open[{from.elements[0].index, bytes}].push_back({static_cast<std::int64_t>(from.bits), i});
    }
    for (auto& [key, loads] : open) close(loads, key.second);
  }
  return joined;
}

}  // namespace braid::cpu
