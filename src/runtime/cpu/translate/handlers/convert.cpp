#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Transforms/Utils/Local.h>

#include <numeric>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/integers.h"

namespace braid::cpu {
namespace {

using ptx::Kind;
using ptx::Type;

/// The modifiers of cvt.
struct Conversion {
  Rounding rounding = Rounding::kNearest;
  int integral = -1;  ///< rounds to an integer, in the order of Rounding
  bool ftz = false;
  bool positive = false;
  bool saturate = false;
  bool finite = false;  ///< saturates at the largest finite value
};

/// Modes of .rni .rzi .rmi .rpi, in the order of Rounding.
constexpr llvm::Intrinsic::ID kIntegral[] = {llvm::Intrinsic::roundeven, llvm::Intrinsic::trunc,
                                             llvm::Intrinsic::floor, llvm::Intrinsic::ceil};

/// Bits of a place in the result, in the order of "e4m3x2|e5m2x2|e2m1x2|e2m3x2|e3m2x2".
constexpr unsigned kPlaces[] = {8, 8, 4, 8, 8};
/// How helper "round_by_bits" counts f16 and bf16.
constexpr unsigned kHalfFloat = 5;
constexpr unsigned kFinite = 16;

Value* round_integral(Emitter& e, Value* value, int mode) {
  return mode < 0 ? value : e.intrinsic(kIntegral[mode], {value});
}

Value* round_by_bits(Emitter& e, Value* value, Rounding rounding) {
  const bool scalar = !value->getType()->isVectorTy();
  llvm::Type* word = e.integer(32, scalar);
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  Value* bits = e.ir.CreateBitCast(value, word);
  // First, so that no mask has to be kept until the end.
  bits = e.ir.CreateSelect(e.ir.CreateFCmpUNO(value, value), c(0x7fff0000), bits);
  Value* rounded = bits;
  if (rounding == Rounding::kNearest) {
    Value* odd = e.ir.CreateAnd(e.ir.CreateLShr(bits, 16), c(1));
    rounded = e.ir.CreateAdd(bits, e.ir.CreateAdd(odd, c(0x7fff)));
  } else if (rounding != Rounding::kZero) {
    Value* negative = e.ir.CreateICmpSLT(bits, c(0));
    Value* away = rounding == Rounding::kDown ? negative : e.ir.CreateNot(negative);
    rounded = e.ir.CreateAdd(bits, e.ir.CreateSelect(away, c(0xffff), c(0)));
  }
  return e.ir.CreateTrunc(e.ir.CreateLShr(rounded, 16), e.integer(16, scalar));
}

/// Rounds in a called function that saves all registers, for code that hardly ever runs.
Value* round_in_function(Emitter& e, Value* value) {
  constexpr const char* kAll = "no_caller_saved_registers";
  llvm::Function* function = e.out.getFunction("ptx.round");
  if (function == nullptr) {
    auto* type = llvm::FunctionType::get(e.integer(16, false), {value->getType()}, false);
    function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "ptx.round", e.out);
    function->addFnAttrs(
        llvm::AttrBuilder(e.ir.getContext(), e.kernel->getAttributes().getFnAttrs()));
    function->addFnAttr(kAll);
    const llvm::IRBuilderBase::InsertPointGuard here(e.ir);
    e.ir.SetInsertPoint(llvm::BasicBlock::Create(e.ir.getContext(), "", function));
    e.ir.CreateRet(round_by_bits(e, function->getArg(0), Rounding::kNearest));
  }
  llvm::CallInst* call = e.ir.CreateCall(function, value);
  call->addFnAttr(llvm::Attribute::get(e.ir.getContext(), kAll));
  return call;
}

/// 32 of f32 to the nearest bf16 by the host's own instruction, which takes subnormals for zeros
/// and keeps what a NaN says: what has one of them goes the other way.
Value* round_by_host(Emitter& e, Value* value) {
  constexpr unsigned kSpecial = 0x01 | 0x20 | 0x80;  // quiet NaN, subnormal, signaling NaN
  Value* halves[2];
  Value* specials[2];
  for (int half = 0; half < 2; ++half) {
    std::vector<int> order(16);
    std::iota(order.begin(), order.end(), 16 * half);
    halves[half] = e.ir.CreateShuffleVector(value, order);
    specials[half] = e.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_fpclass_ps_512, {},
                                          {halves[half], e.ir.getInt32(kSpecial)});
  }
  Value* any = e.ir.CreateBitCast(e.ir.CreateOr(specials[0], specials[1]), e.ir.getInt16Ty());
  Value* rounded = e.ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {},
                                        {halves[1], halves[0]});
  rounded = e.ir.CreateBitCast(rounded, e.integer(16, false));
  llvm::BasicBlock* before = e.ir.GetInsertBlock();
  llvm::BasicBlock* end = nullptr;
  Value* other = nullptr;
  e.split_unlikely(e.ir.CreateICmpNE(any, e.ir.getInt16(0)), [&] {
    other = round_in_function(e, value);
    end = e.ir.GetInsertBlock();
  });
  llvm::PHINode* result = e.ir.CreatePHI(rounded->getType(), 2);
  result->addIncoming(rounded, before);
  result->addIncoming(other, end);
  return result;
}

