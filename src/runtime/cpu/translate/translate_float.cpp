#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using ptx::Kind;
using ptx::Type;

/// The rounding from "rn|rz|rm|rp" and others; without one, to nearest.
Translator::Rounding Translator::rounding_of(const Choices& mods) {
  const int index = mods.of("rn");
  return index < 0 || index > 3 ? Rounding::kNearest : static_cast<Rounding>(index);
}

/// `.ftz`: a subnormal f32, or a value that is or rounds to a subnormal f16, becomes a zero of its
/// sign.
llvm::Value* Translator::flush(Value* value, bool ftz, Type type) {
  if (!ftz || !value->getType()->getScalarType()->isFloatTy()) return value;
  const bool half = type.kind == Kind::kFloat && type.bits == 16;
  const double limit = half ? 0x1p-14 - 0x1p-25 : 0x1p-126;
  Value* size = intrinsic(llvm::Intrinsic::fabs, {value});
  Value* small = b_.CreateFCmpOLT(size, llvm::ConstantFP::get(value->getType(), limit));
  Value* zero = intrinsic(llvm::Intrinsic::copysign, {zero_like(value), value});
  return b_.CreateSelect(small, zero, value);
}

/// `.relu`: what is not above zero becomes +0; NaN stays.
llvm::Value* Translator::relu(Value* value) {
  Value* zero = zero_like(value);
  return b_.CreateSelect(b_.CreateFCmpOLE(value, zero), zero, value);
}

/// `.sat`: into [0, 1], NaN to 0.
llvm::Value* Translator::clamp(Value* value, bool saturate) {
  if (!saturate) return value;
  Value* zero = zero_like(value);
  Value* one = llvm::ConstantFP::get(value->getType(), 1.0);
  value = b_.CreateSelect(b_.CreateFCmpOGT(value, zero), value, zero);
  return b_.CreateSelect(b_.CreateFCmpOLT(value, one), value, one);
}

/// Rounds f64 to f32 so that the sticky bit survives: a second rounding to 16 bits is then exact.
llvm::Value* Translator::odd_float(Value* value) {
  const bool scalar = !value->getType()->isVectorTy();
  const Type single{Kind::kFloat, 32, 1};
  Value* near = b_.CreateFPTrunc(value, floating(single, scalar));
  Value* back = b_.CreateFPExt(near, value->getType());
  Value* exact = b_.CreateNot(b_.CreateFCmpONE(back, value));
  Value* too_big = b_.CreateFCmpOGT(intrinsic(llvm::Intrinsic::fabs, {back}),
                                    intrinsic(llvm::Intrinsic::fabs, {value}));
  return make_odd(near, exact, too_big);
}

/// The last bit of `near` set unless it is exact, after a step towards zero if it is too big.
llvm::Value* Translator::make_odd(Value* near, Value* exact, Value* too_big) {
  llvm::Type* word =
      integer(near->getType()->getScalarSizeInBits(), !near->getType()->isVectorTy());
  Value* bits = b_.CreateBitCast(near, word);
  Value* lower = b_.CreateSub(bits, b_.CreateZExt(too_big, word));
  Value* odd = b_.CreateOr(lower, llvm::ConstantInt::get(word, 1));
  return b_.CreateBitCast(b_.CreateSelect(exact, bits, odd), near->getType());
}

/// a * b + c of values whose product is exact in f64, with the sticky bit.
llvm::Value* Translator::fused_double(Value* a, Value* b, Value* c) {
  Value* product = b_.CreateFMul(a, b);
  Value* sum = b_.CreateFAdd(product, c);
  Value* part = b_.CreateFSub(sum, product);
  Value* error =
      b_.CreateFAdd(b_.CreateFSub(product, b_.CreateFSub(sum, part)), b_.CreateFSub(c, part));
  Value* zero = zero_like(sum);
  Value* exact = b_.CreateNot(b_.CreateFCmpONE(error, zero));
  Value* too_big = b_.CreateXor(b_.CreateFCmpOLT(error, zero), b_.CreateFCmpOLT(sum, zero));
  return make_odd(sum, exact, too_big);
}

