#include "runtime/cpu/translate/addresses.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/defined.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/interleave.h"

namespace braid::cpu {
namespace {

using llvm::FixedVectorType;
using ptx::Kind;
using ptx::Space;
using ptx::Type;

/// An address of 32 bits that says which block's memory it is in (helper "cluster_address").
Address cluster_address(Emitter& e, const Operand& base, std::int64_t offset) {
  Address result;
  result.space = Space::kCluster;
  const Shape shape = e.shapes.operand_shape(base);
  Value* lower = e.ir.getInt64(static_cast<std::uint64_t>(offset));
  if (shape.is_table()) {
    const auto first = static_cast<std::uint32_t>(shape.table[0]);
    Value* address = e.ir.CreateAdd(e.read_scalar(base, 32), e.ir.getInt32(first));
    result.table = true;
    result.shape = shape;
    for (std::int32_t& t : result.shape.table) t -= shape.table[0];
    result.base =
        e.ir.CreateAdd(e.call("cluster_address", {e.context, address}, e.ir.getInt64Ty()), lower);
    return result;
  }
  e.call("cluster_addresses", {e.context, e.scratch(0), e.to_scratch(4, e.read_lanes(base, 32))});
  result.lanes = e.ir.CreateAdd(e.from_scratch(0, e.integer(64, false)), e.splat(lower));
  return result;
}

/// Lanes that store at one place at once race, unless they store the same.
void check_overlap(Emitter& e, const Address& address, const MemoryAccess& access) {
  if (access.strong || access.space == Space::kLocal) return;
  if (address.table) {
    std::array<std::int32_t, 32> offsets = address.shape.table;
    std::ranges::sort(offsets);
    if (std::ranges::adjacent_find(offsets) == offsets.end()) return;
  }
  // Addresses and values lie where check_store(e) put them.
  e.call("check_overlap", {e.context, e.scratch(0), e.execution_bits(), e.scratch(8),
                           access.type.total_bits() / 8, access.count, e.line});
}

}  // namespace

void judge(Emitter& e, Address& address, AccessCode code, Value* lanes, const Stored& values) {
  Value* none = llvm::ConstantPointerNull::get(e.ir.getPtrTy());
  e.call("check", {e.context, e.to_scratch(0, address_lanes(e, address)), lanes, code, e.line,
                   values.start == nullptr ? none : values.start, values.bytes, values.count});
}

Address address(Emitter& e, const Instruction& i, const Operand& operand, Space space) {
  const Operand& base = operand.elements[0];
  const auto offset = static_cast<std::int64_t>(operand.bits);
  Address result;
  if (base.form == Operand::Form::kVariable) {
    const Space home = e.ptx_module.variables[base.index].space;
    if (space == Space::kCluster && home == Space::kShared) space = Space::kShared;
    if (space != Space::kGeneric && home != space) bad(i, "the variable is in another space");
    space = home;
  }
  result.space = space;
  const auto add_offset = [&](Value* value) {
    return offset == 0 ? value
                       : e.ir.CreateAdd(value, llvm::ConstantInt::get(
                                                   value->getType(),
                                                   static_cast<std::uint64_t>(offset), true));
  };
  if (base.form == Operand::Form::kVariable &&
      (space == Space::kLocal ||
       (space == Space::kParam && !e.shapes.operand_shape(base).is_table()))) {
    result.table = true;
    result.base = add_offset(e.scalar_address(base));
    result.shape = Shape::uniform();
    for (unsigned l = 0; l < 32; ++l)
      result.shape.table[l] = static_cast<std::int32_t>(l * e.layout.local_bytes);
    return result;
  }
  const Shape shape = e.shapes.operand_shape(base);
  result.table = shape.is_table();
  if (space == Space::kCluster) return cluster_address(e, base, offset);
  const bool narrow = base.is_register() && e.register_bits(base.index) == 32;
  if (narrow && space != Space::kShared && space != Space::kLocal && space != Space::kParam) {
    bad(i, "a 32-bit address outside of shared and local memory and parameters");
  }
  const unsigned bits = narrow || space == Space::kShared ? 32 : 64;
  result.shape = shape;
  if (space != Space::kShared) {
    Value* at = result.table ? e.read_scalar(base, bits) : e.read_lanes(base, bits);
    if (narrow) at = whole_address(e, at, space);
    (result.table ? result.base : result.lanes) = add_offset(at);
    return result;
  }
  // Only the low half counts. Sign extension keeps base + table right for bases below zero.
  result.base = add_offset(e.shared_start());
  if (result.table) {
    result.base = e.ir.CreateAdd(e.ir.CreateSExt(e.read_scalar(base, bits), e.integer(64, true)),
                                 result.base);
  } else {
    result.offsets = e.read_lanes(base, bits);
  }
  return result;
}

Value* whole_address(Emitter& e, Value* low, Space space) {
  Value* start = e.field(
      space == Space::kLocal ? offsetof(WarpContext, local) : offsetof(WarpContext, params), 64);
  Value* start_low = e.ir.CreateTrunc(start, e.ir.getInt32Ty());
  const bool lanes = low->getType()->isVectorTy();
  if (lanes) {
    start = e.splat(start);
    start_low = e.splat(start_low);
  }
  Value* within = e.ir.CreateSExt(e.ir.CreateSub(low, start_low), e.integer(64, !lanes));
  return e.ir.CreateAdd(start, within);
}

Value* address_lanes(Emitter& e, Address& address) {
  if (address.lanes == nullptr) {
    address.lanes = address.table
                        ? e.lanes_of(address.base, address.shape)
                        : e.ir.CreateAdd(e.ir.CreateSExt(address.offsets, e.integer(64, false)),
                                         e.splat(address.base));
  }
  return address.lanes;
}

Value* address_pointer(Emitter& e, Address& address) {
  if (!address.table || address.lanes != nullptr) return e.to_scratch(0, address_lanes(e, address));
  std::vector<std::uint32_t> words(address.shape.table.begin(), address.shape.table.end());
  e.call("spread", {e.scratch(0), address.base, e.constant_words(words)});
  return e.scratch(0);
}

Value* address_offsets(Emitter& e, Address& address, unsigned scratch_index) {
  if (!address.table) return e.to_scratch(scratch_index, address.offsets);
  std::vector<std::uint32_t> words(address.shape.table.begin(), address.shape.table.end());
  return e.constant_words(words);
}

std::uint8_t scope_of(const Choices& mods) {
  constexpr std::uint8_t kScopes[] = {1, 2, 2, 2, 3};
  const int scope = mods.of("cta");
  if (scope < 0) return mods.has("cluster") ? 2 : 3;
  return kScopes[scope];
}

void check(Emitter& e, Address& address, AccessCode code, Value* lanes, const Stored& values) {
  if (!e.instrumentation.checks && !e.instrumentation.counts) return;
  if (lanes == nullptr) lanes = e.execution_bits();
  if (e.instrumentation.checks) judge(e, address, code, lanes, values);
  if (e.instrumentation.counts) count_access(e, address, code, lanes);
}

AccessCode access_code(const MemoryAccess& access, AccessCode::Kind kind) {
  AccessCode code{.kind = kind};
  code.scope = access.scope;
  code.bytes = static_cast<std::uint8_t>(access.count * access.type.total_bits() / 8);
  if (access.strong) code.order = AccessCode::kRelaxed;
  if (access.ordering == llvm::AtomicOrdering::Acquire) code.order = AccessCode::kAcquire;
  if (access.ordering == llvm::AtomicOrdering::Release) code.order = AccessCode::kRelease;
  return code;
}

void check_load(Emitter& e, Address& address, const MemoryAccess& access,
                llvm::ArrayRef<Operand> results) {
  if (access.space == Space::kParam) return;
  AccessCode code = access_code(access, AccessCode::kLoad);
  code.joined = e.joined_now;
  // The compiler reads padding along with the values beside it.
  while (!results.empty() && is_unread(e, results.back())) {
    code.unread = static_cast<std::uint8_t>(code.unread + access.type.total_bits() / 8);
    results = results.drop_back();
  }
  check(e, address, code);
}

MemoryAccess parse_access(const Instruction& i) {
  const Choices mods(i);
  MemoryAccess access;
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

Value* extended(Emitter& e, const Operand& result, Value* value, Type type) {
  const unsigned bits = result.is_register() ? e.register_bits(result.index) : 0;
  return bits > type.total_bits() ? e.resize(value, bits, type.is_signed()) : value;
}

void write_loaded(Emitter& e, const Operand& result, Value* value, Type type) {
  e.write(result, extended(e, result, value, type));
}

Value* call_first_active(Emitter& e, Value* lanes) {
  Value* first = e.ir.CreateIntrinsic(e.ir.getInt32Ty(), llvm::Intrinsic::cttz,
                                      {e.execution_bits(), e.ir.getFalse()});
  e.result_shape = Shape::uniform();
  return e.ir.CreateExtractElement(lanes, e.ir.CreateAnd(first, 31));
}

std::vector<ptx::Operand> elements_of(const Instruction& i, const Operand& operand,
                                      std::size_t count) {
  std::vector<Operand> elements = operand.elements;
  if (operand.form != Operand::Form::kVector && count == 1) elements = {operand};
  if (elements.size() != count) bad(i, "the vector has the wrong number of elements");
  return elements;
}

bool is_consecutive(const Shape& shape, unsigned bytes) {
  for (unsigned l = 0; l < 32; ++l) {
    if (shape.table[l] != static_cast<std::int32_t>(l * bytes)) return false;
  }
  return true;
}

void check_store(Emitter& e, Address& address, const MemoryAccess& access,
                 llvm::ArrayRef<Operand> sources) {
  if (access.space == Space::kParam) return;
  const AccessCode code = access_code(access, AccessCode::kStore);
  if (!e.instrumentation.checks) {
    check(e, address, code);
    return;
  }
  const unsigned bits = access.type.total_bits();
  for (unsigned k = 0; k < access.count; ++k)
    e.to_scratch(8 + 2 * k, e.read_lanes(sources[k], bits));
  check(e, address, code, nullptr, {e.scratch(8), bits / 8, access.count});
  check_overlap(e, address, access);
  for (unsigned k = 0; k < access.count; ++k) check_stored(e, sources[k], k * bits / 8, bits / 8);
}

}  // namespace braid::cpu