/// Saturates. NaN becomes 0, or only the top bit where one of the types has 64 bits.
Value* float_to_integer(Emitter& e, Value* value, Type from, Type to) {
  llvm::Type* target = e.integer(to.bits, !value->getType()->isVectorTy());
  Value* result = e.ir.CreateIntrinsic(
      to.is_signed() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
      {target, value->getType()}, {value});
  if (from.bits < 64 && to.bits < 64) return result;
  llvm::Constant* top = llvm::ConstantInt::get(target, llvm::APInt::getSignMask(to.bits));
  return e.ir.CreateSelect(e.ir.CreateFCmpUNO(value, value), top, result);
}

/// The parts of a result in 32 bits, the first in the lower half of `bits`.
Value* join_parts(Emitter& e, Value* low, Value* high, unsigned place) {
  return e.resize(e.ir.CreateOr(e.ir.CreateShl(high, place), low), 2 * place, false);
}

/// An f32 of two that a conversion reads: cvt d, a, b puts a above. Of a packed operand, half k.
Value* part_to_convert(Emitter& e, const Instruction& i, Type packed, unsigned k) {
  const Type element{packed.kind, packed.bits, 1};
  if (packed.lanes == 1) return e.read_float(i.operands[2 - k], element);
  Value* bits = e.read(i.operands[1], 32);
  if (k != 0) bits = e.ir.CreateLShr(bits, 16);
  return e.bits_to_float(e.resize(bits, 16, false), element);
}

/// One element of a conversion by 16 random bits.
Value* convert_by_bits(Emitter& e, const Instruction& i, const Operand& source, Value* random,
                       unsigned mode) {
  Value* value = e.read_float(source, {Kind::kFloat, 32, 1});
  if (Choices(i).has("relu")) value = relu(e, value);
  Value* bits = e.ir.CreateBitCast(value, e.integer(32, e.on_bases));
  return e.map_lanes("round_by_bits", {bits, random}, mode);
}

/// An integer result; a narrow one fills a wider register by its own sign.
Value* convert_integers(Emitter& e, const Instruction& i, Type from, Type to, bool saturate) {
  Value* value = e.read(i.operands[1], from.bits);
  if (saturate) {
    // Clamp in 64 bits plus sign; u64 to s64 is the only pair that does not fit.
    Value* wide = e.resize(value, 128, from.is_signed());
    llvm::Type* t = wide->getType();
    const llvm::APInt low =
        to.is_signed() ? llvm::APInt::getSignedMinValue(to.bits).sext(128) : llvm::APInt(128, 0);
    const llvm::APInt high = to.is_signed() ? llvm::APInt::getSignedMaxValue(to.bits).sext(128)
                                            : llvm::APInt::getMaxValue(to.bits).zext(128);
    wide = e.intrinsic(llvm::Intrinsic::smax, {wide, llvm::ConstantInt::get(t, low)});
    wide = e.intrinsic(llvm::Intrinsic::smin, {wide, llvm::ConstantInt::get(t, high)});
    value = e.resize(wide, to.bits, false);
  } else if (to.bits == 64 && from.bits == 32) {
    value = widen(e, i.operands[1], from, 64);
  } else {
    value = e.resize(value, to.bits, from.is_signed());
  }
  return extended(e, i.operands[0], value, to);
}