llvm::Value* Translator::fused(Type type, Rounding rounding, Value* a, Value* b, Value* c) {
  if (type.bits == 16) {
    const Type wide{Kind::kFloat, 64, 1};
    llvm::Type* to = floating(wide, !a->getType()->isVectorTy());
    a = b_.CreateFPExt(a, to);
    b = b_.CreateFPExt(b, to);
    c = b_.CreateFPExt(c, to);
    // The few exponents of f16 keep what an f64 sum loses away from its rounding; bf16 has many.
    return odd_float(type.kind == Kind::kBfloat ? fused_double(a, b, c)
                                                : intrinsic(llvm::Intrinsic::fma, {a, b, c}));
  }
  if (rounding == Rounding::kNearest) return intrinsic(llvm::Intrinsic::fma, {a, b, c});
  return map_lanes(type.bits == 64 ? "fma_f64" : "fma_f32", {a, b, c}, rounding);
}

Translator::Arithmetic Translator::arithmetic_of(const Instruction& i) {
  if (i.name == "add") return Arithmetic::kAdd;
  if (i.name == "sub") return Arithmetic::kSub;
  return i.name == "mul" ? Arithmetic::kMul : Arithmetic::kDiv;
}

llvm::Value* Translator::float_binary(Arithmetic operation, Type type, Rounding rounding, Value* a,
                                      Value* b) {
  if (rounding != Rounding::kNearest && type.bits >= 32) {
    constexpr const char* kHelpers[4][2] = {{"add_f32", "add_f64"},
                                            {"sub_f32", "sub_f64"},
                                            {"mul_f32", "mul_f64"},
                                            {"div_f32", "div_f64"}};
    return map_lanes(kHelpers[static_cast<std::size_t>(operation)][type.bits == 64 ? 1 : 0], {a, b},
                     rounding);
  }
  switch (operation) {
    case Arithmetic::kAdd:
      return b_.CreateFAdd(a, b);
    case Arithmetic::kSub:
      return b_.CreateFSub(a, b);
    case Arithmetic::kMul:
      return b_.CreateFMul(a, b);
    default:
      return b_.CreateFDiv(a, b);
  }
}

namespace {

constexpr Type kSingle{Kind::kFloat, 32, 1};
constexpr Type kPair{Kind::kFloat, 32, 2};

}  // namespace

llvm::Value* Translator::op_float_arithmetic(const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const bool saturate = mods.has("sat");
  const Type type = mods.has("f32x2") ? kPair : mods.type();
  if (type.bits == 16 && rounding != Rounding::kNearest) bad(i, "unsupported rounding");
  // 16-bit operands are exact in float; float results round correctly a second time, because 24
  // bits are at least 2 * 11 + 2.
  return both_halves(i, type, 2, [&](llvm::ArrayRef<Value*> in) {
    Value* result = float_binary(arithmetic_of(i), type, rounding, flush(in[0], ftz, type),
                                 flush(in[1], ftz, type));
    return clamp(flush(result, ftz, type), saturate);
  });
}

llvm::Value* Translator::op_fma(const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const bool positive = mods.has("relu");
  const bool saturate = mods.has("sat");
  const Type type = mods.has("f32x2") ? kPair : mods.type();
  if (type.bits == 16 && rounding != Rounding::kNearest) bad(i, "unsupported rounding");
  const bool outside = mods.has("oob");
  if (outside && type.bits != 16) bad_combination(i);
  return both_halves(i, type, 3, [&](llvm::ArrayRef<Value*> in) {
    Value* result = fused(type, rounding, flush(in[0], ftz, type), flush(in[1], ftz, type),
                          flush(in[2], ftz, type));
    result = flush(result, ftz, type);
    result = clamp(positive ? relu(result) : result, saturate);
    if (!outside) return result;
    // The fill value of tensor copies becomes zero.
    for (Value* value : in) {
      Value* filled = is_filled(value, type);
      result = b_.CreateSelect(filled, zero_like(result), result);
    }
    return result;
  });
}

/// Whether a 16-bit float, as it was widened, is the NaN of elements outside of a tensor: 0x7fff.
llvm::Value* Translator::is_filled(Value* value, Type type) {
  llvm::Type* word = integer(32, !value->getType()->isVectorTy());
  const std::uint32_t bits = type.kind == ptx::Kind::kBfloat ? 0x7fff0000 : 0x7fffe000;
  return b_.CreateICmpEQ(b_.CreateBitCast(value, word), llvm::ConstantInt::get(word, bits));
}

