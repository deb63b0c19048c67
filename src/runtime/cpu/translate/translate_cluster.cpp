#include <algorithm>

#include "runtime/cpu/run/mbarrier.h"
#include "runtime/cpu/translate/translator.h"

// mbarrier objects, and clusters of blocks.

namespace braid::cpu {

using ptx::Space;

/// The address of an mbarrier, in the space that the modifiers name.
Translator::Address Translator::barrier_address(const Instruction& i, const Operand& operand) {
  const Choices mods(i);
  const bool shared = mods.has("shared::cta") || mods.has("shared");
  return address(i, operand,
                 mods.has("shared::cluster") ? Space::kCluster
                 : shared                    ? Space::kShared
                                             : Space::kGeneric);
}

/// Emits the operation of the lanes, and returns those whose test held.
llvm::Value* Translator::mbarrier(Address& where, MbarrierCode code, AccessCode access,
                                  Value* counts, Value* states) {
  // Knowledge is handed on by phases, which the helper reports.
  code.orders = access.order == AccessCode::kRelease || access.order == AccessCode::kAcquire;
  code.wide = access.scope > 1;
  if (code.orders) access.order = AccessCode::kRelaxed;
  check(where, access);
  llvm::Type* words = integer(32, false);
  to_scratch(8, counts == nullptr ? llvm::ConstantInt::get(words, 1) : counts);
  if (states != nullptr) to_scratch(12, states);
  return call("mbarrier",
              {context_, to_scratch(0, address_lanes(where)), scratch(8), scratch(12),
               execution_bits(), code, line_},
              b_.getInt32Ty());
}

/// Without a scope it is the cluster's: code that arrives at barriers of other blocks leaves it
/// out.
llvm::Value* Translator::op_mbarrier(const Instruction& i) {
  const Choices mods(i);
  const bool returns = i.entry->has_result();
  const bool tests = i.is(Op::kMbarrierTest);
  Address where = barrier_address(i, i.operands[returns ? 1 : 0]);
  MbarrierCode code;
  AccessCode access{.kind = AccessCode::kAtomic,
                    .order = mods.has("relaxed") ? AccessCode::kRelaxed : AccessCode::kRelease,
                    .scope = static_cast<std::uint8_t>(mods.of("cta") == 0 ? 1 : 2),
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
    (by_state ? states : counts) = read_lanes(i.operands[second], by_state ? 64 : 32);
  }
  Value* complete = mbarrier(where, code, access, counts, states);
  if (!returns) return nullptr;
  if (!tests) return from_scratch(12, integer(64, false));
  return scalar_ ? uniform(b_.CreateIsNotNull(complete))
                 : b_.CreateBitCast(complete, integer(1, false));
}

llvm::Value* Translator::op_pending_count(const Instruction& i) {
  return b_.CreateAnd(resize(read(i.operands[1], 64), 32, false), Mbarrier::kMaxCount);
}

/// Copies are over when they are issued: the arrival is at once. Without .noinc the arrival is one
/// more than those that the phase expects, so nothing changes.
void Translator::op_copy_arrive(const Instruction& i) {
  Address where = barrier_address(i, i.operands[0]);
  if (instrumentation_.checks) {
    call("check_commit", {context_});
    call("check_wait", {context_, 0});
  }
  const AccessCode access{
      .kind = AccessCode::kAtomic, .order = AccessCode::kRelease, .scope = 1, .bytes = 8};
  const MbarrierCode none{.what = MbarrierCode::kExpect};
  const bool counts = Choices(i).has("noinc");
  mbarrier(where, counts ? MbarrierCode{} : none, access,
           counts ? nullptr : llvm::Constant::getNullValue(integer(32, false)), nullptr);
}

/// Tells the mbarrier of operand `n` that bytes have come.
void Translator::complete_bytes(const Instruction& i, std::size_t n, Space space, Value* bytes) {
  Address where = address(i, i.operands[n], space);
  mbarrier(where, {.what = MbarrierCode::kComplete},
           {.kind = AccessCode::kAtomic, .order = AccessCode::kRelease, .scope = 2, .bytes = 8},
           bytes, nullptr);
}

/// The space of st.async's operands; without a modifier any space.
static Space async_space(const ptx::Choices& mods) {
  return mods.has("shared::cluster") ? Space::kCluster : Space::kGeneric;
}

/// st.async: a store to the shared memory of a block, whose bytes its mbarrier counts.
void Translator::op_store_async(const Instruction& i) {
  const Access access = parse_access(i);
  const std::vector<Operand> sources = elements_of(i, i.operands[1], access.count);
  const unsigned bits = access.type.total_bits();
  const Space space = async_space(Choices(i));
  Address where = address(i, i.operands[0], space);
  check_store(where, access, sources);
  for (unsigned k = 0; k < access.count; ++k) to_scratch(8 + 2 * k, read_lanes(sources[k], bits));
  call("store_apart",
       {scratch(8), to_scratch(0, address_lanes(where)), execution_bits(), bits / 8, access.count});
  complete_bytes(i, 2, space,
                 splat(b_.getInt32(static_cast<std::uint32_t>(access.count * bits / 8))));
}

/// red.async: the same with a reduction.
void Translator::op_reduce_async(const Instruction& i) {
  const Choices mods(i);
  const Space space = async_space(mods);
  reduce(i, space);
  complete_bytes(i, 2, space, splat(b_.getInt32(mods.type().bits / 8U)));
}

llvm::Value* Translator::op_map_address(const Instruction& i) {
  const Choices mods(i);
  // The low half of a generic address is that of shared memory.
  const bool generic = !mods.has("shared::cluster") && mods.type().bits == 64;
  Value* ranks = read_lanes(i.operands[2], 32);
  if (generic) {
    to_scratch(0, read_lanes(i.operands[1], 64));
    to_scratch(4, ranks);
    call("map_address", {context_, scratch(8), scratch(0), scratch(4)});
    return from_scratch(8, integer(64, false));
  }
  Value* one = splat(b_.getInt32(1));
  Value* offset = b_.CreateAnd(read_lanes(i.operands[1], 32), splat(b_.getInt32(0xffffffU)));
  Value* mapped = b_.CreateOr(offset, b_.CreateShl(b_.CreateAdd(ranks, one), 24));
  return resize(mapped, mods.type().bits, false);
}

/// Whether pointers may be to the shared memory of other blocks.
bool Translator::maps_addresses() const {
  return std::ranges::any_of(function_.body, [](const Instruction& i) { return i.is(Op::kMapa); });
}

/// cvta of such pointers, from generic addresses to those of shared memory or back.
llvm::Value* Translator::cluster_pointer(Value* lanes, bool to_shared) {
  if (to_shared) {
    call("to_cluster", {context_, scratch(4), to_scratch(0, lanes)});
    return resize(from_scratch(4, integer(32, false)), 64, false);
  }
  call("cluster_addresses", {context_, scratch(0), to_scratch(4, resize(lanes, 32, false))});
  return from_scratch(0, integer(64, false));
}

llvm::Value* Translator::op_cluster_rank(const Instruction& i) {
  const Choices mods(i);
  const bool generic = !mods.has("shared::cluster") && mods.type().bits == 64;
  if (generic) {
    to_scratch(0, read_lanes(i.operands[1], 64));
    call("cluster_ranks", {context_, scratch(8), scratch(0)});
    return from_scratch(8, integer(32, false));
  }
  Value* block = b_.CreateLShr(read_lanes(i.operands[1], 32), 24);
  Value* own = splat(field(offsetof(WarpContext, cluster_rank), 32));
  Value* none = b_.CreateIsNull(block);
  return b_.CreateSelect(none, own, b_.CreateSub(block, splat(b_.getInt32(1))));
}

void Translator::op_cluster_barrier(const Instruction& i) {
  ClusterBarrier what = ClusterBarrier::kWait;
  if (i.is(Op::kClusterArrive)) {
    what = Choices(i).has("relaxed") ? ClusterBarrier::kArriveRelaxed : ClusterBarrier::kArrive;
  }
  // An arrival is counted with its wait.
  if (instrumentation_.counts && i.is(Op::kClusterWait)) count_barrier();
  call("cluster_barrier", {context_, mask_bits_, live_lanes(), what, line_});
}

}  // namespace braid::cpu