/// The bits of a 16-bit float.
Value* to_16(Emitter& e, Value* value, Type type, const Conversion& how) {
  if (how.positive) value = relu(e, value);
  if (how.finite) {
    // The largest of the type, exact in f32.
    const double most = type.kind == Kind::kBfloat ? 0x1.fep127 : 65504;
    llvm::Constant* high = llvm::ConstantFP::get(value->getType(), most);
    llvm::Constant* low = llvm::ConstantFP::get(value->getType(), -most);
    value = e.ir.CreateSelect(e.ir.CreateFCmpOGT(value, high), high, value);
    value = e.ir.CreateSelect(e.ir.CreateFCmpOLT(value, low), low, value);
  }
  return type.kind == Kind::kBfloat ? round_to_bfloat(e, value, how.rounding)
                                    : round_to_half(e, value, how.rounding);
}

Value* convert_integer_to_float(Emitter& e, const Instruction& i, Type from, Type to,
                                const Conversion& how) {
  Value* value = e.read(i.operands[1], from.bits);
  if (how.rounding != Rounding::kNearest && to.bits >= 32) {
    // Any 64-bit integer is exact in a long double: let the host round.
    const unsigned mode = static_cast<unsigned>(how.rounding) | (from.is_signed() ? 4U : 0U);
    Value* wide = e.resize(value, 64, from.is_signed());
    Value* out = e.map_lanes(to.bits == 64 ? "int_to_f64" : "int_to_f32", {wide}, mode);
    return e.resize(out, to.bits, false);
  }
  if (to.bits == 16) {
    // Through an f32 with a sticky bit: from f64, or from the host where that might round, too.
    if (from.bits == 64) {
      const unsigned mode = 8U | (from.is_signed() ? 4U : 0U);
      Value* out = e.resize(e.map_lanes("int_to_f32", {value}, mode), 32, false);
      const Type single{Kind::kFloat, 32, 1};
      return to_16(e, clamp(e, e.bits_to_float(out, single), how.saturate), to, how);
    }
    llvm::Type* wide = e.floating(Type{Kind::kFloat, 64, 1}, e.on_bases);
    Value* exact =
        from.is_signed() ? e.ir.CreateSIToFP(value, wide) : e.ir.CreateUIToFP(value, wide);
    return to_16(e, clamp(e, odd_float(e, exact), how.saturate), to, how);
  }
  llvm::Type* target = e.floating(to, e.on_bases);
  Value* result =
      from.is_signed() ? e.ir.CreateSIToFP(value, target) : e.ir.CreateUIToFP(value, target);
  return e.float_to_bits(clamp(e, result, how.saturate), to);
}

Value* convert_floats(Emitter& e, const Instruction& i, Type from, Type to, const Conversion& how) {
  Value* value = flush(e, e.read_float(i.operands[1], from), how.ftz);
  value = clamp(e, round_integral(e, value, how.integral), how.saturate);
  if (to.bits == 16) {
    if (from.bits == 16 && from.kind == to.kind && how.integral < 0 && !how.saturate &&
        !how.positive) {
      return e.read(i.operands[1], 16);
    }
    return to_16(e, from.bits == 64 ? odd_float(e, value) : value, to, how);
  }
  if (to.bits == 64 && from.bits < 64) value = e.ir.CreateFPExt(value, e.floating(to, e.on_bases));
  if (to.bits == 32 && from.bits == 64) {
    if (how.rounding == Rounding::kNearest) {
      value = e.ir.CreateFPTrunc(value, e.floating(to, e.on_bases));
    } else {
      Value* out = e.map_lanes("f64_to_f32", {value}, how.rounding);
      value = e.bits_to_float(
          e.resize(e.ir.CreateBitCast(out, e.integer(64, e.on_bases)), 32, false), to);
    }
  }
  return e.float_to_bits(flush(e, how.positive ? relu(e, value) : value, how.ftz), to);
}

}  // namespace

Value* round_to_bfloat(Emitter& e, Value* value, Rounding rounding) {
  const bool by_host = e.round_function != nullptr && rounding == Rounding::kNearest;
  return by_host && value->getType()->isVectorTy() ? e.ir.CreateCall(e.round_function, value)
                                                   : round_by_bits(e, value, rounding);
}

