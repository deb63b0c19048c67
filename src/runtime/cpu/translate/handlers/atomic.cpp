
#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/atomics.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {
namespace {

using ptx::Kind;
using ptx::Space;
using ptx::Type;

/// The order and scope of an atomic; without a scope it has device scope.
AccessCode atomic_access(const Instruction& i) {
  const Choices mods(i);
  AccessCode code{.kind = AccessCode::kAtomic, .order = AccessCode::kRelaxed};
  constexpr AccessCode::Order kOrders[] = {AccessCode::kRelaxed, AccessCode::kAcquire,
                                           AccessCode::kRelease, AccessCode::kAcquireRelease};
  if (const int order = mods.of("relaxed"); order >= 0) code.order = kOrders[order];
  code.scope = mods.of("cta") < 0 ? 2 : scope_of(mods);
  return code;
}

/// Exchanges 128 bits, or does so where they are what was expected.
void atomic_pair(Emitter& e, const Instruction& i, Space space) {
  const bool swap = Choices(i).has("cas");
  const bool returns = i.is(Op::kAtom);
  const std::size_t first = returns ? 1 : 0;
  Address where = address(e, i, i.operands[first], space);
  AccessCode code = atomic_access(i);
  if (swap) code.kind = AccessCode::kSwap;
  code.bytes = 16;
  check(e, where, code);
  Value* addresses = address_pointer(e, where);
  // The expected value, if any, then the new one; the halves of each separately.
  unsigned place = 4;
  for (std::size_t n = first + 1; n < first + (swap ? 3U : 2U); ++n) {
    for (const Operand& half : elements_of(i, i.operands[n], 2)) {
      e.to_scratch(place, e.read_lanes(half, 64));
      place += 2;
    }
  }
  e.call("atomic_pair", {e.scratch(12), addresses, e.scratch(4), e.execution_bits(), swap});
  if (!returns) return;
  const std::vector<Operand> results = elements_of(i, i.operands[0], 2);
  for (unsigned k = 0; k < 2; ++k) {
    e.write(results[k], e.from_scratch(12 + 2 * k, e.integer(64, false)));
  }
}

}  // namespace

void emit_atomic(Emitter& e, const Instruction& i, Space space) {
  const Choices mods(i);
  const bool returns = i.is(Op::kAtom);
  const int op = mods.of("add");
  const Type type = mods.type();
  const bool swap = op == static_cast<int>(AtomicOp::kCas);
  if (!returns && swap) bad_combination(i);
  const std::size_t first = returns ? 1 : 0;
  const unsigned bits = type.total_bits();
  const bool is_float = type.is_float();
  const auto operation = static_cast<AtomicOp>(op);
  if (bits == 128 && (swap || operation == AtomicOp::kExch)) {
    atomic_pair(e, i, space);
    return;
  }
  if (!operates_on(operation, type) || (is_float && operation != AtomicOp::kAdd) || bits < 16 ||
      bits > 64 || (bits == 16 && !is_float && !swap && operation != AtomicOp::kExch)) {
    bad(i, "unsupported combination");
  }
  Address where = address(e, i, i.operands[first], space);
  AccessCode code = atomic_access(i);
  if (swap) code.kind = AccessCode::kSwap;
  code.bytes = static_cast<std::uint8_t>(bits / 8);
  check(e, where, code);
  Value* addresses = address_pointer(e, where);
  e.to_scratch(8, e.read_lanes(i.operands[first + 1], bits));
  if (swap) e.to_scratch(12, e.read_lanes(i.operands[first + 2], bits));
  const unsigned packed = static_cast<unsigned>(operation) |
                          (static_cast<unsigned>(atomic_kind(type)) << 8) | (bits << 16);
  e.call("atomic",
         {e.scratch(16), addresses, e.scratch(8), e.scratch(12), e.execution_bits(), packed});
  if (returns) e.write(i.operands[0], e.from_scratch(16, e.integer(bits, false)));
}

AtomicKind atomic_kind(Type type) {
  if (type.kind == Kind::kBfloat) return AtomicKind::kBfloat;
  if (type.kind == Kind::kFloat) return type.bits == 16 ? AtomicKind::kHalf : AtomicKind::kFloat;
  return type.is_signed() ? AtomicKind::kSigned : AtomicKind::kUnsigned;
}

Value* op_atomic(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  constexpr Space kSpaces[] = {Space::kGeneric, Space::kGlobal, Space::kShared, Space::kShared,
                               Space::kCluster};
  const bool swap = mods.has("cas");
  need(i, (i.is(Op::kAtom) ? 1U : 0U) + 2U + (swap ? 1U : 0U) +
              (mods.has("L2::cache_hint") ? 1U : 0U));
  emit_atomic(e, i, kSpaces[mods.of("global") + 1]);
  return nullptr;
}

bool operates_on(AtomicOp operation, Type type) {
  if (operation == AtomicOp::kInc || operation == AtomicOp::kDec) {
    return type == Type{ptx::Kind::kUnsigned, 32, 1};
  }
  const bool of_numbers =
      operation == AtomicOp::kAdd || operation == AtomicOp::kMin || operation == AtomicOp::kMax;
  return of_numbers != (type.kind == ptx::Kind::kBits);
}

/// Each element by itself, as the PTX manual has it: adds of f32, and adds and extremes of 16-bit
/// floats, alone or in pairs, in 8 or 16 bytes, of single ones also in 4.
Value* op_atomic_vector(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool returns = i.is(Op::kAtomVector);
  const auto operation = static_cast<AtomicOp>(mods.of("add"));
  const Type type = mods.type();
  const unsigned bits = type.total_bits();
  const unsigned count = 2U << mods.of("v2");
  if (bits * count > 128 || type.bits > 32 || (type.bits == 32 && operation != AtomicOp::kAdd)) {
    bad_combination(i);
  }
  const std::size_t first = returns ? 1 : 0;
  Address where =
      address(e, i, i.operands[first], mods.has("global") ? Space::kGlobal : Space::kGeneric);
  const std::vector<Operand> sources = elements_of(i, i.operands[first + 1], count);
  const std::vector<Operand> results =
      returns ? elements_of(i, i.operands[0], count) : std::vector<Operand>();
  AccessCode code = atomic_access(i);
  code.bytes = static_cast<std::uint8_t>(bits / 8 * count);
  check(e, where, code);
  const unsigned packed = static_cast<unsigned>(operation) |
                          (static_cast<unsigned>(atomic_kind(type)) << 8) | (bits << 16);
  // All are read before one is written: a result may be the register of a later source.
  std::vector<Value*> olds;
  for (unsigned k = 0; k < count; ++k) {
    Value* place = e.ir.CreateAdd(address_lanes(e, where), e.splat(e.ir.getInt64(k * bits / 8)));
    e.call("atomic",
           {e.scratch(16), e.to_scratch(0, place), e.to_scratch(8, e.read_lanes(sources[k], bits)),
            e.scratch(12), e.execution_bits(), packed});
    if (returns) olds.push_back(e.from_scratch(16, e.integer(bits, false)));
  }
  for (std::size_t k = 0; k < olds.size(); ++k) e.write(results[k], olds[k]);
  return nullptr;
}

}  // namespace braid::cpu
