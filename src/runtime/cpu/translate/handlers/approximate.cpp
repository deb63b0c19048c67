#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"

// Functions of floats of which PTX asks only that they come near.

namespace braid::cpu {
namespace {

using ptx::Type;

/// Coefficients of 2^x on [-0.5, 0.5], highest power first.
constexpr float kPowerOfTwo[] = {1.5403530e-4F, 1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F,
                                 2.4022651e-1F, 6.9314718e-1F, 1.0F};

/// 2^x within 2 ulp: a polynomial on [-0.5, 0.5] times a power of two. Below 2^-125 it is scaled in
/// two steps, so that subnormal results are rounded once.
Value* power_of_two(Emitter& e, Value* x) {
  llvm::Type* type = x->getType();
  llvm::Type* word = e.integer(32, !type->isVectorTy());
  const auto real = [&](double value) { return llvm::ConstantFP::get(type, value); };
  const auto whole = [&](std::uint32_t value) { return llvm::ConstantInt::get(word, value); };
  // The comparisons let NaN pass.
  x = e.ir.CreateSelect(e.ir.CreateFCmpOLT(x, real(-160)), real(-160), x);
  x = e.ir.CreateSelect(e.ir.CreateFCmpOGT(x, real(128.5)), real(128.5), x);
  // Adding 1.5 * 2^23 rounds to an integer, which stands in the low bits then.
  Value* shifted = e.ir.CreateFAdd(x, real(0x1.8p23));
  Value* f = e.ir.CreateFSub(x, e.ir.CreateFSub(shifted, real(0x1.8p23)));
  // Twice the power, as there is no factor 2^128.
  Value* p = real(2 * kPowerOfTwo[0]);
  for (const float c : llvm::ArrayRef(kPowerOfTwo).drop_front()) {
    p = e.intrinsic(llvm::Intrinsic::fma, {p, f, real(2 * c)});
  }
  Value* tiny = e.ir.CreateFCmpOLT(x, real(-124));
  Value* up = e.ir.CreateSelect(tiny, whole((126U + 64U) << 23), whole(126U << 23));
  Value* scale = e.ir.CreateAdd(e.ir.CreateShl(e.ir.CreateBitCast(shifted, word), 23), up);
  Value* result = e.ir.CreateFMul(p, e.ir.CreateBitCast(scale, type));
  return e.ir.CreateSelect(tiny, e.ir.CreateFMul(result, real(0x1p-64)), result);
}

/// The same bits for 32 lanes, on hosts that can scale by powers of two: the instruction handles
/// infinite ones, and rounds subnormal results once.
Value* power_by_scaling(Emitter& e, Value* x) {
  const auto real = [&](float value) { return llvm::ConstantFP::get(x->getType(), value); };
  Value* whole = e.intrinsic(llvm::Intrinsic::roundeven, {x});
  Value* f = e.ir.CreateFSub(x, whole);
  Value* p = real(kPowerOfTwo[0]);
  for (const float c : llvm::ArrayRef(kPowerOfTwo).drop_front()) {
    p = e.intrinsic(llvm::Intrinsic::fma, {p, f, real(c)});
  }
  return e.by_halves({p, whole}, [&](llvm::ArrayRef<Value*> of) {
    return e.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                {of[0], of[1], of[0], e.ir.getInt16(0xffff), e.ir.getInt32(4)});
  });
}

/// The same for 32 lanes, as a function of its own, because kernels may have dozens of them.
Value* powers_of_two(Emitter& e, Value* x) {
  if (e.host.scales) return power_by_scaling(e, x);
  llvm::Function* function = e.out.getFunction("ptx.power");
  if (function == nullptr) {
    function = llvm::Function::Create(llvm::FunctionType::get(x->getType(), {x->getType()}, false),
                                      llvm::GlobalValue::InternalLinkage, "ptx.power", e.out);
    function->addFnAttrs(
        llvm::AttrBuilder(e.ir.getContext(), e.kernel->getAttributes().getFnAttrs()));
    const llvm::IRBuilderBase::InsertPointGuard here(e.ir);
    e.ir.SetInsertPoint(llvm::BasicBlock::Create(e.ir.getContext(), "", function));
    e.ir.CreateRet(power_of_two(e, function->getArg(0)));
  }
  return e.ir.CreateCall(function, x);
}

/// a / b within 2 ulp, for one b of all lanes: its reciprocal, scaled so that neither this nor its
/// products leave the range where the quotient does not.
Value* quotient_by_scalar(Emitter& e, Value* a, Value* b) {
  llvm::Type* single = e.ir.getFloatTy();
  Value* exponent =
      e.ir.CreateAnd(e.ir.CreateLShr(e.ir.CreateBitCast(b, e.ir.getInt32Ty()), 23), 0xff);
  exponent = e.intrinsic(llvm::Intrinsic::umax, {exponent, e.ir.getInt32(1)});
  exponent = e.intrinsic(llvm::Intrinsic::umin, {exponent, e.ir.getInt32(252)});
  Value* scale =
      e.ir.CreateBitCast(e.ir.CreateShl(e.ir.CreateSub(e.ir.getInt32(253), exponent), 23), single);
  Value* reciprocal =
      e.ir.CreateFDiv(llvm::ConstantFP::get(single, 1.0), e.ir.CreateFMul(b, scale));
  return e.ir.CreateFMul(e.ir.CreateFMul(a, e.splat(scale)), e.splat(reciprocal));
}

}  // namespace

Value* op_float_divide(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Rounding rounding = rounding_of(mods);
  const bool ftz = mods.has("ftz");
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  const bool near = i.is(Op::kFullDiv) || mods.has("approx");
  const bool one_divisor =
      near && type.bits == 32 && !e.on_bases && e.shapes.operand_shape(i.operands[2]).is_uniform();
  return e.both_halves(i, type, 2, [&](llvm::ArrayRef<Value*> in) {
    Value* a = flush(e, in[0], ftz);
    if (one_divisor) {
      Value* b = e.bits_to_float(e.read_scalar(i.operands[2], 32), type);
      return flush(e, quotient_by_scalar(e, a, flush(e, b, ftz)), ftz);
    }
    return flush(e, float_binary(e, Arithmetic::kDiv, type, rounding, a, flush(e, in[1], ftz)),
                 ftz);
  });
}

Value* op_transcendental(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool ftz = mods.has("ftz");
  const Type type = mods.type();
  if (type.bits == 64) bad_combination(i);
  if (i.is(Op::kEx2)) {
    // No subnormal changes what 2^x is.
    return e.both_halves(i, type, 1, [&](llvm::ArrayRef<Value*> in) {
      return flush(e, e.on_bases ? power_of_two(e, in[0]) : powers_of_two(e, in[0]), ftz);
    });
  }
  const char* helper = i.is(Op::kLg2)   ? "lg2"
                       : i.is(Op::kSin) ? "sin"
                       : i.is(Op::kCos) ? "cos"
                                        : "tanh";
  return e.both_halves(
      i, type, 1, [&](llvm::ArrayRef<Value*> in) { return e.map_lanes(helper, {in[0]}, ftz); });
}

}  // namespace braid::cpu