void expand_roundings(Emitter& e) {
  if (e.round_function == nullptr) return;
  llvm::SmallVector<llvm::WeakTrackingVH> dead;
  for (llvm::BasicBlock& block : *e.kernel) {
    for (llvm::Instruction& i : block) {
      if (llvm::isInstructionTriviallyDead(&i)) dead.emplace_back(&i);
    }
  }
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
  while (!e.round_function->use_empty()) {
    auto* call = llvm::cast<llvm::CallInst>(e.round_function->user_back());
    llvm::BasicBlock* block = call->getParent();
    llvm::BasicBlock* rest = block->splitBasicBlock(std::next(call->getIterator()));
    block->getTerminator()->eraseFromParent();
    e.ir.SetInsertPoint(block);
    Value* rounded = round_by_host(e, call->getArgOperand(0));
    e.ir.CreateBr(rest);
    call->replaceAllUsesWith(rounded);
    call->eraseFromParent();
  }
  e.round_function->eraseFromParent();
}

Value* round_to_half(Emitter& e, Value* value, Rounding rounding) {
  const bool scalar = !value->getType()->isVectorTy();
  llvm::Type* half = llvm::Type::getHalfTy(e.ir.getContext());
  if (!scalar) half = llvm::FixedVectorType::get(half, 32);
  llvm::Type* small = e.integer(16, scalar);
  Value* result = e.ir.CreateFPTrunc(value, half);
  Value* bits = e.ir.CreateBitCast(result, small);
  if (rounding != Rounding::kNearest) {
    // One step where rounding to nearest went to the wrong side; infinity steps to the largest.
    Value* size = e.intrinsic(llvm::Intrinsic::fabs, {value});
    Value* back = e.ir.CreateFPExt(result, value->getType());
    Value* outside = e.ir.CreateFCmpOGT(e.intrinsic(llvm::Intrinsic::fabs, {back}), size);
    Value* wrong = rounding == Rounding::kZero   ? outside
                   : rounding == Rounding::kDown ? e.ir.CreateFCmpOGT(back, value)
                                                 : e.ir.CreateFCmpOLT(back, value);
    llvm::Constant* one = llvm::ConstantInt::get(small, 1);
    Value* stepped =
        e.ir.CreateSelect(outside, e.ir.CreateSub(bits, one), e.ir.CreateAdd(bits, one));
    bits = e.ir.CreateSelect(wrong, stepped, bits);
  }
  Value* nan = e.ir.CreateFCmpUNO(value, value);
  return e.ir.CreateSelect(nan, llvm::ConstantInt::get(small, 0x7fff), bits);
}

/// Converts to pairs of floats of 8 bits or less.
Value* op_convert_to_small(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int to = mods.of("e4m3x2");
  const bool pair = mods.has("f16x2") || mods.has("bf16x2");
  need(i, pair ? 2 : 3);
  const auto code = [&](unsigned k) {
    Value* value = part_to_convert(e, i, *i.type(), k);
    if (mods.has("relu")) value = relu(e, value);
    Value* bits = e.ir.CreateBitCast(value, e.integer(32, e.on_bases));
    return e.map_lanes("to_small_float", {bits}, to);
  };
  Value* high = code(1);
  Value* low = code(0);
  return join_parts(e, low, high, kPlaces[to]);
}

/// cvt.rs d, a, b, random: a above b, each by half of the random bits, of which f16 takes 13.
Value* op_convert_by_bits(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool half = mods.has("f16x2");
  const unsigned mode =
      (half ? kHalfFloat : kHalfFloat + 1) | (mods.has("satfinite") ? kFinite : 0);
  Value* random = e.read(i.operands[3], 32);
  const auto one = [&](std::size_t n, Value* bits) {
    bits = e.ir.CreateAnd(half ? e.ir.CreateShl(bits, 3) : bits, number_like(bits, 0xffff));
    return convert_by_bits(e, i, i.operands[n], bits, mode);
  };
  Value* high = one(1, e.ir.CreateLShr(random, 16));
  return join_parts(e, one(2, random), high, 16);
}

