#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {
namespace {

using ptx::Kind;
using ptx::Type;

constexpr Type kSingle{Kind::kFloat, 32, 1};
constexpr Type kPair{Kind::kFloat, 32, 2};

/// Whether no lane holds a signaling NaN, as far as one sees.
bool is_quiet(const Value* value, int steps = 8) {
  if (steps == 0) return false;
  const auto* i = llvm::dyn_cast<llvm::Instruction>(value);
  if (i == nullptr) return false;
  const auto operand = [&](unsigned n) { return is_quiet(i->getOperand(n), steps - 1); };
  switch (i->getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
      // The min or max of a number and something may be folded to that.
      return !llvm::isa<llvm::Constant>(i->getOperand(0)) &&
             !llvm::isa<llvm::Constant>(i->getOperand(1));
    case llvm::Instruction::BitCast:
      return operand(0);
    case llvm::Instruction::ShuffleVector:
      return operand(0) && (llvm::isa<llvm::UndefValue>(i->getOperand(1)) || operand(1));
    case llvm::Instruction::Call:
      switch (llvm::cast<llvm::CallInst>(i)->getIntrinsicID()) {
        case llvm::Intrinsic::x86_avx512_mask_range_ps_512:
        case llvm::Intrinsic::x86_avx512_mask_scalef_ps_512:
          return true;
        default:
          return false;
      }
    default:
      return false;
  }
}

Value* without_casts(Value* value) {
  while (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
  return value;
}

/// The last bit of `near` set unless it is exact, after a step towards zero if it is too big.
Value* make_odd(Emitter& e, Value* near, Value* exact, Value* too_big) {
  llvm::Type* word =
      e.integer(near->getType()->getScalarSizeInBits(), !near->getType()->isVectorTy());
  Value* bits = e.ir.CreateBitCast(near, word);
  Value* lower = e.ir.CreateSub(bits, e.ir.CreateZExt(too_big, word));
  Value* odd = e.ir.CreateOr(lower, llvm::ConstantInt::get(word, 1));
  return e.ir.CreateBitCast(e.ir.CreateSelect(exact, bits, odd), near->getType());
}

/// a * b + c of values whose product is exact in f64, with the sticky bit.
Value* fused_double(Emitter& e, Value* a, Value* b, Value* c) {
  Value* product = e.ir.CreateFMul(a, b);
  Value* sum = e.ir.CreateFAdd(product, c);
  Value* part = e.ir.CreateFSub(sum, product);
  Value* error = e.ir.CreateFAdd(e.ir.CreateFSub(product, e.ir.CreateFSub(sum, part)),
                                 e.ir.CreateFSub(c, part));
  Value* zero = zero_like(sum);
  Value* exact = e.ir.CreateNot(e.ir.CreateFCmpONE(error, zero));
  Value* too_big = e.ir.CreateXor(e.ir.CreateFCmpOLT(error, zero), e.ir.CreateFCmpOLT(sum, zero));
  return make_odd(e, sum, exact, too_big);
}

Value* fused(Emitter& e, Type type, Rounding rounding, Value* a, Value* b, Value* c) {
  if (type.bits == 16) {
    const Type wide{Kind::kFloat, 64, 1};
    llvm::Type* to = e.floating(wide, !a->getType()->isVectorTy());
    a = e.ir.CreateFPExt(a, to);
    b = e.ir.CreateFPExt(b, to);
    c = e.ir.CreateFPExt(c, to);
    // The few exponents of f16 keep what an f64 sum loses away from its rounding; bf16 has many.
    return odd_float(e, type.kind == Kind::kBfloat ? fused_double(e, a, b, c)
                                                   : e.intrinsic(llvm::Intrinsic::fma, {a, b, c}));
  }
  if (rounding == Rounding::kNearest) return e.intrinsic(llvm::Intrinsic::fma, {a, b, c});
  return e.map_lanes(type.bits == 64 ? "fma_f64" : "fma_f32", {a, b, c}, rounding);
}

Arithmetic arithmetic_of(const Instruction& i) {
  if (i.name == "add") return Arithmetic::kAdd;
  if (i.name == "sub") return Arithmetic::kSub;
  return i.name == "mul" ? Arithmetic::kMul : Arithmetic::kDiv;
}

/// Whether a 16-bit float, as it was widened, is the NaN of elements outside of a tensor: 0x7fff.
Value* is_filled(Emitter& e, Value* value, Type type) {
  llvm::Type* word = e.integer(32, !value->getType()->isVectorTy());
  const std::uint32_t bits = type.kind == ptx::Kind::kBfloat ? 0x7fff0000 : 0x7fffe000;
  return e.ir.CreateICmpEQ(e.ir.CreateBitCast(value, word), llvm::ConstantInt::get(word, bits));
}

/// The same for f32 by the host's instruction, which handles zeros and quiet NaNs.
Value* extreme_by_range(Emitter& e, bool minimum, Value* a, Value* b) {
  constexpr unsigned kMinimum = 4, kMaximum = 5;
  // The result for each class, the first in the lowest bits: a signaling NaN, the second class, is
  // made quiet; all others stay.
  constexpr unsigned kQuiet = 0x11111121;
  Value* all = e.ir.getInt16(0xffff);
  Value* rounding = e.ir.getInt32(4);  // as it is
  const auto raw = [&](Value* value) {
    Value* const found = e.raw_extremes.lookup(without_casts(value));
    return found == nullptr ? value : found;
  };
  const auto quiet = [&](Value* value) {
    if (is_quiet(value)) return value;
    return e.by_halves({value}, [&](llvm::ArrayRef<Value*> of) {
      return e.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512, {},
                                  {of[0], of[0], e.ir.CreateVectorSplat(16, e.ir.getInt32(kQuiet)),
                                   e.ir.getInt32(0), all, rounding});
    });
  };
  Value* found = e.by_halves({quiet(raw(a)), quiet(raw(b))}, [&](llvm::ArrayRef<Value*> of) {
    return e.ir.CreateIntrinsic(
        llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
        {of[0], of[1], e.ir.getInt32(minimum ? kMinimum : kMaximum), of[0], all, rounding});
  });
  constexpr std::uint32_t kNan = 0x7fffffff;
  Value* nan = e.ir.CreateBitCast(e.splat(e.ir.getInt32(kNan)), found->getType());
  Value* result = e.ir.CreateSelect(e.ir.CreateFCmpUNO(found, found), nan, found);
  e.raw_extremes[result] = found;
  return result;
}

/// -0 is below +0. Without `propagate` a NaN gives way to the other operand.
Value* float_extreme(Emitter& e, bool minimum, bool propagate, Value* a, Value* b) {
  const bool words = a->getType() == e.floating({Kind::kFloat, 32, 1}, false);
  if (words && !propagate && e.host.scales) return extreme_by_range(e, minimum, a, b);
  // The host's own, which takes b where it cannot tell: of two zeros, or beside a NaN.
  Value* ahead = minimum ? e.ir.CreateFCmpOLT(a, b) : e.ir.CreateFCmpOGT(a, b);
  Value* result = e.ir.CreateSelect(ahead, a, b);
  llvm::Type* word = e.integer(a->getType()->getScalarSizeInBits(), !a->getType()->isVectorTy());
  Value* bits_a = e.ir.CreateBitCast(a, word);
  Value* bits_b = e.ir.CreateBitCast(b, word);
  Value* zero = minimum ? e.ir.CreateOr(bits_a, bits_b) : e.ir.CreateAnd(bits_a, bits_b);
  result =
      e.ir.CreateSelect(e.ir.CreateFCmpOEQ(a, b), e.ir.CreateBitCast(zero, a->getType()), result);
  Value* quiet = e.ir.CreateBitCast(
      e.ir.CreateLShr(llvm::Constant::getAllOnesValue(word), llvm::ConstantInt::get(word, 1)),
      a->getType());
  if (propagate) return e.ir.CreateSelect(e.ir.CreateFCmpUNO(a, b), quiet, result);
  Value* number = e.ir.CreateSelect(e.ir.CreateFCmpUNO(a, a), quiet, a);
  return e.ir.CreateSelect(e.ir.CreateFCmpUNO(b, b), number, result);
}

}  // namespace