/// The last operand is f32, as the result; the others are widened to it first.
llvm::Value* Translator::op_float_mixed(const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const Type narrow{mods.has("bf16") ? Kind::kBfloat : Kind::kFloat, 16, 1};
  Value* a = read_float(i.operands[1], narrow);
  Value* last = read_float(i.operands.back(), kSingle);
  Value* result = i.is(Op::kFmaMixed)
                      ? fused(kSingle, rounding, a, read_float(i.operands[2], narrow), last)
                      : float_binary(arithmetic_of(i), kSingle, rounding, a, last);
  return float_to_bits(clamp(result, mods.has("sat")), kSingle);
}

llvm::Value* Translator::op_root(const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  return both_halves(i, type, 1, [&](llvm::ArrayRef<Value*> in) {
    Value* a = flush(in[0], ftz);
    Value* one = llvm::ConstantFP::get(a->getType(), 1.0);
    const bool wide = type.bits == 64;
    Value* result = nullptr;
    if (i.is(Op::kRcp)) {
      result = rounding == Rounding::kNearest
                   ? b_.CreateFDiv(one, a)
                   : map_lanes(wide ? "div_f64" : "div_f32", {one, a}, rounding);
    } else if (i.is(Op::kRsqrt) && type.bits == 32 && sums_ == MatrixSums::kHopper) {
      // With one rounding: an H100's rsqrt.approx gave these bits wherever it was compared.
      Value* exact = b_.CreateFPExt(a, a->getType()->getWithNewType(b_.getDoubleTy()));
      exact = b_.CreateFDiv(llvm::ConstantFP::get(exact->getType(), 1.0),
                            intrinsic(llvm::Intrinsic::sqrt, {exact}));
      result = b_.CreateFPTrunc(exact, a->getType());
    } else if (rounding == Rounding::kNearest) {
      result = intrinsic(llvm::Intrinsic::sqrt, {a});
      if (i.is(Op::kRsqrt)) result = b_.CreateFDiv(one, result);
    } else {
      result = map_lanes(wide ? "sqrt_f64" : "sqrt_f32", {a}, rounding);
    }
    return flush(result, ftz);
  });
}

llvm::Value* Translator::op_copysign(const Instruction& i) {
  const Type type = Choices(i).type();
  if (type.bits < 32) bad_combination(i);
  // copysign d, a, b: the sign of a, the size of b.
  return float_to_bits(intrinsic(llvm::Intrinsic::copysign, {read_float(i.operands[2], type),
                                                             read_float(i.operands[1], type)}),
                       type);
}

llvm::Value* Translator::op_testp(const Instruction& i) {
  const Choices mods(i);
  const int what = mods.of("finite");
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  Value* size = intrinsic(llvm::Intrinsic::fabs, {read_float(i.operands[1], type)});
  llvm::Type* t = size->getType();
  Value* infinity = llvm::ConstantFP::getInfinity(t);
  Value* smallest = llvm::ConstantFP::get(t, type.bits == 64 ? 0x1p-1022 : 0x1p-126);
  Value* zero = llvm::Constant::getNullValue(t);
  if (what == 0) return b_.CreateFCmpOLT(size, infinity);
  if (what == 1) return b_.CreateFCmpOEQ(size, infinity);
  if (what == 2) return b_.CreateFCmpORD(size, size);
  if (what == 3) return b_.CreateFCmpUNO(size, size);
  if (what == 4) {
    // Zeros count as normal.
    Value* large = b_.CreateOr(b_.CreateFCmpOGE(size, smallest), b_.CreateFCmpOEQ(size, zero));
    return b_.CreateAnd(large, b_.CreateFCmpOLT(size, infinity));
  }
  return b_.CreateAnd(b_.CreateFCmpOLT(size, smallest), b_.CreateFCmpOGT(size, zero));
}

