#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/integers.h"

namespace braid::cpu {
namespace {

using llvm::Intrinsic::ID;
using ptx::Type;

ID extreme(bool minimum, bool is_signed) {
  if (minimum) return is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin;
  return is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax;
}

/// Writes a sum or a difference with the carry flag as Parser::expose_carry() shows it. A GPU
/// subtracts b by adding ~b + 1, and the flag is the carry of that: none where the ISA speaks of a
/// borrow. Chains of one kind cannot tell; NVRTC's division of 128 bits adds the flag of a
/// difference to a sum.
Value* add_with_carry(Emitter& e, const Instruction& i, bool add, Value* a, Value* b) {
  const bool reads = i.entry->reads_carry();
  if (!add && !reads) return e.with_predicate(i, e.ir.CreateSub(a, b), e.ir.CreateICmpUGE(a, b));
  if (!add) b = e.ir.CreateNot(b);
  Value* result = e.ir.CreateAdd(a, b);
  Value* carry = e.ir.CreateICmpULT(result, a);
  if (reads) {
    const unsigned bits = a->getType()->getScalarSizeInBits();
    Value* in = e.resize(e.read(i.operands.back(), 1), bits, false);
    result = e.ir.CreateAdd(result, in);
    carry = e.ir.CreateOr(carry, e.ir.CreateICmpULT(result, in));
  }
  return e.with_predicate(i, result, carry);
}

/// Stops the kernel if base + table leaves 32 bits, where the other lanes would not follow the
/// base.
void check_no_wrap(Emitter& e, const Operand& operand, Value* base, bool is_signed) {
  const Shape shape = e.shapes.operand_shape(operand);
  if (!shape.is_table() || shape.is_uniform() || (shape.is_disjoint() && shape.align < 31)) return;
  if (shape.align == 63) return;
  Value* wide = is_signed ? e.ir.CreateSExt(base, e.ir.getInt64Ty())
                          : e.ir.CreateZExt(base, e.ir.getInt64Ty());
  const auto edge = [&](std::int32_t t) {
    return e.ir.CreateAdd(wide, e.ir.getInt64(static_cast<std::uint64_t>(std::int64_t{t})));
  };
  const auto outside = [&](Value* value) -> Value* {
    Value* narrow = e.ir.CreateTrunc(value, e.ir.getInt32Ty());
    Value* again = is_signed ? e.ir.CreateSExt(narrow, e.ir.getInt64Ty())
                             : e.ir.CreateZExt(narrow, e.ir.getInt64Ty());
    return e.ir.CreateICmpNE(again, value);
  };
  Value* wraps = nullptr;
  if (shape.max() > 0) wraps = outside(edge(shape.max()));
  if (shape.min() < 0) {
    Value* low = outside(edge(shape.min()));
    wraps = wraps == nullptr ? low : e.ir.CreateOr(wraps, low);
  }
  e.split_unlikely(wraps, [&] { e.call("stop", {e.context, Stop::kWrap, e.line}); });
}

Value* multiply_high(Emitter& e, Value* a, Value* b, unsigned bits, bool is_signed) {
  Value* wide = e.ir.CreateMul(e.resize(a, 2 * bits, is_signed), e.resize(b, 2 * bits, is_signed));
  return e.resize(e.ir.CreateLShr(wide, bits), bits, false);
}

/// Most multiply an index by the bytes of an element: that LLVM has to find out, four times over
/// where the lanes fill as many registers.
Value* multiply_low(Emitter& e, Value* a, Value* b) {
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(b)) {
    if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
    if (number != nullptr && number->getValue().isPowerOf2()) {
      return e.ir.CreateShl(a, number->getValue().logBase2());
    }
  }
  return e.ir.CreateMul(a, b);
}

}  // namespace