Rounding rounding_of(const Choices& mods) {
  const int index = mods.of("rn");
  return index < 0 || index > 3 ? Rounding::kNearest : static_cast<Rounding>(index);
}

Value* flush(Emitter& e, Value* value, bool ftz, Type type) {
  if (!ftz || !value->getType()->getScalarType()->isFloatTy()) return value;
  const bool half = type.kind == Kind::kFloat && type.bits == 16;
  const double limit = half ? 0x1p-14 - 0x1p-25 : 0x1p-126;
  Value* size = e.intrinsic(llvm::Intrinsic::fabs, {value});
  Value* small = e.ir.CreateFCmpOLT(size, llvm::ConstantFP::get(value->getType(), limit));
  Value* zero = e.intrinsic(llvm::Intrinsic::copysign, {zero_like(value), value});
  return e.ir.CreateSelect(small, zero, value);
}

Value* relu(Emitter& e, Value* value) {
  Value* zero = zero_like(value);
  return e.ir.CreateSelect(e.ir.CreateFCmpOLE(value, zero), zero, value);
}

Value* clamp(Emitter& e, Value* value, bool saturate) {
  if (!saturate) return value;
  Value* zero = zero_like(value);
  Value* one = llvm::ConstantFP::get(value->getType(), 1.0);
  value = e.ir.CreateSelect(e.ir.CreateFCmpOGT(value, zero), value, zero);
  return e.ir.CreateSelect(e.ir.CreateFCmpOLT(value, one), value, one);
}

