
#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/atomics.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {
namespace {

using ptx::Kind;
using ptx::Space;
using ptx::Type;

/// Checks the PTX manual's rules: floats in 4, 8 or 16 bytes, no vectors of integers or f64, no min
/// and max of f32 or f64, and wide sums only for 16-bit floats.
MultimemCode multimem_code(const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  MultimemCode code;
  code.what = i.is(Op::kMultimemLoadReduce) ? MultimemCode::kLoadReduce
              : i.is(Op::kMultimemSt)       ? MultimemCode::kStore
                                            : MultimemCode::kReduce;
  code.kind = atomic_kind(type);
  code.bits = static_cast<std::uint8_t>(type.bits);
  code.lanes = type.lanes;
  const int vector = mods.of("v2");
  code.count = static_cast<std::uint8_t>(vector < 0 ? 1 : 2U << vector);
  code.wide = mods.has("acc::f32");
  const std::uint32_t bytes = code.bytes();
  const bool whole = bytes == 4 || bytes == 8 || bytes == 16;
  bool good = whole && type.bits >= 16 && type.bits <= 64 && type.kind != Kind::kPred &&
              (code.count == 1 || (type.is_float() && type.bits < 64));
  if (code.what == MultimemCode::kStore) {
    if (!good) bad_combination(i);
    return code;
  }
  code.op = static_cast<AtomicOp>(mods.of("add"));
  const bool adds = code.op == AtomicOp::kAdd;
  const bool orders = code.op == AtomicOp::kMin || code.op == AtomicOp::kMax;
  if (type.is_float()) {
    good = good && (adds || (orders && type.bits == 16));
  } else {
    const bool bitwise = !adds && !orders;
    good = good && bitwise == (type.kind == Kind::kBits) &&
           !(adds && type == Type{Kind::kSigned, 64, 1});
  }
  if (code.wide) good = good && adds && type.is_float() && type.bits == 16;
  if (!good) bad_combination(i);
  return code;
}

}  // namespace

Value* op_multimem(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const MultimemCode code = multimem_code(i);
  const bool loads = code.what == MultimemCode::kLoadReduce;
  AccessCode access{.kind = loads                               ? AccessCode::kLoad
                            : code.what == MultimemCode::kStore ? AccessCode::kStore
                                                                : AccessCode::kAtomic,
                    .bytes = static_cast<std::uint8_t>(code.bytes())};
  if (mods.has("acquire")) access.order = AccessCode::kAcquire;
  if (mods.has("release")) access.order = AccessCode::kRelease;
  if (mods.has("relaxed")) access.order = AccessCode::kRelaxed;
  // An atomic without a scope reaches the device.
  if (access.order != AccessCode::kWeak) access.scope = scope_of(mods);
  if (access.kind == AccessCode::kAtomic) {
    if (access.order == AccessCode::kWeak) access.order = AccessCode::kRelaxed;
    access.scope = mods.of("cta") < 0 ? 2 : scope_of(mods);
  }
  Address where = address(e, i, i.operands[loads ? 1 : 0],
                          mods.has("global") ? Space::kGlobal : Space::kGeneric);
  const std::vector<Operand> registers = elements_of(i, i.operands[loads ? 0 : 1], code.count);
  const unsigned bits = unsigned{code.bits} * code.lanes;
  if (!loads) {
    for (unsigned k = 0; k < code.count; ++k)
      e.to_scratch(8 + 2 * k, e.read_lanes(registers[k], bits));
  }
  e.call("multimem", {e.context, e.scratch(8), e.to_scratch(0, address_lanes(e, where)),
                      e.execution_bits(), code, access, e.line, count_place(e)});
  if (!loads) return nullptr;
  for (unsigned k = 0; k < code.count; ++k) {
    e.write(registers[k], e.from_scratch(8 + 2 * k, e.integer(bits, false)));
  }
  return nullptr;
}

}  // namespace braid::cpu