/// cvt.rs d, {a, b, e, f}, random: a is the highest. Both of a pair take the same random bits: the
/// upper half for a and b and the lower for e and f, of e2m1 the upper and lower bytes of both.
Value* op_convert_small_by_bits(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int to = mods.of("e4m3x4");
  const unsigned place = kPlaces[to];
  const std::vector<Operand> sources = elements_of(i, i.operands[1], 4);
  Value* random = e.read(i.operands[2], 32);
  const auto field = [&](Value* bits, unsigned from, std::uint32_t mask) {
    return e.ir.CreateAnd(e.ir.CreateLShr(bits, from), number_like(bits, mask));
  };
  Value* result = nullptr;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned upper = k < 2 ? 1 : 0;
    Value* bits = field(random, 16 * upper, 0xffff);
    if (place == 4) {
      bits = e.ir.CreateOr(field(random, 8 + 8 * upper, 0xff00), field(random, 8 * upper, 0xff));
    }
    Value* code = convert_by_bits(e, i, sources[k], bits, static_cast<unsigned>(to) | kFinite);
    result = result == nullptr ? code : e.ir.CreateOr(e.ir.CreateShl(result, place), code);
  }
  return e.resize(result, 4 * place, false);
}

Value* op_convert_from_small(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int from = mods.of("e4m3x2");
  const unsigned place = kPlaces[from];
  Value* codes = e.resize(e.read(i.operands[1], 2 * place), 32, false);
  const auto half = [&](unsigned k) {
    Value* code = e.ir.CreateLShr(codes, place * k);
    Value* bits = e.map_lanes("from_small_float", {code}, from);
    Value* value = e.ir.CreateBitCast(bits, e.floating({Kind::kFloat, 32, 1}, e.on_bases));
    if (mods.has("relu")) value = relu(e, value);
    // All of them are exact in 16 bits.
    Value* rounded = mods.has("bf16x2") ? round_to_bfloat(e, value, Rounding::kNearest)
                                        : round_to_half(e, value, Rounding::kNearest);
    return e.resize(rounded, 32, false);
  };
  Value* low = half(0);
  return join_parts(e, low, half(1), 16);
}

/// Powers of two, by their exponents alone.
Value* op_convert_to_exponent(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool pair = mods.has("bf16x2");
  need(i, pair ? 2 : 3);
  const unsigned mode = (mods.has("rp") ? 1U : 0U) | (mods.has("satfinite") ? 2U : 0U);
  const auto code = [&](unsigned k) {
    Value* bits =
        e.ir.CreateBitCast(part_to_convert(e, i, *i.type(), k), e.integer(32, e.on_bases));
    return e.map_lanes("to_exponent", {bits}, mode);
  };
  Value* high = code(1);
  Value* low = code(0);
  return join_parts(e, low, high, 8);
}

Value* op_convert_from_exponent(Emitter& e, const Instruction& i) {
  Value* codes = e.resize(e.read(i.operands[1], 16), 32, false);
  llvm::Type* word = codes->getType();
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  const auto power = [&](unsigned k) {
    Value* code = e.ir.CreateAnd(e.ir.CreateLShr(codes, 8 * k), c(0xff));
    Value* bits =
        e.ir.CreateSelect(e.ir.CreateICmpEQ(code, c(0)), c(0x40), e.ir.CreateShl(code, 7));
    return e.ir.CreateSelect(e.ir.CreateICmpEQ(code, c(0xff)), c(0x7fff), bits);
  };
  return join_parts(e, power(0), power(1), 16);
}

