#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <functional>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/interleave.h"

// Loads, stores, and copies to shared memory (cp.async).

namespace braid::cpu {
namespace {

using llvm::FixedVectorType;
using ptx::Kind;
using ptx::Space;
using ptx::Special;
using ptx::Type;

/// A safe address for a masked access. An access without active lanes may point to the pages behind
/// a buffer, as in warps with nothing to load; processors take a hundred nanoseconds to find that
/// it touches none of them.
Value* somewhere(Emitter& e, Value* pointer) {
  Value* anywhere = e.ir.CreateIsNotNull(e.execution_bits());
  return e.ir.CreateSelect(anywhere, pointer, e.scratch(0));
}

/// Copies what each of the lanes accesses, one after the other.
void copy_lanes(Emitter& e, Value* to, Value* from, const MemoryAccess& access, Value* lanes) {
  const unsigned bits = access.type.total_bits();
  llvm::Type* type = FixedVectorType::get(e.ir.getIntNTy(bits), access.count);
  llvm::BasicBlock* before = e.ir.GetInsertBlock();
  llvm::BasicBlock* loop = e.new_block("lane");
  llvm::BasicBlock* next = e.new_block("next");
  Value* none = e.ir.getInt32(0);
  e.ir.CreateCondBr(e.ir.CreateICmpEQ(lanes, none), next, loop);
  e.ir.SetInsertPoint(loop);
  llvm::PHINode* left = e.ir.CreatePHI(lanes->getType(), 2);
  Value* lane =
      e.ir.CreateIntrinsic(e.ir.getInt32Ty(), llvm::Intrinsic::cttz, {left, e.ir.getTrue()});
  lane = e.ir.CreateZExt(lane, e.ir.getInt64Ty());
  Value* value =
      e.ir.CreateAlignedLoad(type, e.ir.CreateInBoundsGEP(type, from, lane), llvm::Align(bits / 8));
  e.ir.CreateAlignedStore(value, e.ir.CreateInBoundsGEP(type, to, lane), llvm::Align(bits / 8));
  Value* rest = e.ir.CreateAnd(left, e.ir.CreateSub(left, e.ir.getInt32(1)));
  e.ir.CreateCondBr(e.ir.CreateICmpEQ(rest, none), next, loop);
  left->addIncoming(lanes, before);
  left->addIncoming(rest, loop);
  e.ir.SetInsertPoint(next);
}

/// Runs `otherwise` where an access, that may be masked, is not one of all lanes; returns where
/// it finds whole vectors: in memory, or in scratch memory then.
Value* whole_vectors(Emitter& e, Value* pointer, Value* lanes,
                     llvm::function_ref<void()> otherwise) {
  llvm::BasicBlock* before = e.ir.GetInsertBlock();
  llvm::BasicBlock* some = e.new_block("some");
  llvm::BasicBlock* next = e.new_block("next");
  e.ir.CreateCondBr(e.ir.CreateICmpEQ(lanes, e.ir.getInt32(~0U)), next, some);
  e.ir.SetInsertPoint(some);
  Value* apart = e.scratch(8);
  otherwise();
  llvm::BasicBlock* end = e.ir.GetInsertBlock();
  e.ir.CreateBr(next);
  e.ir.SetInsertPoint(next);
  llvm::PHINode* where = e.ir.CreatePHI(pointer->getType(), 2);
  where->addIncoming(pointer, before);
  where->addIncoming(apart, end);
  return where;
}

/// The values that lanes keep in the registers of a wide load when their guard is false; empty if
/// no lane does, or if a register holds something other than a loaded value.
std::vector<Value*> values_to_keep(Emitter& e, const MemoryAccess& access,
                                   llvm::ArrayRef<Operand> results) {
  std::vector<Value*> old;
  if (e.guard_lanes == nullptr || access.count == 1) return old;
  for (const Operand& result : results) {
    if (!result.is_register() || e.register_bits(result.index) != access.type.total_bits() ||
        !e.shapes.shape(result.index).is_vector()) {
      return {};
    }
    old.push_back(e.load_register(result.index).value);
  }
  return old;
}

/// A vector access under a mask costs the host more than one of each lane; and most are of all.
void load_consecutive(Emitter& e, const MemoryAccess& access, Address& address,
                      llvm::ArrayRef<Operand> results) {
  const unsigned bits = access.type.total_bits();
  const unsigned n = access.count;
  auto* type = FixedVectorType::get(e.ir.getIntNTy(bits), 32 * n);
  llvm::Constant* zeros = llvm::Constant::getNullValue(type);
  Value* pointer = e.pointer_to(address.base);
  const llvm::Align align(bits / 8);
  Value* mask = e.execution_mask();
  const std::vector<Value*> old = values_to_keep(e, access, results);
  Value* all = nullptr;
  if (mask != nullptr && n == 1) {
    all = e.ir.CreateMaskedLoad(type, somewhere(e, pointer), align, mask, zeros);
  } else {
    if (mask != nullptr) {
      Value* lanes = e.execution_bits();
      pointer = whole_vectors(e, pointer, lanes, [&] {
        e.ir.CreateAlignedStore(old.empty() ? zeros : interleave(e.ir, old), e.scratch(8),
                                llvm::Align(64));
        copy_lanes(e, e.scratch(8), pointer, access, lanes);
      });
    }
    all = e.ir.CreateAlignedLoad(type, pointer, align);
  }
  const std::vector<Value*> parts = e.wide.take_apart(all, n);
  if (!old.empty()) e.guard_lanes = nullptr;  // what the others keep is among them
  for (unsigned k = 0; k < n; ++k) write_loaded(e, results[k], parts[k], access.type);
}

/// Strong accesses: each lane once, in lane order, with the ordering asked for.
void load_strong(Emitter& e, const MemoryAccess& access, Address& address,
                 llvm::ArrayRef<Operand> results) {
  const unsigned bits = access.type.total_bits();
  if (e.on_bases && access.count == 1 && e.guard_lanes == nullptr) {
    Value* pointer = e.pointer_to(address.base);
    llvm::LoadInst* load =
        e.ir.CreateAlignedLoad(e.integer(bits, true), pointer, llvm::Align(bits / 8));
    load->setAtomic(access.ordering);
    write_loaded(e, results[0], load, access.type);
    return;
  }
  Value* addresses = address_pointer(e, address);
  e.call("load_strong", {e.scratch(8), addresses, e.execution_bits(), bits / 8, access.count});
  if (e.on_bases) e.result_shape = Shape::vector();
  for (unsigned k = 0; k < access.count; ++k) {
    Value* value = e.from_scratch(8 + 2 * k, e.integer(bits, false));
    if (e.on_bases) value = call_first_active(e, value);
    write_loaded(e, results[k], value, access.type);
  }
}

/// A call costs the code generator one instruction; the host's own gathers of 32 addresses cost it
/// dozens, and take as long to run.
void load_apart(Emitter& e, const MemoryAccess& access, Value* lanes,
                llvm::ArrayRef<Operand> results) {
  const unsigned bits = access.type.total_bits();
  Value* addresses = e.to_scratch(0, lanes);
  e.call("load_apart", {e.scratch(8), addresses, e.execution_bits(), bits / 8, access.count});
  for (unsigned k = 0; k < access.count; ++k) {
    write_loaded(e, results[k], e.from_scratch(8 + 2 * k, e.integer(bits, false)), access.type);
  }
}

Value* dump_address(Emitter& e) {
  return e.ir.CreateAdd(e.ir.CreatePtrToInt(e.context, e.ir.getInt64Ty()),
                        e.ir.getInt64(offsetof(WarpContext, dump)));
}

void store_strong(Emitter& e, const MemoryAccess& access, Address& address,
                  llvm::ArrayRef<Value*> values) {
  const unsigned bits = access.type.total_bits();
  Value* addresses = address_pointer(e, address);
  for (unsigned k = 0; k < access.count; ++k) e.to_scratch(8 + 2 * k, values[k]);
  e.call("store_strong", {e.scratch(8), addresses, e.execution_bits(), bits / 8, access.count});
}

/// The last of these lanes; any lane where there is none.
Value* last_of(Emitter& e, Value* lanes) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(lanes)) {
    return e.ir.getInt32((known->getValue().getActiveBits() + 31) % 32);
  }
  Value* before =
      e.ir.CreateIntrinsic(e.ir.getInt32Ty(), llvm::Intrinsic::ctlz, {lanes, e.ir.getFalse()});
  return e.ir.CreateAnd(e.ir.CreateXor(before, 31), 31);
}

