#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using ptx::Kind;
using ptx::Space;
using ptx::Type;

AtomicKind Translator::atomic_kind(Type type) {
  if (type.kind == Kind::kBfloat) return AtomicKind::kBfloat;
  if (type.kind == Kind::kFloat) return type.bits == 16 ? AtomicKind::kHalf : AtomicKind::kFloat;
  return type.is_signed() ? AtomicKind::kSigned : AtomicKind::kUnsigned;
}

/// The order and scope of an atomic; without a scope it has device scope.
AccessCode Translator::atomic_access(const Instruction& i) {
  const Choices mods(i);
  AccessCode code{.kind = AccessCode::kAtomic, .order = AccessCode::kRelaxed};
  constexpr AccessCode::Order kOrders[] = {AccessCode::kRelaxed, AccessCode::kAcquire,
                                           AccessCode::kRelease, AccessCode::kAcquireRelease};
  if (const int order = mods.of("relaxed"); order >= 0) code.order = kOrders[order];
  code.scope = mods.of("cta") < 0 ? 2 : scope_of(mods);
  return code;
}

void Translator::op_atomic(const Instruction& i) {
  const Choices mods(i);
  constexpr Space kSpaces[] = {Space::kGeneric, Space::kGlobal, Space::kShared, Space::kShared,
                               Space::kCluster};
  const bool swap = mods.has("cas");
  need(i, (i.is(Op::kAtom) ? 1U : 0U) + 2U + (swap ? 1U : 0U) +
              (mods.has("L2::cache_hint") ? 1U : 0U));
  reduce(i, kSpaces[mods.of("global") + 1]);
}

/// Whether these are the types that the operation is for: numbers or bits.
bool Translator::operates_on(AtomicOp operation, Type type) {
  if (operation == AtomicOp::kInc || operation == AtomicOp::kDec) {
    return type == Type{ptx::Kind::kUnsigned, 32, 1};
  }
  const bool of_numbers =
      operation == AtomicOp::kAdd || operation == AtomicOp::kMin || operation == AtomicOp::kMax;
  return of_numbers != (type.kind == ptx::Kind::kBits);
}

/// An atomic operation, whose result is there or not.
void Translator::reduce(const Instruction& i, Space space) {
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
    atomic_pair(i, space);
    return;
  }
  if (!operates_on(operation, type) || (is_float && operation != AtomicOp::kAdd) || bits < 16 ||
      bits > 64 || (bits == 16 && !is_float && !swap && operation != AtomicOp::kExch)) {
    bad(i, "unsupported combination");
  }
  Address where = address(i, i.operands[first], space);
  AccessCode code = atomic_access(i);
  if (swap) code.kind = AccessCode::kSwap;
  code.bytes = static_cast<std::uint8_t>(bits / 8);
  check(where, code);
  Value* addresses = address_pointer(where);
  to_scratch(8, read_lanes(i.operands[first + 1], bits));
  if (swap) to_scratch(12, read_lanes(i.operands[first + 2], bits));
  const unsigned packed = static_cast<unsigned>(operation) |
                          (static_cast<unsigned>(atomic_kind(type)) << 8) | (bits << 16);
  call("atomic", {scratch(16), addresses, scratch(8), scratch(12), execution_bits(), packed});
  if (returns) write(i.operands[0], from_scratch(16, integer(bits, false)));
}

/// Exchanges 128 bits, or does so where they are what was expected.
void Translator::atomic_pair(const Instruction& i, Space space) {
  const bool swap = Choices(i).has("cas");
  const bool returns = i.is(Op::kAtom);
  const std::size_t first = returns ? 1 : 0;
  Address where = address(i, i.operands[first], space);
  AccessCode code = atomic_access(i);
  if (swap) code.kind = AccessCode::kSwap;
  code.bytes = 16;
  check(where, code);
  Value* addresses = address_pointer(where);
  // The expected value, if any, then the new one; the halves of each separately.
  unsigned place = 4;
  for (std::size_t n = first + 1; n < first + (swap ? 3U : 2U); ++n) {
    for (const Operand& half : elements_of(i, i.operands[n], 2)) {
      to_scratch(place, read_lanes(half, 64));
      place += 2;
    }
  }
  call("atomic_pair", {scratch(12), addresses, scratch(4), execution_bits(), swap});
  if (!returns) return;
  const std::vector<Operand> results = elements_of(i, i.operands[0], 2);
  for (unsigned k = 0; k < 2; ++k) {
    write(results[k], from_scratch(12 + 2 * k, integer(64, false)));
  }
}

/// Each element by itself, as the PTX manual has it: adds of f32, and adds and extremes of 16-bit
/// floats, alone or in pairs, in 8 or 16 bytes, of single ones also in 4.
void Translator::op_atomic_vector(const Instruction& i) {
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
      address(i, i.operands[first], mods.has("global") ? Space::kGlobal : Space::kGeneric);
  const std::vector<Operand> sources = elements_of(i, i.operands[first + 1], count);
  const std::vector<Operand> results =
      returns ? elements_of(i, i.operands[0], count) : std::vector<Operand>();
  AccessCode code = atomic_access(i);
  code.bytes = static_cast<std::uint8_t>(bits / 8 * count);
  check(where, code);
  const unsigned packed = static_cast<unsigned>(operation) |
                          (static_cast<unsigned>(atomic_kind(type)) << 8) | (bits << 16);
  // All are read before one is written: a result may be the register of a later source.
  std::vector<Value*> olds;
  for (unsigned k = 0; k < count; ++k) {
    Value* place = b_.CreateAdd(address_lanes(where), splat(b_.getInt64(k * bits / 8)));
    call("atomic", {scratch(16), to_scratch(0, place), to_scratch(8, read_lanes(sources[k], bits)),
                    scratch(12), execution_bits(), packed});
    if (returns) olds.push_back(from_scratch(16, integer(bits, false)));
  }
  for (std::size_t k = 0; k < olds.size(); ++k) write(results[k], olds[k]);
}

}  // namespace braid::cpu
