#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "runtime/cpu/translate/interleave.h"
#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using llvm::FixedVectorType;
using ptx::Kind;
using ptx::Space;
using ptx::Type;

/// The host addresses of a memory operand.
Translator::Address Translator::address(const Instruction& i, const Operand& operand, Space space) {
  const Operand& base = operand.elements[0];
  const auto offset = static_cast<std::int64_t>(operand.bits);
  Address result;
  if (base.form == Operand::Form::kVariable) {
    const Space home = module_.variables[base.index].space;
    if (space == Space::kCluster && home == Space::kShared) space = Space::kShared;
    if (space != Space::kGeneric && home != space) bad(i, "the variable is in another space");
    space = home;
  }
  result.space = space;
  const auto add_offset = [&](Value* value) {
    return offset == 0 ? value
                       : b_.CreateAdd(value, llvm::ConstantInt::get(
                                                 value->getType(),
                                                 static_cast<std::uint64_t>(offset), true));
  };
  if (base.form == Operand::Form::kVariable &&
      (space == Space::kLocal ||
       (space == Space::kParam && !shapes_.operand_shape(base).is_table()))) {
    result.table = true;
    result.base = add_offset(scalar_address(base));
    result.shape = Shape::uniform();
    for (unsigned l = 0; l < 32; ++l)
      result.shape.table[l] = static_cast<std::int32_t>(l * layout_.local_bytes);
    return result;
  }
  const Shape shape = shapes_.operand_shape(base);
  result.table = shape.is_table();
  if (space == Space::kCluster) return cluster_address(base, offset);
  const bool narrow = base.is_register() && register_bits(base.index) == 32;
  if (narrow && space != Space::kShared && space != Space::kLocal && space != Space::kParam) {
    bad(i, "a 32-bit address outside of shared and local memory and parameters");
  }
  const unsigned bits = narrow || space == Space::kShared ? 32 : 64;
  result.shape = shape;
  if (space != Space::kShared) {
    Value* at = result.table ? read_scalar(base, bits) : read_lanes(base, bits);
    if (narrow) at = whole_address(at, space);
    (result.table ? result.base : result.lanes) = add_offset(at);
    return result;
  }
  // Only the low half counts. Sign extension keeps base + table right for bases below zero.
  result.base = add_offset(field(offsetof(WarpContext, shared), 64));
  if (result.table) {
    result.base =
        b_.CreateAdd(b_.CreateSExt(read_scalar(base, bits), integer(64, true)), result.base);
  } else {
    result.offsets = read_lanes(base, bits);
  }
  return result;
}

/// The whole of an address in local memory or in the parameters, by its low 32 bits.
llvm::Value* Translator::whole_address(Value* low, Space space) {
  Value* start = field(
      space == Space::kLocal ? offsetof(WarpContext, local) : offsetof(WarpContext, params), 64);
  Value* start_low = b_.CreateTrunc(start, b_.getInt32Ty());
  const bool lanes = low->getType()->isVectorTy();
  if (lanes) {
    start = splat(start);
    start_low = splat(start_low);
  }
  Value* within = b_.CreateSExt(b_.CreateSub(low, start_low), integer(64, !lanes));
  return b_.CreateAdd(start, within);
}

/// An address of 32 bits that says which block's memory it is in (helper "cluster_address").
Translator::Address Translator::cluster_address(const Operand& base, std::int64_t offset) {
  Address result;
  result.space = Space::kCluster;
  const Shape shape = shapes_.operand_shape(base);
  Value* lower = b_.getInt64(static_cast<std::uint64_t>(offset));
  if (shape.is_table()) {
    const auto first = static_cast<std::uint32_t>(shape.table[0]);
    Value* address = b_.CreateAdd(read_scalar(base, 32), b_.getInt32(first));
    result.table = true;
    result.shape = shape;
    for (std::int32_t& t : result.shape.table) t -= shape.table[0];
    result.base =
        b_.CreateAdd(call("cluster_address", {context_, address}, b_.getInt64Ty()), lower);
    return result;
  }
  call("cluster_addresses", {context_, scratch(0), to_scratch(4, read_lanes(base, 32))});
  result.lanes = b_.CreateAdd(from_scratch(0, integer(64, false)), splat(lower));
  return result;
}