namespace {

/// Whether no lane holds a signaling NaN, as far as one sees.
bool is_quiet(const llvm::Value* value, int steps = 8) {
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

llvm::Value* without_casts(llvm::Value* value) {
  while (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(value)) value = cast->getOperand(0);
  return value;
}

}  // namespace

/// The same for f32 by the host's instruction, which handles zeros and quiet NaNs.
llvm::Value* Translator::extreme_by_range(bool minimum, Value* a, Value* b) {
  constexpr unsigned kMinimum = 4, kMaximum = 5;
  // The result for each class, the first in the lowest bits: a signaling NaN, the second class, is
  // made quiet; all others stay.
  constexpr unsigned kQuiet = 0x11111121;
  Value* all = b_.getInt16(0xffff);
  Value* rounding = b_.getInt32(4);  // as it is
  const auto raw = [&](Value* value) {
    Value* const found = raw_extremes_.lookup(without_casts(value));
    return found == nullptr ? value : found;
  };
  const auto quiet = [&](Value* value) {
    if (is_quiet(value)) return value;
    return by_halves({value}, [&](llvm::ArrayRef<Value*> of) {
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512, {},
                                {of[0], of[0], b_.CreateVectorSplat(16, b_.getInt32(kQuiet)),
                                 b_.getInt32(0), all, rounding});
    });
  };
  Value* found = by_halves({quiet(raw(a)), quiet(raw(b))}, [&](llvm::ArrayRef<Value*> of) {
    return b_.CreateIntrinsic(
        llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
        {of[0], of[1], b_.getInt32(minimum ? kMinimum : kMaximum), of[0], all, rounding});
  });
  constexpr std::uint32_t kNan = 0x7fffffff;
  Value* nan = b_.CreateBitCast(splat(b_.getInt32(kNan)), found->getType());
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(found, found), nan, found);
  raw_extremes_[result] = found;
  return result;
}

/// -0 is below +0. Without `propagate` a NaN gives way to the other operand.
llvm::Value* Translator::float_extreme(bool minimum, bool propagate, Value* a, Value* b) {
  const bool words = a->getType() == floating({Kind::kFloat, 32, 1}, false);
  if (words && !propagate && host_.scales) return extreme_by_range(minimum, a, b);
  // The host's own, which takes b where it cannot tell: of two zeros, or beside a NaN.
  Value* ahead = minimum ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b);
  Value* result = b_.CreateSelect(ahead, a, b);
  llvm::Type* word = integer(a->getType()->getScalarSizeInBits(), !a->getType()->isVectorTy());
  Value* bits_a = b_.CreateBitCast(a, word);
  Value* bits_b = b_.CreateBitCast(b, word);
  Value* zero = minimum ? b_.CreateOr(bits_a, bits_b) : b_.CreateAnd(bits_a, bits_b);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(a, b), b_.CreateBitCast(zero, a->getType()), result);
  Value* quiet = b_.CreateBitCast(
      b_.CreateLShr(llvm::Constant::getAllOnesValue(word), llvm::ConstantInt::get(word, 1)),
      a->getType());
  if (propagate) return b_.CreateSelect(b_.CreateFCmpUNO(a, b), quiet, result);
  Value* number = b_.CreateSelect(b_.CreateFCmpUNO(a, a), quiet, a);
  return b_.CreateSelect(b_.CreateFCmpUNO(b, b), number, result);
}

llvm::Value* Translator::op_float_min_max(const Instruction& i) {
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
  return both_halves(i, type, three ? 3 : 2, [&](llvm::ArrayRef<Value*> in) {
    llvm::SmallVector<Value*, 3> operands;
    for (Value* value : in) {
      value = flush(value, ftz, type);
      operands.push_back(sizes ? intrinsic(llvm::Intrinsic::fabs, {value}) : value);
    }
    Value* result = float_extreme(minimum, propagate, operands[0], operands[1]);
    if (three) return float_extreme(minimum, propagate, result, operands[2]);
    if (!by_size) return result;
    llvm::Type* bits = integer(type.bits == 64 ? 64 : 32, scalar_);
    Value* sign = b_.CreateXor(b_.CreateBitCast(in[0], bits), b_.CreateBitCast(in[1], bits));
    Value* is_nan = b_.CreateFCmpUNO(result, result);
    Value* with_sign =
        intrinsic(llvm::Intrinsic::copysign, {result, b_.CreateBitCast(sign, result->getType())});
    return b_.CreateSelect(is_nan, result, with_sign);
  });
}

llvm::Value* Translator::op_float_sign(const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  const bool negate = i.is(Op::kFloatNeg);
  if (mods.has("ftz") && type.bits <= 32) {
    return both_halves(i, type, 1, [&](llvm::ArrayRef<Value*> in) {
      Value* a = flush(in[0], true, type);
      return negate ? b_.CreateFNeg(a) : intrinsic(llvm::Intrinsic::fabs, {a});
    });
  }
  Value* a = read(i.operands[1], type.total_bits());
  std::uint64_t sign = 1ULL << (type.bits - 1);
  if (type.lanes == 2) sign |= sign << 16;
  Value* mask = constant(type.total_bits(), negate ? sign : ~sign);
  if (!scalar_) mask = splat(mask);
  return negate ? b_.CreateXor(a, mask) : b_.CreateAnd(a, mask);
}

}  // namespace braid::cpu
