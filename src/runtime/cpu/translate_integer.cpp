#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translator.h"

namespace braid::cpu {

using llvm::Intrinsic::ID;
using ptx::Type;

void Translator::op_add_sub(const Instruction& i) {
  if (!i.modifiers.empty()) {
    const auto type = ptx::parse_type(i.modifiers.back());
    if (type && type->is_float()) {
      float_add_multiply(i);
      return;
    }
  }
  Modifiers mods(i);
  const bool saturate = mods.take("sat");
  const Type type = mods.type();
  mods.finish();
  need(i, 3);
  const bool add = i.opcode == "add";
  Value* a = read(i.operands[1], type.total_bits());
  Value* b = read(i.operands[2], type.total_bits());
  if (type.lanes == 2) bad(i, "packed integers are not supported");
  if (saturate) {
    if (type.bits != 32 || !type.is_signed()) mods.unknown();
    write(i.operands[0],
          intrinsic(add ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::ssub_sat, {a, b}));
    return;
  }
  write(i.operands[0], add ? b_.CreateAdd(a, b) : b_.CreateSub(a, b));
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
  split_unlikely(wraps, [&] {
    call("braid_cpu_wrap", b_.getVoidTy(), {context_, b_.getInt32(line_)});
  });
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

void Translator::op_multiply(const Instruction& i) {
  if (!i.modifiers.empty()) {
    const auto type = ptx::parse_type(i.modifiers.back());
    if (type && type->is_float()) {
      if (i.opcode == "mad") {
        op_fma(i);
      } else {
        float_add_multiply(i);
      }
      return;
    }
  }
  Modifiers mods(i);
  const bool short_form = i.opcode == "mul24" || i.opcode == "mad24";
  const int part = mods.take_one({"lo", "hi", "wide"});
  const Type type = mods.type();
  mods.finish();
  const bool add = i.opcode == "mad" || i.opcode == "mad24";
  need(i, add ? 4 : 3);
  if (part < 0 || type.lanes != 1 || type.bits < 16) mods.unknown();
  Value* result = nullptr;
  unsigned bits = type.bits;
  if (part == 2) {
    if (bits == 64 || short_form) mods.unknown();
    bits *= 2;
    result = b_.CreateMul(widen(i.operands[1], type, bits), widen(i.operands[2], type, bits));
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
      result = b_.CreateMul(a, b);
    } else if (short_form) {
      bad(i, "not supported");
    } else {
      result = multiply_high(a, b, bits, type.is_signed());
    }
  }
  if (add) result = b_.CreateAdd(result, read(i.operands[3], bits));
  write(i.operands[0], result);
}

void Translator::op_divide(const Instruction& i) {
  if (!i.modifiers.empty()) {
    const auto type = ptx::parse_type(i.modifiers.back());
    if (type && type->is_float()) {
      op_float_divide(i);
      return;
    }
  }
  Modifiers mods(i);
  const Type type = mods.type();
  mods.finish();
  need(i, 3);
  const bool is_signed = type.is_signed();
  const bool quotient = i.opcode == "div";
  Value* a = read(i.operands[1], type.bits);
  Value* b = read(i.operands[2], type.bits);
  // Host division traps on zero and on the one signed overflow; idle lanes may hold anything.
  Value* zero = llvm::Constant::getNullValue(b->getType());
  Value* ones = llvm::Constant::getAllOnesValue(b->getType());
  Value* one = b_.CreateSub(zero, ones);
  Value* by_zero = b_.CreateICmpEQ(b, zero);
  if (!is_signed) {
    Value* divisor = b_.CreateSelect(by_zero, one, b);
    Value* result = quotient ? b_.CreateUDiv(a, divisor) : b_.CreateURem(a, divisor);
    write(i.operands[0], b_.CreateSelect(by_zero, quotient ? ones : a, result));
    return;
  }
  Value* minus = b_.CreateICmpEQ(b, ones);
  Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, minus), one, b);
  Value* result = quotient ? b_.CreateSDiv(a, divisor) : b_.CreateSRem(a, divisor);
  result = b_.CreateSelect(minus, quotient ? b_.CreateSub(zero, a) : zero, result);
  write(i.operands[0], b_.CreateSelect(by_zero, quotient ? ones : a, result));
}

void Translator::op_min_max(const Instruction& i) {
  if (!i.modifiers.empty()) {
    const auto type = ptx::parse_type(i.modifiers.back());
    if (type && type->is_float()) {
      float_min_max(i);
      return;
    }
  }
  Modifiers mods(i);
  const bool relu = mods.take("relu");
  const Type type = mods.type();
  mods.finish();
  need(i, 3);
  const bool minimum = i.opcode == "min";
  ID id = minimum ? llvm::Intrinsic::umin : llvm::Intrinsic::umax;
  if (type.is_signed()) id = minimum ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
  Value* result = intrinsic(id, {read(i.operands[1], type.bits), read(i.operands[2], type.bits)});
  if (relu) {
    if (!type.is_signed()) mods.unknown();
    result =
        intrinsic(llvm::Intrinsic::smax, {result, llvm::Constant::getNullValue(result->getType())});
  }
  write(i.operands[0], result);
}

void Translator::op_sign(const Instruction& i) {
  if (!i.modifiers.empty()) {
    const auto type = ptx::parse_type(i.modifiers.back());
    if (type && type->is_float()) {
      float_sign(i);
      return;
    }
  }
  Modifiers mods(i);
  const Type type = mods.type();
  mods.finish();
  need(i, 2);
  Value* a = read(i.operands[1], type.bits);
  Value* negated = b_.CreateNeg(a);
  if (i.opcode == "abs") {
    negated = intrinsic(llvm::Intrinsic::smax, {a, negated});
  }
  write(i.operands[0], negated);
}

void Translator::op_sad(const Instruction& i) {
  Modifiers mods(i);
  const Type type = mods.type();
  mods.finish();
  need(i, 4);
  Value* a = read(i.operands[1], type.bits);
  Value* b = read(i.operands[2], type.bits);
  Value* less = type.is_signed() ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
  Value* distance = b_.CreateSelect(less, b_.CreateSub(b, a), b_.CreateSub(a, b));
  write(i.operands[0], b_.CreateAdd(distance, read(i.operands[3], type.bits)));
}

void Translator::op_dot_product(const Instruction& i) {
  Modifiers mods(i);
  const Type left = mods.type();
  const Type right = mods.type();
  mods.finish();
  need(i, 4);
  if (left.bits != 32 || right.bits != 32) mods.unknown();
  Value* a = read(i.operands[1], 32);
  Value* b = read(i.operands[2], 32);
  Value* sum = read(i.operands[3], 32);
  const auto byte = [&](Value* v, unsigned k, bool is_signed) {
    v = b_.CreateShl(v, 24 - 8 * k);
    return is_signed ? b_.CreateAShr(v, 24) : b_.CreateLShr(v, 24);
  };
  for (unsigned k = 0; k < 4; ++k) {
    sum = b_.CreateAdd(sum,
                       b_.CreateMul(byte(a, k, left.is_signed()), byte(b, k, right.is_signed())));
  }
  write(i.operands[0], sum);
}

}  // namespace braid::cpu