Value* odd_float(Emitter& e, Value* value) {
  const bool scalar = !value->getType()->isVectorTy();
  const Type single{Kind::kFloat, 32, 1};
  Value* near = e.ir.CreateFPTrunc(value, e.floating(single, scalar));
  Value* back = e.ir.CreateFPExt(near, value->getType());
  Value* exact = e.ir.CreateNot(e.ir.CreateFCmpONE(back, value));
  Value* too_big = e.ir.CreateFCmpOGT(e.intrinsic(llvm::Intrinsic::fabs, {back}),
                                      e.intrinsic(llvm::Intrinsic::fabs, {value}));
  return make_odd(e, near, exact, too_big);
}

Value* float_binary(Emitter& e, Arithmetic operation, Type type, Rounding rounding, Value* a,
                    Value* b) {
  if (rounding != Rounding::kNearest && type.bits >= 32) {
    constexpr const char* kHelpers[4][2] = {{"add_f32", "add_f64"},
                                            {"sub_f32", "sub_f64"},
                                            {"mul_f32", "mul_f64"},
                                            {"div_f32", "div_f64"}};
    return e.map_lanes(kHelpers[static_cast<std::size_t>(operation)][type.bits == 64 ? 1 : 0],
                       {a, b}, rounding);
  }
  switch (operation) {
    case Arithmetic::kAdd:
      return e.ir.CreateFAdd(a, b);
    case Arithmetic::kSub:
      return e.ir.CreateFSub(a, b);
    case Arithmetic::kMul:
      return e.ir.CreateFMul(a, b);
    default:
      return e.ir.CreateFDiv(a, b);
  }
}