llvm::Value* Translator::address_lanes(Address& address) {
  if (address.lanes == nullptr) {
    address.lanes = address.table ? lanes_of(address.base, address.shape)
                                  : b_.CreateAdd(b_.CreateSExt(address.offsets, integer(64, false)),
                                                 splat(address.base));
  }
  return address.lanes;
}

/// Puts the addresses of the lanes in scratch memory for a helper that takes its time with each:
/// those that are known but for their base by a call, which is less code than vectors of them.
llvm::Value* Translator::address_pointer(Address& address) {
  if (!address.table || address.lanes != nullptr) return to_scratch(0, address_lanes(address));
  std::vector<std::uint32_t> words(address.shape.table.begin(), address.shape.table.end());
  call("spread", {scratch(0), address.base, constant_words(words)});
  return scratch(0);
}

/// The place of 32 words with the lanes' offsets from the base of a shared-memory address.
llvm::Value* Translator::address_offsets(Address& address, unsigned scratch_index) {
  if (!address.table) return to_scratch(scratch_index, address.offsets);
  std::vector<std::uint32_t> words(address.shape.table.begin(), address.shape.table.end());
  return constant_words(words);
}

/// The encoding of AccessCode::scope; a strong access without a scope has system scope.
std::uint8_t Translator::scope_of(const Choices& mods) {
  constexpr std::uint8_t kScopes[] = {1, 2, 2, 2, 3};
  const int scope = mods.of("cta");
  if (scope < 0) return mods.has("cluster") ? 2 : 3;
  return kScopes[scope];
}

/// Tells the sanitizer and the counter what the active lanes, or `lanes`, are about to do.
/// `values`: what the sanitizer hears of those of a store.
void Translator::check(Address& address, AccessCode code, Value* lanes, const Stored& values) {
  if (!instrumentation_.checks && !instrumentation_.counts) return;
  if (lanes == nullptr) lanes = execution_bits();
  if (instrumentation_.checks) judge(address, code, lanes, values);
  if (instrumentation_.counts) count_access(address, code, lanes);
}

/// The sanitizer's part of that.
void Translator::judge(Address& address, AccessCode code, Value* lanes, const Stored& values) {
  Value* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
  call("check", {context_, to_scratch(0, address_lanes(address)), lanes, code, line_,
                 values.start == nullptr ? none : values.start, values.bytes, values.count});
}

AccessCode Translator::access_code(const Access& access, AccessCode::Kind kind) {
  AccessCode code{.kind = kind};
  code.scope = access.scope;
  code.bytes = static_cast<std::uint8_t>(access.count * access.type.total_bits() / 8);
  if (access.strong) code.order = AccessCode::kRelaxed;
  if (access.ordering == llvm::AtomicOrdering::Acquire) code.order = AccessCode::kAcquire;
  if (access.ordering == llvm::AtomicOrdering::Release) code.order = AccessCode::kRelease;
  return code;
}

/// The same for a load, except of parameters.
void Translator::check_load(Address& address, const Access& access,
                            llvm::ArrayRef<Operand> results) {
  if (access.space == Space::kParam) return;
  AccessCode code = access_code(access, AccessCode::kLoad);
  code.joined = joined_now_;
  // The compiler reads padding along with the values beside it.
  while (!results.empty() && is_unread(results.back())) {
    code.unread = static_cast<std::uint8_t>(code.unread + access.type.total_bits() / 8);
    results = results.drop_back();
  }
  check(address, code);
}

