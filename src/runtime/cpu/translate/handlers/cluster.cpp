
#include <algorithm>

#include "runtime/cpu/run/mbarrier.h"
#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/atomics.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"

// mbarrier objects, and clusters of blocks.

namespace braid::cpu {
namespace {

using ptx::Space;

/// The space of st.async's operands; without a modifier any space.
Space async_space(const ptx::Choices& mods) {
  return mods.has("shared::cluster") ? Space::kCluster : Space::kGeneric;
}

/// Emits the operation of the lanes, and returns those whose test held.
Value* mbarrier(Emitter& e, Address& where, MbarrierCode code, AccessCode access, Value* counts,
                Value* states) {
  // Knowledge is handed on by phases, which the helper reports.
  code.orders = access.order == AccessCode::kRelease || access.order == AccessCode::kAcquire;
  code.wide = access.scope > 1;
  if (code.orders) access.order = AccessCode::kRelaxed;
  check(e, where, access);
  llvm::Type* words = e.integer(32, false);
  e.to_scratch(8, counts == nullptr ? llvm::ConstantInt::get(words, 1) : counts);
  if (states != nullptr) e.to_scratch(12, states);
  return e.call("mbarrier",
                {e.context, e.to_scratch(0, address_lanes(e, where)), e.scratch(8), e.scratch(12),
                 e.execution_bits(), code, e.line},
                e.ir.getInt32Ty());
}

/// Tells the mbarrier of operand `n` that bytes have come.
void complete_bytes(Emitter& e, const Instruction& i, std::size_t n, Space space, Value* bytes) {
  Address where = address(e, i, i.operands[n], space);
  mbarrier(e, where, {.what = MbarrierCode::kComplete},
           {.kind = AccessCode::kAtomic, .order = AccessCode::kRelease, .scope = 2, .bytes = 8},
           bytes, nullptr);
}

}  // namespace

Address barrier_address(Emitter& e, const Instruction& i, const Operand& operand) {
  const Choices mods(i);
  const bool shared = mods.has("shared::cta") || mods.has("shared");
  return address(e, i, operand,
                 mods.has("shared::cluster") ? Space::kCluster
                 : shared                    ? Space::kShared
                                             : Space::kGeneric);
}

/// Operations on an mbarrier are atomic for the cluster. A scope, of the block by default, says for
/// whom they order other accesses; code that arrives at barriers of other blocks leaves it out.
Value* op_mbarrier(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool returns = i.entry->has_result();
  const bool tests = i.is(Op::kMbarrierTest);
  Address where = barrier_address(e, i, i.operands[returns ? 1 : 0]);
  MbarrierCode code;
  AccessCode access{.kind = AccessCode::kAtomic,
                    .order = mods.has("relaxed") ? AccessCode::kRelaxed : AccessCode::kRelease,
                    .scope = 2,
                    .bytes = 8};
  code.expects = i.is(Op::kMbarrierArriveExpect) || i.is(Op::kMbarrierDropExpect);
  code.keeps_phase = mods.has("noComplete");
  code.parity = mods.has("parity");
  if (i.is(Op::kMbarrierInit) || i.is(Op::kMbarrierInval)) {
    code.what = i.is(Op::kMbarrierInit) ? MbarrierCode::kInit : MbarrierCode::kInval;
    access = {.kind = AccessCode::kStore, .bytes = 8};
  } else if (i.is(Op::kMbarrierDrop) || i.is(Op::kMbarrierDropExpect)) {
    code.what = MbarrierCode::kDrop;
  } else if (i.is(Op::kMbarrierTx)) {
    code.what = mods.name() == 0 ? MbarrierCode::kExpect : MbarrierCode::kComplete;
    access.order = AccessCode::kRelaxed;
  } else if (tests) {
    code.what = MbarrierCode::kTest;
    access.kind = AccessCode::kLoad;
    access.order = mods.has("relaxed") ? AccessCode::kRelaxed : AccessCode::kAcquire;
  }
  const std::size_t second = returns ? 2 : 1;
  Value* counts = nullptr;
  Value* states = nullptr;
  if (i.operands.size() > second) {
    const bool by_state = tests && !code.parity;
    (by_state ? states : counts) = e.read_lanes(i.operands[second], by_state ? 64 : 32);
  }
  Value* complete = mbarrier(e, where, code, access, counts, states);
  if (!returns) return nullptr;
  if (!tests) return e.from_scratch(12, e.integer(64, false));
  return e.on_bases ? e.uniform(e.ir.CreateIsNotNull(complete))
                    : e.ir.CreateBitCast(complete, e.integer(1, false));
}

Value* op_pending_count(Emitter& e, const Instruction& i) {
  return e.ir.CreateAnd(e.resize(e.read(i.operands[1], 64), 32, false), Mbarrier::kMaxCount);
}

/// Copies are over when they are issued: the arrival is at once. Without .noinc the arrival is one
/// more than those that the phase expects, so nothing changes.
Value* op_copy_arrive(Emitter& e, const Instruction& i) {
  Address where = barrier_address(e, i, i.operands[0]);
  if (e.instrumentation.checks) {
    e.call("check_copies",
           {e.context, e.to_scratch(0, address_lanes(e, where)), e.execution_bits()});
  }
  const AccessCode access{
      .kind = AccessCode::kAtomic, .order = AccessCode::kRelease, .scope = 2, .bytes = 8};
  const MbarrierCode none{.what = MbarrierCode::kExpect};
  const bool counts = Choices(i).has("noinc");
  mbarrier(e, where, counts ? MbarrierCode{} : none, access,
           counts ? nullptr : llvm::Constant::getNullValue(e.integer(32, false)), nullptr);
  return nullptr;
}

/// st.async: a store to the shared memory of a block, whose bytes its mbarrier counts.
Value* op_store_async(Emitter& e, const Instruction& i) {
  const MemoryAccess access = parse_access(i);
  const std::vector<Operand> sources = elements_of(i, i.operands[1], access.count);
  const unsigned bits = access.type.total_bits();
  const Space space = async_space(Choices(i));
  Address where = address(e, i, i.operands[0], space);
  check_store(e, where, access, sources);
  for (unsigned k = 0; k < access.count; ++k)
    e.to_scratch(8 + 2 * k, e.read_lanes(sources[k], bits));
  e.call("store_apart", {e.scratch(8), e.to_scratch(0, address_lanes(e, where)), e.execution_bits(),
                         bits / 8, access.count});
  complete_bytes(e, i, 2, space,
                 e.splat(e.ir.getInt32(static_cast<std::uint32_t>(access.count * bits / 8))));
  return nullptr;
}

/// red.async: the same with a reduction.
Value* op_reduce_async(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Space space = async_space(mods);
  emit_atomic(e, i, space);
  complete_bytes(e, i, 2, space, e.splat(e.ir.getInt32(mods.type().bits / 8U)));
  return nullptr;
}

Value* op_map_address(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  // The low half of a generic address is that of shared memory.
  const bool generic = !mods.has("shared::cluster") && mods.type().bits == 64;
  Value* ranks = e.read_lanes(i.operands[2], 32);
  if (generic) {
    e.to_scratch(0, e.read_lanes(i.operands[1], 64));
    e.to_scratch(4, ranks);
    e.call("map_address", {e.context, e.scratch(8), e.scratch(0), e.scratch(4)});
    return e.from_scratch(8, e.integer(64, false));
  }
  Value* offset =
      e.ir.CreateAnd(e.read_lanes(i.operands[1], 32), e.splat(e.ir.getInt32(0xffffffU)));
  Value* mapped = e.ir.CreateOr(offset, e.ir.CreateShl(ranks, 24));
  return e.resize(mapped, mods.type().bits, false);
}

Value* cluster_pointer(Emitter& e, Value* lanes, bool to_shared) {
  if (to_shared) {
    e.call("to_cluster", {e.context, e.scratch(4), e.to_scratch(0, lanes)});
    return e.resize(e.from_scratch(4, e.integer(32, false)), 64, false);
  }
  e.call("cluster_addresses",
         {e.context, e.scratch(0), e.to_scratch(4, e.resize(lanes, 32, false))});
  return e.from_scratch(0, e.integer(64, false));
}

Value* op_cluster_rank(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool generic = !mods.has("shared::cluster") && mods.type().bits == 64;
  if (generic) {
    e.to_scratch(0, e.read_lanes(i.operands[1], 64));
    e.call("cluster_ranks", {e.context, e.scratch(8), e.scratch(0)});
    return e.from_scratch(8, e.integer(32, false));
  }
  return e.ir.CreateLShr(e.read_lanes(i.operands[1], 32), 24);
}

Value* op_cluster_barrier(Emitter& e, const Instruction& i) {
  ClusterBarrier what = ClusterBarrier::kWait;
  if (i.is(Op::kClusterArrive)) {
    what = Choices(i).has("relaxed") ? ClusterBarrier::kArriveRelaxed : ClusterBarrier::kArrive;
  }
  // An arrival is counted with its wait.
  if (e.instrumentation.counts && i.is(Op::kClusterWait)) count_barrier(e);
  e.call("cluster_barrier", {e.context, e.mask_bits, e.live_lanes(), what, e.line});
  return nullptr;
}

}  // namespace braid::cpu