/// Lanes that copy nothing read nothing. The sanitizer takes a part of `bytes` for all of them.
void check_copy(Emitter& e, Address& to, Address& from, Value* sizes, std::uint8_t bytes) {
  if (!e.instrumentation.checks && !e.instrumentation.counts) return;
  const AccessCode read{.kind = AccessCode::kCopyFrom, .bytes = bytes};
  if (sizes == nullptr) {
    check(e, from, read);
  } else {
    Value* reading = e.ir.CreateAnd(e.execution_bits(), e.lane_bits(e.ir.CreateIsNotNull(sizes)));
    if (e.instrumentation.checks) judge(e, from, read, reading);
    if (e.instrumentation.counts) {
      e.call("count_copy", {e.context, e.to_scratch(0, address_lanes(e, from)),
                            e.to_scratch(8, sizes), reading, read, count_place(e)});
    }
  }
  check(e, to, {.kind = AccessCode::kCopyTo, .bytes = bytes});
}

/// Fetches what the access will touch next time, if that is as far on as this time was from the
/// last: mostly in the warp's next block. Blocks with barriers read in bursts, which the host's own
/// prefetchers lose track of. Into the second cache, without a claim to write: the first one has
/// few places for lines on their way, which a burst of them takes from the accesses of this block.
/// What stands in the place at first does no harm.
void prefetch_next(Emitter& e, const Instruction& i, const MemoryAccess& access,
                   const Address& address) {
  const std::int32_t slot = e.stream_slots[&i - e.function.body.data()];
  if (slot < 0 || e.recomputing) return;
  Value* pointer = e.register_file(static_cast<std::uint32_t>(slot));
  Value* last = e.ir.CreateAlignedLoad(e.ir.getInt64Ty(), pointer, llvm::Align(8));
  e.ir.CreateAlignedStore(address.base, pointer, llvm::Align(8));
  Value* next = e.ir.CreateAdd(address.base, e.ir.CreateSub(address.base, last));
  const unsigned bytes = 4 * access.count * access.type.total_bits();
  constexpr unsigned kLine = 64;
  for (unsigned at = 0; at < bytes; at += kLine) {
    Value* line = e.pointer_to(e.ir.CreateAdd(next, e.ir.getInt64(at)));
    constexpr unsigned kRead = 0, kSecondCache = 2, kData = 1;
    e.ir.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {e.ir.getPtrTy()},
        {line, e.ir.getInt32(kRead), e.ir.getInt32(kSecondCache), e.ir.getInt32(kData)});
  }
}

}  // namespace