/// cvt.rna.tf32.f32 and its kin: tf32 is an f32 whose 13 low bits are zero.
Value* op_convert_tensor_float(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int rounding = mods.of("rna");
  Value* value = e.read_float(i.operands[1], {Kind::kFloat, 32, 1});
  if (mods.has("relu")) value = relu(e, value);
  llvm::Type* word = e.integer(32, e.on_bases);
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  Value* bits = e.ir.CreateBitCast(value, word);
  Value* rounded = bits;
  if (rounding == 0) rounded = e.ir.CreateAdd(bits, c(0x1000));
  if (rounding == 1) {
    Value* odd = e.ir.CreateAnd(e.ir.CreateLShr(bits, 13), c(1));
    rounded = e.ir.CreateAdd(bits, e.ir.CreateAdd(odd, c(0xfff)));
  }
  rounded = e.ir.CreateAnd(rounded, c(0xffffe000));
  if (mods.has("satfinite")) {
    Value* size = e.ir.CreateAnd(rounded, c(0x7fffffff));
    Value* largest = e.ir.CreateOr(e.ir.CreateAnd(rounded, c(0x80000000)), c(0x7f7fe000));
    rounded = e.ir.CreateSelect(e.ir.CreateICmpUGE(size, c(0x7f800000)), largest, rounded);
  }
  return e.ir.CreateSelect(e.ir.CreateFCmpUNO(value, value), c(0x7fffffff), rounded);
}

/// Two integers, saturated, the first above the second; above them the low bits of a third.
Value* op_pack(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool halves = i.is(Op::kCvtPackHalves);
  const auto type = static_cast<unsigned>(mods.of(halves ? "s16" : "s8"));
  const unsigned bits = halves ? 16 : 8U >> (type / 2);
  const bool is_signed = type % 2 == 0;
  llvm::Type* word = e.integer(32, e.on_bases);
  const std::uint64_t ones = (1U << bits) - 1;
  const std::int64_t high = static_cast<std::int64_t>(is_signed ? ones >> 1 : ones);
  Value* top = llvm::ConstantInt::getSigned(word, high);
  Value* bottom = llvm::ConstantInt::getSigned(word, is_signed ? -high - 1 : 0);
  const auto part = [&](std::size_t n) {
    Value* value = e.intrinsic(llvm::Intrinsic::smax, {e.read(i.operands[n], 32), bottom});
    value = e.intrinsic(llvm::Intrinsic::smin, {value, top});
    return e.ir.CreateAnd(value, llvm::ConstantInt::get(word, ones));
  };
  Value* result = e.ir.CreateOr(e.ir.CreateShl(part(1), bits), part(2));
  if (!halves) result = e.ir.CreateOr(result, e.ir.CreateShl(e.read(i.operands[3], 32), 2 * bits));
  return result;
}

Value* op_convert(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  constexpr int kIntegrals = 4;  // of the group's modifiers, the others round to a float
  const int mode = mods.of("rni");
  const Conversion how{
      .rounding = mode < kIntegrals ? Rounding::kNearest : static_cast<Rounding>(mode - kIntegrals),
      .integral = mode < kIntegrals ? mode : -1,
      .ftz = mods.has("ftz"),
      .positive = mods.has("relu"),
      .saturate = mods.has("sat"),
      .finite = mods.has("satfinite")};
  const Type to = mods.type(0);
  const Type from = mods.type(1);
  if (how.finite && (!to.is_float() || to.bits != 16 || from != Type{Kind::kFloat, 32, 1})) {
    bad_combination(i);
  }
  if (to.lanes == 2) {
    // cvt d, a, b: a is the upper half.
    need(i, 3);
    if (from.bits != 32 || !from.is_float() || how.saturate || how.integral >= 0 ||
        how.rounding > Rounding::kZero) {
      bad_combination(i);
    }
    const auto half = [&](std::size_t n) {
      return e.resize(to_16(e, flush(e, e.read_float(i.operands[n], from), how.ftz), to, how), 32,
                      false);
    };
    Value* high = half(1);
    Value* low = half(2);
    return e.ir.CreateOr(e.ir.CreateShl(high, 16), low);
  }
  need(i, 2);
  if (from.lanes == 2 || from.bits > 64 || to.bits > 64 || from.kind == Kind::kPred ||
      to.kind == Kind::kPred) {
    bad_combination(i);
  }
  if (to.is_float()) {
    return from.is_float() ? convert_floats(e, i, from, to, how)
                           : convert_integer_to_float(e, i, from, to, how);
  }
  if (!from.is_float()) return convert_integers(e, i, from, to, how.saturate);
  Value* value = flush(e, e.read_float(i.operands[1], from), how.ftz);
  value = round_integral(e, value, how.integral < 0 ? 1 : how.integral);
  return extended(e, i.operands[0], float_to_integer(e, value, from, to), to);
}

}  // namespace braid::cpu