Value* op_float_arithmetic(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const bool saturate = mods.has("sat");
  const Type type = mods.has("f32x2") ? kPair : mods.type();
  if (type.bits == 16 && rounding != Rounding::kNearest) bad(i, "unsupported rounding");
  // 16-bit operands are exact in float; float results round correctly a second time, because 24
  // bits are at least 2 * 11 + 2.
  return e.both_halves(i, type, 2, [&](llvm::ArrayRef<Value*> in) {
    Value* result = float_binary(e, arithmetic_of(i), type, rounding, flush(e, in[0], ftz, type),
                                 flush(e, in[1], ftz, type));
    return clamp(e, flush(e, result, ftz, type), saturate);
  });
}

Value* op_fma(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const bool positive = mods.has("relu");
  const bool saturate = mods.has("sat");
  const Type type = mods.has("f32x2") ? kPair : mods.type();
  if (type.bits == 16 && rounding != Rounding::kNearest) bad(i, "unsupported rounding");
  const bool outside = mods.has("oob");
  if (outside && type.bits != 16) bad_combination(i);
  return e.both_halves(i, type, 3, [&](llvm::ArrayRef<Value*> in) {
    Value* result = fused(e, type, rounding, flush(e, in[0], ftz, type), flush(e, in[1], ftz, type),
                          flush(e, in[2], ftz, type));
    result = flush(e, result, ftz, type);
    result = clamp(e, positive ? relu(e, result) : result, saturate);
    if (!outside) return result;
    // The fill value of tensor copies becomes zero.
    for (Value* value : in) {
      Value* filled = is_filled(e, value, type);
      result = e.ir.CreateSelect(filled, zero_like(result), result);
    }
    return result;
  });
}

/// The last operand is f32, as the result; the others are widened to it first.
Value* op_float_mixed(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const Type narrow{mods.has("bf16") ? Kind::kBfloat : Kind::kFloat, 16, 1};
  Value* a = e.read_float(i.operands[1], narrow);
  Value* last = e.read_float(i.operands.back(), kSingle);
  Value* result = i.is(Op::kFmaMixed)
                      ? fused(e, kSingle, rounding, a, e.read_float(i.operands[2], narrow), last)
                      : float_binary(e, arithmetic_of(i), kSingle, rounding, a, last);
  return e.float_to_bits(clamp(e, result, mods.has("sat")), kSingle);
}

Value* op_root(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  return e.both_halves(i, type, 1, [&](llvm::ArrayRef<Value*> in) {
    Value* a = flush(e, in[0], ftz);
    Value* one = llvm::ConstantFP::get(a->getType(), 1.0);
    const bool wide = type.bits == 64;
    Value* result = nullptr;
    if (i.is(Op::kRcp)) {
      result = rounding == Rounding::kNearest
                   ? e.ir.CreateFDiv(one, a)
                   : e.map_lanes(wide ? "div_f64" : "div_f32", {one, a}, rounding);
    } else if (i.is(Op::kRsqrt) && type.bits == 32 && e.sums == MatrixSums::kHopper) {
      // With one rounding: an H100's rsqrt.approx gave these bits wherever it was compared.
      Value* exact = e.ir.CreateFPExt(a, a->getType()->getWithNewType(e.ir.getDoubleTy()));
      exact = e.ir.CreateFDiv(llvm::ConstantFP::get(exact->getType(), 1.0),
                              e.intrinsic(llvm::Intrinsic::sqrt, {exact}));
      result = e.ir.CreateFPTrunc(exact, a->getType());
    } else if (rounding == Rounding::kNearest) {
      result = e.intrinsic(llvm::Intrinsic::sqrt, {a});
      if (i.is(Op::kRsqrt)) result = e.ir.CreateFDiv(one, result);
    } else {
      result = e.map_lanes(wide ? "sqrt_f64" : "sqrt_f32", {a}, rounding);
    }
    return flush(e, result, ftz);
  });
}

Value* op_copysign(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  if (type.bits < 32) bad_combination(i);
  // copysign d, a, b: the sign of a, the size of b.
  return e.float_to_bits(
      e.intrinsic(llvm::Intrinsic::copysign,
                  {e.read_float(i.operands[2], type), e.read_float(i.operands[1], type)}),
      type);
}