Translator::Access Translator::parse_access(const Instruction& i) const {
  const Choices mods(i);
  Access access;
  access.strong = i.is(Op::kStrongLd) || i.is(Op::kStrongSt) || i.is(Op::kStAsyncRelease);
  if (access.strong) access.scope = scope_of(mods);
  if (mods.has("acquire")) access.ordering = llvm::AtomicOrdering::Acquire;
  if (mods.has("release")) access.ordering = llvm::AtomicOrdering::Release;
  constexpr Space kSpaces[] = {Space::kParam,  Space::kGlobal, Space::kShared,
                               Space::kShared, Space::kLocal,  Space::kConst,
                               Space::kParam,  Space::kParam,  Space::kCluster};
  if (const int space = mods.of("param"); space >= 0) access.space = kSpaces[space];
  if (i.is(Op::kStAsyncRelease) && mods.has("global")) access.space = Space::kGlobal;
  const int vector = mods.of("v2");
  access.count = vector < 0 ? 1 : 2U << vector;
  access.type = mods.type();
  if (access.type.kind == Kind::kPred) bad(i, "unsupported type");
  if (access.type.bits > 64) {
    // A register of 128 bits is a pair.
    if (access.count != 1) bad(i, "unsupported vector");
    access.type.bits = 64;
    access.count = 2;
  }
  if (access.count * access.type.total_bits() > 256) bad(i, "the vector is too wide");
  return access;
}

/// Fills a wider register from a loaded value by the sign of the loaded type.
llvm::Value* Translator::extended(const Operand& result, Value* value, Type type) {
  const unsigned bits = result.is_register() ? register_bits(result.index) : 0;
  return bits > type.total_bits() ? resize(value, bits, type.is_signed()) : value;
}

void Translator::write_loaded(const Operand& result, Value* value, Type type) {
  write(result, extended(result, value, type));
}

/// A safe address for a masked access. An access without active lanes may point to the pages behind
/// a buffer, as in warps with nothing to load; processors take a hundred nanoseconds to find that
/// it touches none of them.
llvm::Value* Translator::somewhere(Value* pointer) {
  Value* anywhere = b_.CreateIsNotNull(execution_bits());
  return b_.CreateSelect(anywhere, pointer, scratch(0));
}

/// Copies what each of the lanes accesses, one after the other.
void Translator::copy_lanes(Value* to, Value* from, const Access& access, Value* lanes) {
  const unsigned bits = access.type.total_bits();
  llvm::Type* type = FixedVectorType::get(b_.getIntNTy(bits), access.count);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* loop = new_block("lane");
  llvm::BasicBlock* next = new_block("next");
  Value* none = b_.getInt32(0);
  b_.CreateCondBr(b_.CreateICmpEQ(lanes, none), next, loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* left = b_.CreatePHI(lanes->getType(), 2);
  Value* lane = b_.CreateIntrinsic(b_.getInt32Ty(), llvm::Intrinsic::cttz, {left, b_.getTrue()});
  lane = b_.CreateZExt(lane, b_.getInt64Ty());
  Value* value =
      b_.CreateAlignedLoad(type, b_.CreateInBoundsGEP(type, from, lane), llvm::Align(bits / 8));
  b_.CreateAlignedStore(value, b_.CreateInBoundsGEP(type, to, lane), llvm::Align(bits / 8));
  Value* rest = b_.CreateAnd(left, b_.CreateSub(left, b_.getInt32(1)));
  b_.CreateCondBr(b_.CreateICmpEQ(rest, none), next, loop);
  left->addIncoming(lanes, before);
  left->addIncoming(rest, loop);
  b_.SetInsertPoint(next);
}

/// Runs `otherwise` where an access, that may be masked, is not one of all lanes; returns where
/// it finds whole vectors: in memory, or in scratch memory then.
llvm::Value* Translator::whole_vectors(Value* pointer, Value* lanes,
                                       llvm::function_ref<void()> otherwise) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* some = new_block("some");
  llvm::BasicBlock* next = new_block("next");
  b_.CreateCondBr(b_.CreateICmpEQ(lanes, b_.getInt32(~0U)), next, some);
  b_.SetInsertPoint(some);
  Value* apart = scratch(8);
  otherwise();
  llvm::BasicBlock* end = b_.GetInsertBlock();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  llvm::PHINode* where = b_.CreatePHI(pointer->getType(), 2);
  where->addIncoming(pointer, before);
  where->addIncoming(apart, end);
  return where;
}

