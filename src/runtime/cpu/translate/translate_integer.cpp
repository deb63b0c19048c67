#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using llvm::Intrinsic::ID;
using ptx::Type;

namespace {

ID extreme(bool minimum, bool is_signed) {
  if (minimum) return is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin;
  return is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax;
}

}  // namespace

llvm::Value* Translator::op_add_sub(const Instruction& i) {
  const Choices mods(i);
  const bool saturate = mods.has("sat");
  const Type type = mods.type();
  const bool add = i.is(Op::kAdd) || i.is(Op::kAddc);
  Value* a = read(i.operands[1], type.total_bits());
  Value* b = read(i.operands[2], type.total_bits());
  if (i.entry->reads_carry() || mods.has("cc")) {
    if (saturate || type.bits < (mods.has("cc") ? 32 : 16)) bad(i, "unsupported combination");
    return add_with_carry(i, add, a, b);
  }
  if (saturate) {
    if (type.bits != 32 || !type.is_signed()) bad_combination(i);
    return intrinsic(add ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::ssub_sat, {a, b});
  }
  return add ? b_.CreateAdd(a, b) : b_.CreateSub(a, b);
}

/// Writes a sum or a difference with the carry flag as Parser::expose_carry() shows it. A GPU
/// subtracts b by adding ~b + 1, and the flag is the carry of that: none where the ISA speaks of a
/// borrow. Chains of one kind cannot tell; NVRTC's division of 128 bits adds the flag of a
/// difference to a sum.
llvm::Value* Translator::add_with_carry(const Instruction& i, bool add, Value* a, Value* b) {
  const bool reads = i.entry->reads_carry();
  if (!add && !reads) return with_predicate(i, b_.CreateSub(a, b), b_.CreateICmpUGE(a, b));
  if (!add) b = b_.CreateNot(b);
  Value* result = b_.CreateAdd(a, b);
  Value* carry = b_.CreateICmpULT(result, a);
  if (reads) {
    const unsigned bits = a->getType()->getScalarSizeInBits();
    Value* in = resize(read(i.operands.back(), 1), bits, false);
    result = b_.CreateAdd(result, in);
    carry = b_.CreateOr(carry, b_.CreateICmpULT(result, in));
  }
  return with_predicate(i, result, carry);
}

/// Stops the kernel if base + table leaves 32 bits, where the other lanes would not follow the
/// base.
void Translator::check_no_wrap(const Operand& operand, Value* base, bool is_signed) {
  const Shape shape = shapes_.operand_shape(operand);
  if (!shape.is_table() || shape.is_uniform() || (shape.is_disjoint() && shape.align < 31)) return;
  if (shape.align == 63) return;
  Value* wide =
      is_signed ? b_.CreateSExt(base, b_.getInt64Ty()) : b_.CreateZExt(base, b_.getInt64Ty());
  const auto edge = [&](std::int32_t t) {
    return b_.CreateAdd(wide, b_.getInt64(static_cast<std::uint64_t>(std::int64_t{t})));
  };
  const auto outside = [&](Value* value) -> Value* {
    Value* narrow = b_.CreateTrunc(value, b_.getInt32Ty());
    Value* again =
        is_signed ? b_.CreateSExt(narrow, b_.getInt64Ty()) : b_.CreateZExt(narrow, b_.getInt64Ty());
    return b_.CreateICmpNE(again, value);
  };
  Value* wraps = nullptr;
  if (shape.max() > 0) wraps = outside(edge(shape.max()));
  if (shape.min() < 0) {
    Value* low = outside(edge(shape.min()));
    wraps = wraps == nullptr ? low : b_.CreateOr(wraps, low);
  }
  split_unlikely(wraps, [&] { call("stop", {context_, Stop::kWrap, line_}); });
}

llvm::Value* Translator::widen(const Operand& operand, Type from, unsigned to) {
  Value* value = read(operand, from.bits);
  if (scalar_ && from.bits == 32 && to == 64) check_no_wrap(operand, value, from.is_signed());
  return resize(value, to, from.is_signed());
}

llvm::Value* Translator::multiply_high(Value* a, Value* b, unsigned bits, bool is_signed) {
  Value* wide = b_.CreateMul(resize(a, 2 * bits, is_signed), resize(b, 2 * bits, is_signed));
  return resize(b_.CreateLShr(wide, bits), bits, false);
}

/// Most multiply an index by the bytes of an element: that LLVM has to find out, four times over
/// where the lanes fill as many registers.
llvm::Value* Translator::multiply_low(Value* a, Value* b) {
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(b)) {
    if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
    if (number != nullptr && number->getValue().isPowerOf2()) {
      return b_.CreateShl(a, number->getValue().logBase2());
    }
  }
  return b_.CreateMul(a, b);
}

llvm::Value* Translator::op_multiply(const Instruction& i) {
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
    result = multiply_low(widen(i.operands[1], type, bits), widen(i.operands[2], type, bits));
  } else {
    Value* a = read(i.operands[1], bits);
    Value* b = read(i.operands[2], bits);
    if (short_form) {
      const auto cut = [&](Value* v) {
        v = b_.CreateShl(v, 8);
        return type.is_signed() ? b_.CreateAShr(v, 8) : b_.CreateLShr(v, 8);
      };
      a = cut(a);
      b = cut(b);
    }
    if (part == 0) {
      result = multiply_low(a, b);
    } else if (short_form) {
      Value* wide = b_.CreateMul(resize(a, 64, type.is_signed()), resize(b, 64, type.is_signed()));
      result = resize(b_.CreateLShr(wide, 16), 32, false);
    } else {
      result = multiply_high(a, b, bits, type.is_signed());
    }
  }
  if (!add) return result;
  Value* c = read(i.operands[3], bits);
  if (carries) return add_with_carry(i, true, result, c);
  return saturate ? intrinsic(llvm::Intrinsic::sadd_sat, {result, c}) : b_.CreateAdd(result, c);
}