Value* op_load(Emitter& e, const Instruction& i) {
  // A cache policy, if there is one, has no meaning here.
  const MemoryAccess access = parse_access(i);
  const std::vector<Operand> results = elements_of(i, i.operands[0], access.count);
  Address where = address(e, i, i.operands[1], access.space);
  check_load(e, where, access, results);
  const unsigned bits = access.type.total_bits();
  if (access.strong) {
    load_strong(e, access, where, results);
    return nullptr;
  }
  if (e.on_bases) {
    Value* base = where.base;
    if (e.guard_lanes != nullptr) {
      Value* any = e.ir.CreateIsNotNull(e.execution_bits());
      base = e.ir.CreateSelect(any, base, dump_address(e));
    }
    for (unsigned k = 0; k < access.count; ++k) {
      Value* pointer = e.pointer_to(e.ir.CreateAdd(base, e.ir.getInt64(k * bits / 8)));
      llvm::LoadInst* load =
          e.ir.CreateAlignedLoad(e.integer(bits, true), pointer, llvm::Align(bits / 8));
      if (access.space == Space::kParam) {
        load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                          llvm::MDNode::get(e.ir.getContext(), {}));
      }
      write_loaded(e, results[k], load, access.type);
    }
    return nullptr;
  }
  if (where.table && is_consecutive(where.shape, access.count * bits / 8)) {
    load_consecutive(e, access, where, results);
    prefetch_next(e, i, access, where);
    return nullptr;
  }
  load_apart(e, access, address_lanes(e, where), results);
  return nullptr;
}