/// A vector access under a mask costs the host more than one of each lane; and most are of all.
void Translator::load_consecutive(const Access& access, Address& address,
                                  llvm::ArrayRef<Operand> results) {
  const unsigned bits = access.type.total_bits();
  const unsigned n = access.count;
  auto* type = FixedVectorType::get(b_.getIntNTy(bits), 32 * n);
  llvm::Constant* zeros = llvm::Constant::getNullValue(type);
  Value* pointer = pointer_to(address.base);
  const llvm::Align align(bits / 8);
  Value* mask = execution_mask();
  const std::vector<Value*> old = values_to_keep(access, results);
  Value* all = nullptr;
  if (mask != nullptr && n == 1) {
    all = b_.CreateMaskedLoad(type, somewhere(pointer), align, mask, zeros);
  } else {
    if (mask != nullptr) {
      Value* lanes = execution_bits();
      pointer = whole_vectors(pointer, lanes, [&] {
        b_.CreateAlignedStore(old.empty() ? zeros : interleave(b_, old), scratch(8),
                              llvm::Align(64));
        copy_lanes(scratch(8), pointer, access, lanes);
      });
    }
    all = b_.CreateAlignedLoad(type, pointer, align);
  }
  const std::vector<Value*> parts = wide_.take_apart(all, n);
  if (!old.empty()) guard_lanes_ = nullptr;  // what the others keep is among them
  for (unsigned k = 0; k < n; ++k) write_loaded(results[k], parts[k], access.type);
}

/// The values that lanes keep in the registers of a wide load when their guard is false; empty if
/// no lane does, or if a register holds something other than a loaded value.
std::vector<llvm::Value*> Translator::values_to_keep(const Access& access,
                                                     llvm::ArrayRef<Operand> results) {
  std::vector<Value*> old;
  if (guard_lanes_ == nullptr || access.count == 1) return old;
  for (const Operand& result : results) {
    if (!result.is_register() || register_bits(result.index) != access.type.total_bits() ||
        !shapes_.shape(result.index).is_vector()) {
      return {};
    }
    old.push_back(load_register(result.index).value);
  }
  return old;
}

/// Strong accesses: each lane once, in lane order, with the ordering asked for.
void Translator::load_strong(const Access& access, Address& address,
                             llvm::ArrayRef<Operand> results) {
  const unsigned bits = access.type.total_bits();
  if (scalar_ && access.count == 1 && guard_lanes_ == nullptr) {
    Value* pointer = pointer_to(address.base);
    llvm::LoadInst* load =
        b_.CreateAlignedLoad(integer(bits, true), pointer, llvm::Align(bits / 8));
    load->setAtomic(access.ordering);
    write_loaded(results[0], load, access.type);
    return;
  }
  Value* addresses = address_pointer(address);
  call("load_strong", {scratch(8), addresses, execution_bits(), bits / 8, access.count});
  if (scalar_) result_shape_ = Shape::vector();
  for (unsigned k = 0; k < access.count; ++k) {
    Value* value = from_scratch(8 + 2 * k, integer(bits, false));
    if (scalar_) value = call_first_active(value);
    write_loaded(results[k], value, access.type);
  }
}

llvm::Value* Translator::call_first_active(Value* lanes) {
  Value* first =
      b_.CreateIntrinsic(b_.getInt32Ty(), llvm::Intrinsic::cttz, {execution_bits(), b_.getFalse()});
  result_shape_ = Shape::uniform();
  return b_.CreateExtractElement(lanes, b_.CreateAnd(first, 31));
}