Value* op_add_sub(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool saturate = mods.has("sat");
  const Type type = mods.type();
  const bool add = i.is(Op::kAdd) || i.is(Op::kAddc);
  Value* a = e.read(i.operands[1], type.total_bits());
  Value* b = e.read(i.operands[2], type.total_bits());
  if (i.entry->reads_carry() || mods.has("cc")) {
    if (saturate || type.bits < (mods.has("cc") ? 32 : 16)) bad(i, "unsupported combination");
    return add_with_carry(e, i, add, a, b);
  }
  if (saturate) {
    if (type.bits != 32 || !type.is_signed()) bad_combination(i);
    return e.intrinsic(add ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::ssub_sat, {a, b});
  }
  return add ? e.ir.CreateAdd(a, b) : e.ir.CreateSub(a, b);
}

Value* widen(Emitter& e, const Operand& operand, Type from, unsigned to) {
  Value* value = e.read(operand, from.bits);
  if (e.on_bases && from.bits == 32 && to == 64) check_no_wrap(e, operand, value, from.is_signed());
  return e.resize(value, to, from.is_signed());
}

Value* op_multiply(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool short_form = i.is(Op::kMul24) || i.is(Op::kMad24);
  const int part = mods.name();  // lo, hi, wide
  const bool saturate = mods.has("sat");
  const Type type = mods.type();
  const bool add = i.operands.size() > 3;
  const bool carries = i.entry->reads_carry() || mods.has("cc");
  if ((saturate && (!add || part != 1 || type.bits != 32 || !type.is_signed())) ||
      (carries && (part == 2 || saturate || (mods.has("cc") && type.bits < 32))) ||
      (short_form && type.bits != 32)) {
    bad(i, "unsupported combination");
  }
  Value* result = nullptr;
  unsigned bits = type.bits;
  if (part == 2) {
    if (bits == 64) bad_combination(i);
    bits *= 2;
    result =
        multiply_low(e, widen(e, i.operands[1], type, bits), widen(e, i.operands[2], type, bits));
  } else {
    Value* a = e.read(i.operands[1], bits);
    Value* b = e.read(i.operands[2], bits);
    if (short_form) {
      const auto cut = [&](Value* v) {
        v = e.ir.CreateShl(v, 8);
        return type.is_signed() ? e.ir.CreateAShr(v, 8) : e.ir.CreateLShr(v, 8);
      };
      a = cut(a);
      b = cut(b);
    }
    if (part == 0) {
      result = multiply_low(e, a, b);
    } else if (short_form) {
      Value* wide =
          e.ir.CreateMul(e.resize(a, 64, type.is_signed()), e.resize(b, 64, type.is_signed()));
      result = e.resize(e.ir.CreateLShr(wide, 16), 32, false);
    } else {
      result = multiply_high(e, a, b, bits, type.is_signed());
    }
  }
  if (!add) return result;
  Value* c = e.read(i.operands[3], bits);
  if (carries) return add_with_carry(e, i, true, result, c);
  return saturate ? e.intrinsic(llvm::Intrinsic::sadd_sat, {result, c}) : e.ir.CreateAdd(result, c);
}

Value* op_divide(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  const bool is_signed = type.is_signed();
  const bool quotient = i.is(Op::kDiv);
  Value* a = e.read(i.operands[1], type.bits);
  Value* b = e.read(i.operands[2], type.bits);
  // Host division traps on zero and on the one signed overflow; idle lanes may hold anything.
  Value* zero = zero_like(b);
  Value* ones = ones_like(b);
  Value* one = e.ir.CreateSub(zero, ones);
  Value* by_zero = e.ir.CreateICmpEQ(b, zero);
  if (!is_signed) {
    Value* divisor = e.ir.CreateSelect(by_zero, one, b);
    Value* result = quotient ? e.ir.CreateUDiv(a, divisor) : e.ir.CreateURem(a, divisor);
    return e.ir.CreateSelect(by_zero, quotient ? ones : a, result);
  }
  Value* minus = e.ir.CreateICmpEQ(b, ones);
  Value* divisor = e.ir.CreateSelect(e.ir.CreateOr(by_zero, minus), one, b);
  Value* result = quotient ? e.ir.CreateSDiv(a, divisor) : e.ir.CreateSRem(a, divisor);
  result = e.ir.CreateSelect(minus, quotient ? e.ir.CreateSub(zero, a) : zero, result);
  return e.ir.CreateSelect(by_zero, quotient ? ones : a, result);
}

