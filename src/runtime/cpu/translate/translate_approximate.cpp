#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "runtime/cpu/translate/translator.h"

// Functions of floats of which PTX asks only that they come near.

namespace braid::cpu {

using ptx::Type;

namespace {

/// Coefficients of 2^x on [-0.5, 0.5], highest power first.
constexpr float kPowerOfTwo[] = {1.5403530e-4F, 1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F,
                                 2.4022651e-1F, 6.9314718e-1F, 1.0F};

}  // namespace

/// 2^x within 2 ulp: a polynomial on [-0.5, 0.5] times a power of two. Below 2^-125 it is scaled in
/// two steps, so that subnormal results are rounded once.
llvm::Value* Translator::power_of_two(Value* x) {
  llvm::Type* type = x->getType();
  llvm::Type* word = integer(32, !type->isVectorTy());
  const auto real = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto whole = [&](std::uint32_t value) { return llvm::ConstantInt::get(word, value); };
  // The comparisons let NaN pass.
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, real(-160)), real(-160), x);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, real(128.5)), real(128.5), x);
  // Adding 1.5 * 2^23 rounds to an integer, which stands in the low bits then.
  Value* shifted = b_.CreateFAdd(x, real(0x1.8p23));
  Value* f = b_.CreateFSub(x, b_.CreateFSub(shifted, real(0x1.8p23)));
  // Twice the power, as there is no factor 2^128.
  Value* p = real(2 * kPowerOfTwo[0]);
  for (const float c : llvm::ArrayRef(kPowerOfTwo).drop_front()) {
    p = intrinsic(llvm::Intrinsic::fma, {p, f, real(2 * c)});
  }
  Value* tiny = b_.CreateFCmpOLT(x, real(-124));
  Value* up = b_.CreateSelect(tiny, whole((126U + 64U) << 23), whole(126U << 23));
  Value* scale = b_.CreateAdd(b_.CreateShl(b_.CreateBitCast(shifted, word), 23), up);
  Value* result = b_.CreateFMul(p, b_.CreateBitCast(scale, type));
  return b_.CreateSelect(tiny, b_.CreateFMul(result, real(0x1p-64)), result);
}

/// The same bits for 32 lanes, on hosts that can scale by powers of two: the instruction handles
/// infinite ones, and rounds subnormal results once.
llvm::Value* Translator::power_by_scaling(Value* x) {
  const auto real = [&](float value) { return llvm::ConstantFP::get(x->getType(), value); };
  Value* whole = intrinsic(llvm::Intrinsic::roundeven, {x});
  Value* f = b_.CreateFSub(x, whole);
  Value* p = real(kPowerOfTwo[0]);
  for (const float c : llvm::ArrayRef(kPowerOfTwo).drop_front()) {
    p = intrinsic(llvm::Intrinsic::fma, {p, f, real(c)});
  }
  return by_halves({p, whole}, [&](llvm::ArrayRef<Value*> of) {
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                              {of[0], of[1], of[0], b_.getInt16(0xffff), b_.getInt32(4)});
  });
}

/// The same for 32 lanes, as a function of its own, because kernels may have dozens of them.
llvm::Value* Translator::powers_of_two(Value* x) {
  if (host_.scales) return power_by_scaling(x);
  llvm::Function* function = out_.getFunction("ptx.power");
  if (function == nullptr) {
    function = llvm::Function::Create(llvm::FunctionType::get(x->getType(), {x->getType()}, false),
                                      llvm::GlobalValue::InternalLinkage, "ptx.power", out_);
    function->addFnAttrs(llvm::AttrBuilder(llvm_, kernel_->getAttributes().getFnAttrs()));
    const llvm::IRBuilderBase::InsertPointGuard here(b_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(llvm_, "", function));
    b_.CreateRet(power_of_two(function->getArg(0)));
  }
  return b_.CreateCall(function, x);
}

/// a / b within 2 ulp, for one b of all lanes: its reciprocal, scaled so that neither this nor its
/// products leave the range where the quotient does not.
llvm::Value* Translator::quotient_by_scalar(Value* a, Value* b) {
  llvm::Type* single = b_.getFloatTy();
  Value* exponent = b_.CreateAnd(b_.CreateLShr(b_.CreateBitCast(b, b_.getInt32Ty()), 23), 0xff);
  exponent = intrinsic(llvm::Intrinsic::umax, {exponent, b_.getInt32(1)});
  exponent = intrinsic(llvm::Intrinsic::umin, {exponent, b_.getInt32(252)});
  Value* scale =
      b_.CreateBitCast(b_.CreateShl(b_.CreateSub(b_.getInt32(253), exponent), 23), single);
  Value* reciprocal = b_.CreateFDiv(llvm::ConstantFP::get(single, 1.0), b_.CreateFMul(b, scale));
  return b_.CreateFMul(b_.CreateFMul(a, splat(scale)), splat(reciprocal));
}

llvm::Value* Translator::op_float_divide(const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  const bool near = i.is(Op::kFullDiv) || mods.has("approx");
  const bool one_divisor =
      near && type.bits == 32 && !scalar_ && shapes_.operand_shape(i.operands[2]).is_uniform();
  return both_halves(i, type, 2, [&](llvm::ArrayRef<Value*> in) {
    Value* a = flush(in[0], ftz);
    if (one_divisor) {
      Value* b = bits_to_float(read_scalar(i.operands[2], 32), type);
      return flush(quotient_by_scalar(a, flush(b, ftz)), ftz);
    }
    return flush(float_binary(Arithmetic::kDiv, type, rounding, a, flush(in[1], ftz)), ftz);
  });
}

llvm::Value* Translator::op_transcendental(const Instruction& i) {
  const Choices mods(i);
  const bool ftz = mods.has("ftz");
  const Type type = mods.type();
  if (type.bits == 64) bad_combination(i);
  if (i.is(Op::kEx2)) {
    // No subnormal changes what 2^x is.
    return both_halves(i, type, 1, [&](llvm::ArrayRef<Value*> in) {
      return flush(scalar_ ? power_of_two(in[0]) : powers_of_two(in[0]), ftz);
    });
  }
  const char* helper = i.is(Op::kLg2)   ? "lg2"
                       : i.is(Op::kSin) ? "sin"
                       : i.is(Op::kCos) ? "cos"
                                        : "tanh";
  return both_halves(i, type, 1,
                     [&](llvm::ArrayRef<Value*> in) { return map_lanes(helper, {in[0]}, ftz); });
}

}  // namespace braid::cpu