Value* op_store(Emitter& e, const Instruction& i) {
  const MemoryAccess access = parse_access(i);
  const std::vector<Operand> sources = elements_of(i, i.operands[1], access.count);
  Address where = address(e, i, i.operands[0], access.space);
  check_store(e, where, access, sources);
  const unsigned bits = access.type.total_bits();
  const llvm::Align align(bits / 8);
  const bool uniform_address = where.table && where.shape.is_uniform();
  if (uniform_address && (!access.strong || access.count == 1)) {
    // The last active lane wins, as one of them must.
    Value* lanes = e.execution_bits();
    Value* last = nullptr;
    for (unsigned k = 0; k < access.count; ++k) {
      Value* value = nullptr;
      if (e.shapes.operand_shape(sources[k]).is_uniform()) {
        value = e.read_scalar(sources[k], bits);
      } else {
        if (last == nullptr) last = last_of(e, lanes);
        value = e.ir.CreateExtractElement(e.read_lanes(sources[k], bits), last);
      }
      Value* pointer = e.pointer_to(e.ir.CreateAdd(where.base, e.ir.getInt64(k * bits / 8)));
      if (e.guard_lanes != nullptr) pointer = somewhere(e, pointer);
      llvm::StoreInst* store = e.ir.CreateAlignedStore(value, pointer, align);
      if (access.strong) store->setAtomic(access.ordering);
    }
    return nullptr;
  }
  std::vector<Value*> values;
  for (const Operand& source : sources) values.push_back(e.read_lanes(source, bits));
  if (access.strong) {
    store_strong(e, access, where, values);
    return nullptr;
  }
  Value* mask = e.execution_mask();
  Value* lanes = e.execution_bits();
  if (where.table && is_consecutive(where.shape, access.count * bits / 8)) {
    Value* all = e.wide.put_together(values);
    Value* pointer = e.pointer_to(where.base);
    if (mask == nullptr) {
      e.ir.CreateAlignedStore(all, pointer, align);
    } else if (access.count == 1) {
      // Often those of one warp of a block. The host's compiler moves here what is computed for
      // them.
      e.split(e.ir.CreateIsNotNull(e.execution_bits()), "some",
              [&] { e.ir.CreateMaskedStore(all, pointer, align, mask); });
    } else {
      Value* to =
          e.ir.CreateSelect(e.ir.CreateICmpEQ(lanes, e.ir.getInt32(~0U)), pointer, e.scratch(8));
      e.ir.CreateAlignedStore(all, to, align);
      whole_vectors(e, pointer, lanes,
                    [&] { copy_lanes(e, pointer, e.scratch(8), access, lanes); });
    }
    prefetch_next(e, i, access, where);
    return nullptr;
  }
  for (unsigned k = 0; k < access.count; ++k) e.to_scratch(8 + 2 * k, values[k]);
  e.call("store_apart",
         {e.scratch(8), e.to_scratch(0, address_lanes(e, where)), lanes, bits / 8, access.count});
  return nullptr;
}