/// A call costs the code generator one instruction; the host's own gathers of 32 addresses cost it
/// dozens, and take as long to run.
void Translator::load_apart(const Access& access, Value* lanes, llvm::ArrayRef<Operand> results) {
  const unsigned bits = access.type.total_bits();
  Value* addresses = to_scratch(0, lanes);
  call("load_apart", {scratch(8), addresses, execution_bits(), bits / 8, access.count});
  for (unsigned k = 0; k < access.count; ++k) {
    write_loaded(results[k], from_scratch(8 + 2 * k, integer(bits, false)), access.type);
  }
}

/// The elements of a vector operand. Braces are optional for a single element.
std::vector<ptx::Operand> Translator::elements_of(const Instruction& i, const Operand& operand,
                                                  std::size_t count) const {
  std::vector<Operand> elements = operand.elements;
  if (operand.form != Operand::Form::kVector && count == 1) elements = {operand};
  if (elements.size() != count) bad(i, "the vector has the wrong number of elements");
  return elements;
}

void Translator::op_load(const Instruction& i) {
  // A cache policy, if there is one, has no meaning here.
  const Access access = parse_access(i);
  const std::vector<Operand> results = elements_of(i, i.operands[0], access.count);
  Address where = address(i, i.operands[1], access.space);
  check_load(where, access, results);
  const unsigned bits = access.type.total_bits();
  if (access.strong) {
    load_strong(access, where, results);
    return;
  }
  if (scalar_) {
    Value* base = where.base;
    if (guard_lanes_ != nullptr) {
      Value* any = b_.CreateIsNotNull(execution_bits());
      base = b_.CreateSelect(any, base, dump_address());
    }
    for (unsigned k = 0; k < access.count; ++k) {
      Value* pointer = pointer_to(b_.CreateAdd(base, b_.getInt64(k * bits / 8)));
      llvm::LoadInst* load =
          b_.CreateAlignedLoad(integer(bits, true), pointer, llvm::Align(bits / 8));
      if (access.space == Space::kParam) {
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(llvm_, {}));
      }
      write_loaded(results[k], load, access.type);
    }
    return;
  }
  if (where.table && is_consecutive(where.shape, access.count * bits / 8)) {
    load_consecutive(access, where, results);
    prefetch_next(i, access, where);
    return;
  }
  load_apart(access, address_lanes(where), results);
}

llvm::Value* Translator::dump_address() {
  return b_.CreateAdd(b_.CreatePtrToInt(context_, b_.getInt64Ty()),
                      b_.getInt64(offsetof(WarpContext, dump)));
}

bool Translator::is_consecutive(const Shape& shape, unsigned bytes) {
  for (unsigned l = 0; l < 32; ++l) {
    if (shape.table[l] != static_cast<std::int32_t>(l * bytes)) return false;
  }
  return true;
}

void Translator::store_strong(const Access& access, Address& address,
                              llvm::ArrayRef<Value*> values) {
  const unsigned bits = access.type.total_bits();
  Value* addresses = address_pointer(address);
  for (unsigned k = 0; k < access.count; ++k) to_scratch(8 + 2 * k, values[k]);
  call("store_strong", {scratch(8), addresses, execution_bits(), bits / 8, access.count});
}

/// The same for a store.
void Translator::check_store(Address& address, const Access& access,
                             llvm::ArrayRef<Operand> sources) {
  if (access.space == Space::kParam) return;
  const AccessCode code = access_code(access, AccessCode::kStore);
  if (!instrumentation_.checks) {
    check(address, code);
    return;
  }
  const unsigned bits = access.type.total_bits();
  for (unsigned k = 0; k < access.count; ++k) to_scratch(8 + 2 * k, read_lanes(sources[k], bits));
  check(address, code, nullptr, {scratch(8), bits / 8, access.count});
  check_overlap(address, access);
}

/// Lanes that store at one place at once race, unless they store the same.
void Translator::check_overlap(const Address& address, const Access& access) {
  if (access.strong || access.space == Space::kLocal) return;
  if (address.table) {
    std::array<std::int32_t, 32> offsets = address.shape.table;
    std::ranges::sort(offsets);
    if (std::ranges::adjacent_find(offsets) == offsets.end()) return;
  }
  // Addresses and values lie where check_store() put them.
  call("check_overlap", {context_, scratch(0), execution_bits(), scratch(8),
                         access.type.total_bits() / 8, access.count, line_});
}