llvm::Value* Translator::op_divide(const Instruction& i) {
  const Type type = Choices(i).type();
  const bool is_signed = type.is_signed();
  const bool quotient = i.is(Op::kDiv);
  Value* a = read(i.operands[1], type.bits);
  Value* b = read(i.operands[2], type.bits);
  // Host division traps on zero and on the one signed overflow; idle lanes may hold anything.
  Value* zero = zero_like(b);
  Value* ones = ones_like(b);
  Value* one = b_.CreateSub(zero, ones);
  Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (!is_signed) {
    Value* divisor = b_.CreateSelect(by_zero, one, b);
    Value* result = quotient ? b_.CreateUDiv(a, divisor) : b_.CreateURem(a, divisor);
    return b_.CreateSelect(by_zero, quotient ? ones : a, result);
  }
  Value* minus = b_.CreateICmpEQ(b, ones);
  Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, minus), one, b);
  Value* result = quotient ? b_.CreateSDiv(a, divisor) : b_.CreateSRem(a, divisor);
  result = b_.CreateSelect(minus, quotient ? b_.CreateSub(zero, a) : zero, result);
  return b_.CreateSelect(by_zero, quotient ? ones : a, result);
}

llvm::Value* Translator::op_min_max(const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  Value* result = intrinsic(extreme(i.is(Op::kMin), type.is_signed()),
                            {read(i.operands[1], type.bits), read(i.operands[2], type.bits)});
  if (mods.has("relu")) {
    if (type != Type{ptx::Kind::kSigned, 32, 1}) bad_combination(i);
    result = intrinsic(llvm::Intrinsic::smax, {result, zero_like(result)});
  }
  return result;
}

/// Two integers of 16 bits in a register.
llvm::Value* Translator::op_packed_integers(const Instruction& i) {
  const Choices mods(i);
  const bool is_signed = mods.has("s16x2");
  const bool positive = mods.has("relu");
  if (positive && !is_signed) bad_combination(i);
  const bool subtracts = i.is(Op::kSubPacked) || i.is(Op::kNegPacked);
  Value* b = read(i.operands.back(), 32);
  Value* a = i.is(Op::kNegPacked) ? zero_like(b) : read(i.operands[1], 32);
  Value* result = nullptr;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    Value* x = resize(b_.CreateLShr(a, shift), 16, false);
    Value* y = resize(b_.CreateLShr(b, shift), 16, false);
    Value* half = i.is(Op::kAddPacked) ? b_.CreateAdd(x, y)
                  : subtracts          ? b_.CreateSub(x, y)
                              : intrinsic(extreme(i.is(Op::kMinPacked), is_signed), {x, y});
    if (positive) {
      half = intrinsic(llvm::Intrinsic::smax, {half, zero_like(half)});
    }
    half = b_.CreateShl(resize(half, 32, false), shift);
    result = result == nullptr ? half : b_.CreateOr(result, half);
  }
  return result;
}

llvm::Value* Translator::op_sign(const Instruction& i) {
  const Type type = Choices(i).type();
  if (!type.is_signed()) bad_combination(i);
  Value* a = read(i.operands[1], type.bits);
  Value* negated = b_.CreateNeg(a);
  return i.is(Op::kAbs) ? intrinsic(llvm::Intrinsic::smax, {a, negated}) : negated;
}

llvm::Value* Translator::op_sad(const Instruction& i) {
  const Type type = Choices(i).type();
  Value* a = read(i.operands[1], type.bits);
  Value* b = read(i.operands[2], type.bits);
  Value* less = type.is_signed() ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
  Value* distance = b_.CreateSelect(less, b_.CreateSub(b, a), b_.CreateSub(a, b));
  return b_.CreateAdd(distance, read(i.operands[3], type.bits));
}

llvm::Value* Translator::op_dot_product(const Instruction& i) {
  // dp4a multiplies bytes; dp2a the halves of a and the low or high bytes of b.
  const Choices mods(i);
  const bool halves = i.is(Op::kDp2a);
  const int part = mods.name();
  const Type left = mods.type(0);
  const Type right = mods.type(1);
  if (left.bits != 32 || right.bits != 32) bad_combination(i);
  Value* a = read(i.operands[1], 32);
  Value* b = read(i.operands[2], 32);
  Value* sum = read(i.operands[3], 32);
  const auto field = [&](Value* v, unsigned bits, unsigned k, bool is_signed) {
    v = b_.CreateShl(v, 32 - bits - bits * k);
    return is_signed ? b_.CreateAShr(v, 32 - bits) : b_.CreateLShr(v, 32 - bits);
  };
  const unsigned count = halves ? 2 : 4;
  for (unsigned k = 0; k < count; ++k) {
    Value* x = field(a, 32 / count, k, left.is_signed());
    Value* y = field(b, 8, k + (part == 1 ? 2 : 0), right.is_signed());
    sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
  }
  return sum;
}

}  // namespace braid::cpu