/// It only counts, for each lane a sector. It may point anywhere, so the sanitizer does not hear of
/// it.
Value* op_prefetch(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.counts || ptx::has_modifier(i, "local") ||
      ptx::has_modifier(i, "tensormap")) {
    return nullptr;
  }
  const bool global = ptx::has_modifier(i, "global");
  Address where = address(e, i, i.operands[0], global ? Space::kGlobal : Space::kGeneric);
  constexpr std::uint8_t kSector = SectorSet::kBytes;
  Value* sectors =
      e.ir.CreateAnd(address_lanes(e, where), e.splat(e.ir.getInt64(~std::uint64_t{kSector - 1})));
  e.call("count_access",
         {e.context, e.to_scratch(0, sectors), e.execution_bits(),
          AccessCode{.kind = AccessCode::kCopyFrom, .bytes = kSector}, count_place(e)});
  return nullptr;
}

Value* op_fence(Emitter& e, const Instruction& i) {
  if (e.instrumentation.checks && i.is(Op::kFenceInit)) {
    e.call("check_fence_inits", {e.context});
  } else if (e.instrumentation.checks) {
    e.call("check_fence", {e.context, scope_of(Choices(i))});
  }
  e.ir.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
  return nullptr;
}

Value* op_copy_group(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.checks) return nullptr;
  // wait_all counts what is not committed as well.
  if (!i.is(Op::kCpAsyncWait)) e.call("check_commit", {e.context});
  if (i.is(Op::kCpAsyncCommit)) return nullptr;
  Value* pending = i.is(Op::kCpAsyncWaitAll) ? e.ir.getInt32(0) : e.read_scalar(i.operands[0], 32);
  e.call("check_wait", {e.context, pending});
  return nullptr;
}

/// Copies at once: a copy may be over at any time before its wait.
Value* op_copy_async(Emitter& e, const Instruction& i) {
  const std::uint64_t bytes = i.operands[2].bits;
  if (bytes != 4 && bytes != 8 && bytes != 16) bad(i, "the size must be 4, 8 or 16");
  Address to = address(e, i, i.operands[0], Space::kShared);
  Address from = address(e, i, i.operands[1], Space::kGlobal);
  Value* size = nullptr;
  // A cache policy, the last operand then, has no meaning here.
  const std::size_t policies = Choices(i).has("L2::cache_hint") ? 1 : 0;
  if (i.operands.size() > 3 + policies) {
    const Operand& operand = i.operands[3];
    const bool predicate = operand.is_register() && e.register_bits(operand.index) == 1;
    if (predicate) {
      // ignore-src: true means zeros.
      size = e.ir.CreateSelect(
          e.ir.CreateXor(e.read_lanes(operand, 1),
                         operand.negated ? llvm::Constant::getAllOnesValue(e.integer(1, false))
                                         : llvm::Constant::getNullValue(e.integer(1, false))),
          e.splat(e.ir.getInt32(0)), e.splat(e.ir.getInt32(static_cast<std::uint32_t>(bytes))));
    } else {
      size = e.read_lanes(operand, 32);
    }
  }
  check_copy(e, to, from, size, static_cast<std::uint8_t>(bytes));
  Value* sources = e.to_scratch(0, address_lanes(e, from));
  Value* offsets = address_offsets(e, to, 4);
  Value* target = e.pointer_to(to.base);
  Value* sizes =
      size == nullptr ? llvm::ConstantPointerNull::get(e.ir.getPtrTy()) : e.to_scratch(8, size);
  e.call("copy_async", {target, offsets, sources, sizes, e.execution_bits(), bytes});
  return nullptr;
}

Value* op_nothing(Emitter& /*e*/, const Instruction& /*i*/) { return nullptr; }

Value* op_elsewhere(Emitter& /*e*/, const Instruction& i) {
  bad(i, "has no place here");
  return nullptr;
}

Value* op_policy(Emitter& e, const Instruction& /*i*/) { return e.uniform(e.ir.getInt64(0)); }

}  // namespace braid::cpu