/// The last of these lanes; any lane where there is none.
llvm::Value* Translator::last_of(Value* lanes) {
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(lanes)) {
    return b_.getInt32((known->getValue().getActiveBits() + 31) % 32);
  }
  Value* before =
      b_.CreateIntrinsic(b_.getInt32Ty(), llvm::Intrinsic::ctlz, {lanes, b_.getFalse()});
  return b_.CreateAnd(b_.CreateXor(before, 31), 31);
}

void Translator::op_store(const Instruction& i) {
  const Access access = parse_access(i);
  const std::vector<Operand> sources = elements_of(i, i.operands[1], access.count);
  Address where = address(i, i.operands[0], access.space);
  check_store(where, access, sources);
  const unsigned bits = access.type.total_bits();
  const llvm::Align align(bits / 8);
  const bool uniform_address = where.table && where.shape.is_uniform();
  if (uniform_address && (!access.strong || access.count == 1)) {
    // The last active lane wins, as one of them must.
    Value* lanes = execution_bits();
    Value* last = nullptr;
    for (unsigned k = 0; k < access.count; ++k) {
      Value* value = nullptr;
      if (shapes_.operand_shape(sources[k]).is_uniform()) {
        value = read_scalar(sources[k], bits);
      } else {
        if (last == nullptr) last = last_of(lanes);
        value = b_.CreateExtractElement(read_lanes(sources[k], bits), last);
      }
      Value* pointer = pointer_to(b_.CreateAdd(where.base, b_.getInt64(k * bits / 8)));
      if (guard_lanes_ != nullptr) pointer = somewhere(pointer);
      llvm::StoreInst* store = b_.CreateAlignedStore(value, pointer, align);
      if (access.strong) store->setAtomic(access.ordering);
    }
    return;
  }
  std::vector<Value*> values;
  for (const Operand& source : sources) values.push_back(read_lanes(source, bits));
  if (access.strong) {
    store_strong(access, where, values);
    return;
  }
  Value* mask = execution_mask();
  Value* lanes = execution_bits();
  if (where.table && is_consecutive(where.shape, access.count * bits / 8)) {
    Value* all = wide_.put_together(values);
    Value* pointer = pointer_to(where.base);
    if (mask == nullptr) {
      b_.CreateAlignedStore(all, pointer, align);
    } else if (access.count == 1) {
      // Often those of one warp of a block. The host's compiler moves here what is computed for
      // them.
      split(b_.CreateIsNotNull(execution_bits()), "some",
            [&] { b_.CreateMaskedStore(all, pointer, align, mask); });
    } else {
      Value* to = b_.CreateSelect(b_.CreateICmpEQ(lanes, b_.getInt32(~0U)), pointer, scratch(8));
      b_.CreateAlignedStore(all, to, align);
      whole_vectors(pointer, lanes, [&] { copy_lanes(pointer, scratch(8), access, lanes); });
    }
    prefetch_next(i, access, where);
    return;
  }
  for (unsigned k = 0; k < access.count; ++k) to_scratch(8 + 2 * k, values[k]);
  call("store_apart",
       {scratch(8), to_scratch(0, address_lanes(where)), lanes, bits / 8, access.count});
}

/// It only counts, for each lane a sector. It may point anywhere, so the sanitizer does not hear of
/// it.
void Translator::op_prefetch(const Instruction& i) {
  if (!instrumentation_.counts || ptx::has_modifier(i, "local") ||
      ptx::has_modifier(i, "tensormap")) {
    return;
  }
  const bool global = ptx::has_modifier(i, "global");
  Address where = address(i, i.operands[0], global ? Space::kGlobal : Space::kGeneric);
  constexpr std::uint8_t kSector = SectorSet::kBytes;
  Value* sectors =
      b_.CreateAnd(address_lanes(where), splat(b_.getInt64(~std::uint64_t{kSector - 1})));
  call("count_access",
       {context_, to_scratch(0, sectors), execution_bits(),
        AccessCode{.kind = AccessCode::kCopyFrom, .bytes = kSector}, count_place()});
}