Value* op_min_max(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  Value* result = e.intrinsic(extreme(i.is(Op::kMin), type.is_signed()),
                              {e.read(i.operands[1], type.bits), e.read(i.operands[2], type.bits)});
  if (mods.has("relu")) {
    if (type != Type{ptx::Kind::kSigned, 32, 1}) bad_combination(i);
    result = e.intrinsic(llvm::Intrinsic::smax, {result, zero_like(result)});
  }
  return result;
}

/// Two integers of 16 bits in a register.
Value* op_packed_integers(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool is_signed = mods.has("s16x2");
  const bool positive = mods.has("relu");
  if (positive && !is_signed) bad_combination(i);
  const bool subtracts = i.is(Op::kSubPacked) || i.is(Op::kNegPacked);
  Value* b = e.read(i.operands.back(), 32);
  Value* a = i.is(Op::kNegPacked) ? zero_like(b) : e.read(i.operands[1], 32);
  Value* result = nullptr;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    Value* x = e.resize(e.ir.CreateLShr(a, shift), 16, false);
    Value* y = e.resize(e.ir.CreateLShr(b, shift), 16, false);
    Value* half = i.is(Op::kAddPacked) ? e.ir.CreateAdd(x, y)
                  : subtracts          ? e.ir.CreateSub(x, y)
                              : e.intrinsic(extreme(i.is(Op::kMinPacked), is_signed), {x, y});
    if (positive) {
      half = e.intrinsic(llvm::Intrinsic::smax, {half, zero_like(half)});
    }
    half = e.ir.CreateShl(e.resize(half, 32, false), shift);
    result = result == nullptr ? half : e.ir.CreateOr(result, half);
  }
  return result;
}

Value* op_sign(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  if (!type.is_signed()) bad_combination(i);
  Value* a = e.read(i.operands[1], type.bits);
  Value* negated = e.ir.CreateNeg(a);
  return i.is(Op::kAbs) ? e.intrinsic(llvm::Intrinsic::smax, {a, negated}) : negated;
}

Value* op_sad(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  Value* a = e.read(i.operands[1], type.bits);
  Value* b = e.read(i.operands[2], type.bits);
  Value* less = type.is_signed() ? e.ir.CreateICmpSLT(a, b) : e.ir.CreateICmpULT(a, b);
  Value* distance = e.ir.CreateSelect(less, e.ir.CreateSub(b, a), e.ir.CreateSub(a, b));
  return e.ir.CreateAdd(distance, e.read(i.operands[3], type.bits));
}

Value* op_dot_product(Emitter& e, const Instruction& i) {
  // dp4a multiplies bytes; dp2a the halves of a and the low or high bytes of b.
  const Choices mods(i);
  const bool halves = i.is(Op::kDp2a);
  const int part = mods.name();
  const Type left = mods.type(0);
  const Type right = mods.type(1);
  if (left.bits != 32 || right.bits != 32) bad_combination(i);
  Value* a = e.read(i.operands[1], 32);
  Value* b = e.read(i.operands[2], 32);
  Value* sum = e.read(i.operands[3], 32);
  const auto field = [&](Value* v, unsigned bits, unsigned k, bool is_signed) {
    v = e.ir.CreateShl(v, 32 - bits - bits * k);
    return is_signed ? e.ir.CreateAShr(v, 32 - bits) : e.ir.CreateLShr(v, 32 - bits);
  };
  const unsigned count = halves ? 2 : 4;
  for (unsigned k = 0; k < count; ++k) {
    Value* x = field(a, 32 / count, k, left.is_signed());
    Value* y = field(b, 8, k + (part == 1 ? 2 : 0), right.is_signed());
    sum = e.ir.CreateAdd(sum, e.ir.CreateMul(x, y));
  }
  return sum;
}

}  // namespace braid::cpu