Value* op_testp(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int what = mods.of("finite");
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  Value* size = e.intrinsic(llvm::Intrinsic::fabs, {e.read_float(i.operands[1], type)});
  llvm::Type* t = size->getType();
  Value* infinity = llvm::ConstantFP::getInfinity(t);
  Value* smallest = llvm::ConstantFP::get(t, type.bits == 64 ? 0x1p-1022 : 0x1p-126);
  Value* zero = llvm::Constant::getNullValue(t);
  if (what == 0) return e.ir.CreateFCmpOLT(size, infinity);
  if (what == 1) return e.ir.CreateFCmpOEQ(size, infinity);
  if (what == 2) return e.ir.CreateFCmpORD(size, size);
  if (what == 3) return e.ir.CreateFCmpUNO(size, size);
  if (what == 4) {
    // Zeros count as normal.
    Value* large =
        e.ir.CreateOr(e.ir.CreateFCmpOGE(size, smallest), e.ir.CreateFCmpOEQ(size, zero));
    return e.ir.CreateAnd(large, e.ir.CreateFCmpOLT(size, infinity));
  }
  return e.ir.CreateAnd(e.ir.CreateFCmpOLT(size, smallest), e.ir.CreateFCmpOGT(size, zero));
}

Value* op_float_min_max(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool ftz = mods.has("ftz");
  const bool propagate = mods.has("NaN");
  const bool by_size = mods.has("xorsign");
  const bool sizes = mods.has("abs");
  const Type type = mods.type();
  const bool three = i.operands.size() == 4 && type == Type{Kind::kFloat, 32, 1};
  if (!three) need(i, 3);
  // Two operands know .xorsign.abs, three know .abs.
  if (by_size != (sizes && !three)) bad(i, "expected .xorsign.abs, or .abs and three operands");
  const bool minimum = i.is(Op::kFloatMin);
  return e.both_halves(i, type, three ? 3 : 2, [&](llvm::ArrayRef<Value*> in) {
    llvm::SmallVector<Value*, 3> operands;
    for (Value* value : in) {
      value = flush(e, value, ftz, type);
      operands.push_back(sizes ? e.intrinsic(llvm::Intrinsic::fabs, {value}) : value);
    }
    Value* result = float_extreme(e, minimum, propagate, operands[0], operands[1]);
    if (three) return float_extreme(e, minimum, propagate, result, operands[2]);
    if (!by_size) return result;
    llvm::Type* bits = e.integer(type.bits == 64 ? 64 : 32, e.on_bases);
    Value* sign = e.ir.CreateXor(e.ir.CreateBitCast(in[0], bits), e.ir.CreateBitCast(in[1], bits));
    Value* is_nan = e.ir.CreateFCmpUNO(result, result);
    Value* with_sign = e.intrinsic(llvm::Intrinsic::copysign,
                                   {result, e.ir.CreateBitCast(sign, result->getType())});
    return e.ir.CreateSelect(is_nan, result, with_sign);
  });
}

Value* op_float_sign(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  const bool negate = i.is(Op::kFloatNeg);
  if (mods.has("ftz") && type.bits <= 32) {
    return e.both_halves(i, type, 1, [&](llvm::ArrayRef<Value*> in) {
      Value* a = flush(e, in[0], true, type);
      return negate ? e.ir.CreateFNeg(a) : e.intrinsic(llvm::Intrinsic::fabs, {a});
    });
  }
  Value* a = e.read(i.operands[1], type.total_bits());
  std::uint64_t sign = 1ULL << (type.bits - 1);
  if (type.lanes == 2) sign |= sign << 16;
  Value* mask = e.constant(type.total_bits(), negate ? sign : ~sign);
  if (!e.on_bases) mask = e.splat(mask);
  return negate ? e.ir.CreateXor(a, mask) : e.ir.CreateAnd(a, mask);
}

}  // namespace braid::cpu