void Translator::op_fence(const Instruction& i) {
  if (instrumentation_.checks && i.is(Op::kFenceInit)) {
    call("check_fence_inits", {context_});
  } else if (instrumentation_.checks) {
    call("check_fence", {context_, scope_of(Choices(i))});
  }
  b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
}

void Translator::op_copy_group(const Instruction& i) {
  if (!instrumentation_.checks) return;
  // wait_all counts what is not committed as well.
  if (!i.is(Op::kCpAsyncWait)) call("check_commit", {context_});
  if (i.is(Op::kCpAsyncCommit)) return;
  Value* pending = i.is(Op::kCpAsyncWaitAll) ? b_.getInt32(0) : read_scalar(i.operands[0], 32);
  call("check_wait", {context_, pending});
}

/// Copies at once: a copy may be over at any time before its wait.
void Translator::op_copy_async(const Instruction& i) {
  const std::uint64_t bytes = i.operands[2].bits;
  if (bytes != 4 && bytes != 8 && bytes != 16) bad(i, "the size must be 4, 8 or 16");
  Address to = address(i, i.operands[0], Space::kShared);
  Address from = address(i, i.operands[1], Space::kGlobal);
  Value* size = nullptr;
  // A cache policy, the last operand then, has no meaning here.
  const std::size_t policies = Choices(i).has("L2::cache_hint") ? 1 : 0;
  if (i.operands.size() > 3 + policies) {
    const Operand& operand = i.operands[3];
    const bool predicate = operand.is_register() && register_bits(operand.index) == 1;
    if (predicate) {
      // ignore-src: true means zeros.
      size = b_.CreateSelect(
          b_.CreateXor(read_lanes(operand, 1),
                       operand.negated ? llvm::Constant::getAllOnesValue(integer(1, false))
                                       : llvm::Constant::getNullValue(integer(1, false))),
          splat(b_.getInt32(0)), splat(b_.getInt32(static_cast<std::uint32_t>(bytes))));
    } else {
      size = read_lanes(operand, 32);
    }
  }
  check_copy(to, from, size, static_cast<std::uint8_t>(bytes));
  Value* sources = to_scratch(0, address_lanes(from));
  Value* offsets = address_offsets(to, 4);
  Value* target = pointer_to(to.base);
  Value* sizes =
      size == nullptr ? llvm::ConstantPointerNull::get(b_.getPtrTy()) : to_scratch(8, size);
  call("copy_async", {target, offsets, sources, sizes, execution_bits(), bytes});
}

/// Lanes that copy nothing read nothing. The sanitizer takes a part of `bytes` for all of them.
void Translator::check_copy(Address& to, Address& from, Value* sizes, std::uint8_t bytes) {
  if (!instrumentation_.checks && !instrumentation_.counts) return;
  const AccessCode read{.kind = AccessCode::kCopyFrom, .bytes = bytes};
  if (sizes == nullptr) {
    check(from, read);
  } else {
    Value* reading = b_.CreateAnd(execution_bits(), lane_bits(b_.CreateIsNotNull(sizes)));
    if (instrumentation_.checks) judge(from, read, reading);
    if (instrumentation_.counts) {
      call("count_copy", {context_, to_scratch(0, address_lanes(from)), to_scratch(8, sizes),
                          reading, read, count_place()});
    }
  }
  check(to, {.kind = AccessCode::kCopyTo, .bytes = bytes});
}

void Translator::op_nothing(const Instruction& /*i*/) {}

void Translator::op_elsewhere(const Instruction& i) { bad(i, "has no place here"); }

llvm::Value* Translator::op_policy(const Instruction& /*i*/) { return uniform(b_.getInt64(0)); }

}  // namespace braid::cpu
