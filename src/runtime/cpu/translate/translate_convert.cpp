#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Transforms/Utils/Local.h>

#include <numeric>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using ptx::Kind;
using ptx::Type;

namespace {
/// Modes of .rni .rzi .rmi .rpi, in the order of Rounding.
constexpr llvm::Intrinsic::ID kIntegral[] = {llvm::Intrinsic::roundeven, llvm::Intrinsic::trunc,
                                             llvm::Intrinsic::floor, llvm::Intrinsic::ceil};
}  // namespace

llvm::Value* Translator::round_integral(Value* value, int mode) {
  return mode < 0 ? value : intrinsic(kIntegral[mode], {value});
}

/// Rounds in a called function that saves all registers, for code that hardly ever runs.
llvm::Value* Translator::round_in_function(Value* value) {
  constexpr const char* kAll = "no_caller_saved_registers";
  llvm::Function* function = out_.getFunction("ptx.round");
  if (function == nullptr) {
    auto* type = llvm::FunctionType::get(integer(16, false), {value->getType()}, false);
    function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "ptx.round", out_);
    function->addFnAttrs(llvm::AttrBuilder(llvm_, kernel_->getAttributes().getFnAttrs()));
    function->addFnAttr(kAll);
    const llvm::IRBuilderBase::InsertPointGuard here(b_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(llvm_, "", function));
    b_.CreateRet(round_by_bits(function->getArg(0), Rounding::kNearest));
  }
  llvm::CallInst* call = b_.CreateCall(function, value);
  call->addFnAttr(llvm::Attribute::get(llvm_, kAll));
  return call;
}

/// 32 of f32 to the nearest bf16 by the host's own instruction, which takes subnormals for zeros
/// and keeps what a NaN says: what has one of them goes the other way.
llvm::Value* Translator::round_by_host(Value* value) {
  constexpr unsigned kSpecial = 0x01 | 0x20 | 0x80;  // quiet NaN, subnormal, signaling NaN
  Value* halves[2];
  Value* specials[2];
  for (int half = 0; half < 2; ++half) {
    std::vector<int> order(16);
    std::iota(order.begin(), order.end(), 16 * half);
    halves[half] = b_.CreateShuffleVector(value, order);
    specials[half] = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_fpclass_ps_512, {},
                                        {halves[half], b_.getInt32(kSpecial)});
  }
  Value* any = b_.CreateBitCast(b_.CreateOr(specials[0], specials[1]), b_.getInt16Ty());
  Value* rounded = b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {},
                                      {halves[1], halves[0]});
  rounded = b_.CreateBitCast(rounded, integer(16, false));
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* end = nullptr;
  Value* other = nullptr;
  split_unlikely(b_.CreateICmpNE(any, b_.getInt16(0)), [&] {
    other = round_in_function(value);
    end = b_.GetInsertBlock();
  });
  llvm::PHINode* result = b_.CreatePHI(rounded->getType(), 2);
  result->addIncoming(rounded, before);
  result->addIncoming(other, end);
  return result;
}

/// f32 to the bits of bf16; NaN becomes 0x7fff.
llvm::Value* Translator::round_to_bfloat(Value* value, Rounding rounding) {
  const bool by_host = round_ != nullptr && rounding == Rounding::kNearest;
  return by_host && value->getType()->isVectorTy() ? b_.CreateCall(round_, value)
                                                   : round_by_bits(value, rounding);
}

/// Puts code in place of the calls of `round_` that are left: wide stores have their own.
void Translator::expand_roundings() {
  if (round_ == nullptr) return;
  llvm::SmallVector<llvm::WeakTrackingVH> dead;
  for (llvm::BasicBlock& block : *kernel_) {
    for (llvm::Instruction& i : block) {
      if (llvm::isInstructionTriviallyDead(&i)) dead.emplace_back(&i);
    }
  }
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
  while (!round_->use_empty()) {
    auto* call = llvm::cast<llvm::CallInst>(round_->user_back());
    llvm::BasicBlock* block = call->getParent();
    llvm::BasicBlock* rest = block->splitBasicBlock(std::next(call->getIterator()));
    block->getTerminator()->eraseFromParent();
    b_.SetInsertPoint(block);
    Value* rounded = round_by_host(call->getArgOperand(0));
    b_.CreateBr(rest);
    call->replaceAllUsesWith(rounded);
    call->eraseFromParent();
  }
  round_->eraseFromParent();
}

llvm::Value* Translator::round_by_bits(Value* value, Rounding rounding) {
  const bool scalar = !value->getType()->isVectorTy();
  llvm::Type* word = integer(32, scalar);
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  Value* bits = b_.CreateBitCast(value, word);
  // First, so that no mask has to be kept until the end.
  bits = b_.CreateSelect(b_.CreateFCmpUNO(value, value), c(0x7fff0000), bits);
  Value* rounded = bits;
  if (rounding == Rounding::kNearest) {
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), c(1));
    rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, c(0x7fff)));
  } else if (rounding != Rounding::kZero) {
    Value* negative = b_.CreateICmpSLT(bits, c(0));
    Value* away = rounding == Rounding::kDown ? negative : b_.CreateNot(negative);
    rounded = b_.CreateAdd(bits, b_.CreateSelect(away, c(0xffff), c(0)));
  }
  return b_.CreateTrunc(b_.CreateLShr(rounded, 16), integer(16, scalar));
}

llvm::Value* Translator::round_to_half(Value* value, Rounding rounding) {
  const bool scalar = !value->getType()->isVectorTy();
  llvm::Type* half = llvm::Type::getHalfTy(llvm_);
  if (!scalar) half = llvm::FixedVectorType::get(half, 32);
  llvm::Type* small = integer(16, scalar);
  Value* result = b_.CreateFPTrunc(value, half);
  Value* bits = b_.CreateBitCast(result, small);
  if (rounding != Rounding::kNearest) {
    // One step where rounding to nearest went to the wrong side; infinity steps to the largest.
    Value* size = intrinsic(llvm::Intrinsic::fabs, {value});
    Value* back = b_.CreateFPExt(result, value->getType());
    Value* outside = b_.CreateFCmpOGT(intrinsic(llvm::Intrinsic::fabs, {back}), size);
    Value* wrong = rounding == Rounding::kZero   ? outside
                   : rounding == Rounding::kDown ? b_.CreateFCmpOGT(back, value)
                                                 : b_.CreateFCmpOLT(back, value);
    llvm::Constant* one = llvm::ConstantInt::get(small, 1);
    Value* stepped = b_.CreateSelect(outside, b_.CreateSub(bits, one), b_.CreateAdd(bits, one));
    bits = b_.CreateSelect(wrong, stepped, bits);
  }
  Value* nan = b_.CreateFCmpUNO(value, value);
  return b_.CreateSelect(nan, llvm::ConstantInt::get(small, 0x7fff), bits);
}

/// Saturates. NaN becomes 0, or only the top bit where one of the types has 64 bits.
llvm::Value* Translator::float_to_integer(Value* value, Type from, Type to) {
  llvm::Type* target = integer(to.bits, !value->getType()->isVectorTy());
  Value* result =
      b_.CreateIntrinsic(to.is_signed() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                         {target, value->getType()}, {value});
  if (from.bits < 64 && to.bits < 64) return result;
  llvm::Constant* top = llvm::ConstantInt::get(target, llvm::APInt::getSignMask(to.bits));
  return b_.CreateSelect(b_.CreateFCmpUNO(value, value), top, result);
}

namespace {
/// Bits of a place in the result, in the order of "e4m3x2|e5m2x2|e2m1x2|e2m3x2|e3m2x2".
constexpr unsigned kPlaces[] = {8, 8, 4, 8, 8};
/// How helper "round_by_bits" counts f16 and bf16.
constexpr unsigned kHalfFloat = 5;
constexpr unsigned kFinite = 16;
}  // namespace

/// The parts of a result in 32 bits, the first in the lower half of `bits`.
llvm::Value* Translator::join_parts(Value* low, Value* high, unsigned place) {
  return resize(b_.CreateOr(b_.CreateShl(high, place), low), 2 * place, false);
}

/// An f32 of two that a conversion reads: cvt d, a, b puts a above. Of a packed operand, half k.
llvm::Value* Translator::part_to_convert(const Instruction& i, Type packed, unsigned k) {
  const Type element{packed.kind, packed.bits, 1};
  if (packed.lanes == 1) return read_float(i.operands[2 - k], element);
  Value* bits = read(i.operands[1], 32);
  if (k != 0) bits = b_.CreateLShr(bits, 16);
  return bits_to_float(resize(bits, 16, false), element);
}

/// Converts to pairs of floats of 8 bits or less.
llvm::Value* Translator::op_convert_to_small(const Instruction& i) {
  const Choices mods(i);
  const int to = mods.of("e4m3x2");
  const bool pair = mods.has("f16x2") || mods.has("bf16x2");
  need(i, pair ? 2 : 3);
  const auto code = [&](unsigned k) {
    Value* value = part_to_convert(i, *i.type(), k);
    if (mods.has("relu")) value = relu(value);
    Value* bits = b_.CreateBitCast(value, integer(32, scalar_));
    return map_lanes("to_small_float", {bits}, to);
  };
  Value* high = code(1);
  Value* low = code(0);
  return join_parts(low, high, kPlaces[to]);
}

/// One element of a conversion by 16 random bits.
llvm::Value* Translator::convert_by_bits(const Instruction& i, const Operand& source, Value* random,
                                         unsigned mode) {
  Value* value = read_float(source, {Kind::kFloat, 32, 1});
  if (Choices(i).has("relu")) value = relu(value);
  Value* bits = b_.CreateBitCast(value, integer(32, scalar_));
  return map_lanes("round_by_bits", {bits, random}, mode);
}

/// cvt.rs d, a, b, random: a above b, each by half of the random bits, of which f16 takes 13.
llvm::Value* Translator::op_convert_by_bits(const Instruction& i) {
  const Choices mods(i);
  const bool half = mods.has("f16x2");
  const unsigned mode =
      (half ? kHalfFloat : kHalfFloat + 1) | (mods.has("satfinite") ? kFinite : 0);
  Value* random = read(i.operands[3], 32);
  const auto one = [&](std::size_t n, Value* bits) {
    bits = b_.CreateAnd(half ? b_.CreateShl(bits, 3) : bits, number_like(bits, 0xffff));
    return convert_by_bits(i, i.operands[n], bits, mode);
  };
  Value* high = one(1, b_.CreateLShr(random, 16));
  return join_parts(one(2, random), high, 16);
}

/// cvt.rs d, {a, b, e, f}, random: a is the highest. Both of a pair take the same random bits: the
/// upper half for a and b and the lower for e and f, of e2m1 the upper and lower bytes of both.
llvm::Value* Translator::op_convert_small_by_bits(const Instruction& i) {
  const Choices mods(i);
  const int to = mods.of("e4m3x4");
  const unsigned place = kPlaces[to];
  const std::vector<Operand> sources = elements_of(i, i.operands[1], 4);
  Value* random = read(i.operands[2], 32);
  const auto field = [&](Value* bits, unsigned from, std::uint32_t mask) {
    return b_.CreateAnd(b_.CreateLShr(bits, from), number_like(bits, mask));
  };
  Value* result = nullptr;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned upper = k < 2 ? 1 : 0;
    Value* bits = field(random, 16 * upper, 0xffff);
    if (place == 4) {
      bits = b_.CreateOr(field(random, 8 + 8 * upper, 0xff00), field(random, 8 * upper, 0xff));
    }
    Value* code = convert_by_bits(i, sources[k], bits, static_cast<unsigned>(to) | kFinite);
    result = result == nullptr ? code : b_.CreateOr(b_.CreateShl(result, place), code);
  }
  return resize(result, 4 * place, false);
}

llvm::Value* Translator::op_convert_from_small(const Instruction& i) {
  const Choices mods(i);
  const int from = mods.of("e4m3x2");
  const unsigned place = kPlaces[from];
  Value* codes = resize(read(i.operands[1], 2 * place), 32, false);
  const auto half = [&](unsigned k) {
    Value* code = b_.CreateLShr(codes, place * k);
    Value* bits = map_lanes("from_small_float", {code}, from);
    Value* value = b_.CreateBitCast(bits, floating({Kind::kFloat, 32, 1}, scalar_));
    if (mods.has("relu")) value = relu(value);
    return resize(round_to_half(value, Rounding::kNearest), 32, false);
  };
  Value* low = half(0);
  return join_parts(low, half(1), 16);
}

/// Powers of two, by their exponents alone.
llvm::Value* Translator::op_convert_to_exponent(const Instruction& i) {
  const Choices mods(i);
  const bool pair = mods.has("bf16x2");
  need(i, pair ? 2 : 3);
  const unsigned mode = (mods.has("rp") ? 1U : 0U) | (mods.has("satfinite") ? 2U : 0U);
  const auto code = [&](unsigned k) {
    Value* bits = b_.CreateBitCast(part_to_convert(i, *i.type(), k), integer(32, scalar_));
    return map_lanes("to_exponent", {bits}, mode);
  };
  Value* high = code(1);
  Value* low = code(0);
  return join_parts(low, high, 8);
}

llvm::Value* Translator::op_convert_from_exponent(const Instruction& i) {
  Value* codes = resize(read(i.operands[1], 16), 32, false);
  llvm::Type* word = codes->getType();
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  const auto power = [&](unsigned k) {
    Value* code = b_.CreateAnd(b_.CreateLShr(codes, 8 * k), c(0xff));
    Value* bits = b_.CreateSelect(b_.CreateICmpEQ(code, c(0)), c(0x40), b_.CreateShl(code, 7));
    return b_.CreateSelect(b_.CreateICmpEQ(code, c(0xff)), c(0x7fff), bits);
  };
  return join_parts(power(0), power(1), 16);
}

/// cvt.rna.tf32.f32 and its kin: tf32 is an f32 whose 13 low bits are zero.
llvm::Value* Translator::op_convert_tensor_float(const Instruction& i) {
  const Choices mods(i);
  const int rounding = mods.of("rna");
  Value* value = read_float(i.operands[1], {Kind::kFloat, 32, 1});
  if (mods.has("relu")) value = relu(value);
  llvm::Type* word = integer(32, scalar_);
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  Value* bits = b_.CreateBitCast(value, word);
  Value* rounded = bits;
  if (rounding == 0) rounded = b_.CreateAdd(bits, c(0x1000));
  if (rounding == 1) {
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 13), c(1));
    rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, c(0xfff)));
  }
  rounded = b_.CreateAnd(rounded, c(0xffffe000));
  if (mods.has("satfinite")) {
    Value* size = b_.CreateAnd(rounded, c(0x7fffffff));
    Value* largest = b_.CreateOr(b_.CreateAnd(rounded, c(0x80000000)), c(0x7f7fe000));
    rounded = b_.CreateSelect(b_.CreateICmpUGE(size, c(0x7f800000)), largest, rounded);
  }
  return b_.CreateSelect(b_.CreateFCmpUNO(value, value), c(0x7fffffff), rounded);
}

/// Two integers, saturated, the first above the second; above them the low bits of a third.
llvm::Value* Translator::op_pack(const Instruction& i) {
  const Choices mods(i);
  const bool halves = i.is(Op::kCvtPackHalves);
  const auto type = static_cast<unsigned>(mods.of(halves ? "s16" : "s8"));
  const unsigned bits = halves ? 16 : 8U >> (type / 2);
  const bool is_signed = type % 2 == 0;
  llvm::Type* word = integer(32, scalar_);
  const std::uint64_t ones = (1U << bits) - 1;
  const std::int64_t high = static_cast<std::int64_t>(is_signed ? ones >> 1 : ones);
  Value* top = llvm::ConstantInt::getSigned(word, high);
  Value* bottom = llvm::ConstantInt::getSigned(word, is_signed ? -high - 1 : 0);
  const auto part = [&](std::size_t n) {
    Value* value = intrinsic(llvm::Intrinsic::smax, {read(i.operands[n], 32), bottom});
    value = intrinsic(llvm::Intrinsic::smin, {value, top});
    return b_.CreateAnd(value, llvm::ConstantInt::get(word, ones));
  };
  Value* result = b_.CreateOr(b_.CreateShl(part(1), bits), part(2));
  if (!halves) result = b_.CreateOr(result, b_.CreateShl(read(i.operands[3], 32), 2 * bits));
  return result;
}

/// An integer result; a narrow one fills a wider register by its own sign.

llvm::Value* Translator::convert_integers(const Instruction& i, Type from, Type to, bool saturate) {
  Value* value = read(i.operands[1], from.bits);
  if (saturate) {
    // Clamp in 64 bits plus sign; u64 to s64 is the only pair that does not fit.
    Value* wide = resize(value, 128, from.is_signed());
    llvm::Type* t = wide->getType();
    const llvm::APInt low =
        to.is_signed() ? llvm::APInt::getSignedMinValue(to.bits).sext(128) : llvm::APInt(128, 0);
    const llvm::APInt high = to.is_signed() ? llvm::APInt::getSignedMaxValue(to.bits).sext(128)
                                            : llvm::APInt::getMaxValue(to.bits).zext(128);
    wide = intrinsic(llvm::Intrinsic::smax, {wide, llvm::ConstantInt::get(t, low)});
    wide = intrinsic(llvm::Intrinsic::smin, {wide, llvm::ConstantInt::get(t, high)});
    value = resize(wide, to.bits, false);
  } else if (to.bits == 64 && from.bits == 32) {
    value = widen(i.operands[1], from, 64);
  } else {
    value = resize(value, to.bits, from.is_signed());
  }
  return extended(i.operands[0], value, to);
}

llvm::Value* Translator::convert_integer_to_float(const Instruction& i, Type from, Type to,
                                                  const Conversion& how) {
  Value* value = read(i.operands[1], from.bits);
  if (how.rounding != Rounding::kNearest && to.bits >= 32) {
    // Any 64-bit integer is exact in a long double: let the host round.
    const unsigned mode = static_cast<unsigned>(how.rounding) | (from.is_signed() ? 4U : 0U);
    Value* wide = resize(value, 64, from.is_signed());
    Value* out = map_lanes(to.bits == 64 ? "int_to_f64" : "int_to_f32", {wide}, mode);
    return resize(out, to.bits, false);
  }
  if (to.bits == 16) {
    // Through an f32 with a sticky bit: from f64, or from the host where that might round, too.
    if (from.bits == 64) {
      const unsigned mode = 8U | (from.is_signed() ? 4U : 0U);
      Value* out = resize(map_lanes("int_to_f32", {value}, mode), 32, false);
      const Type single{Kind::kFloat, 32, 1};
      return to_16(clamp(bits_to_float(out, single), how.saturate), to, how);
    }
    llvm::Type* wide = floating(Type{Kind::kFloat, 64, 1}, scalar_);
    Value* exact = from.is_signed() ? b_.CreateSIToFP(value, wide) : b_.CreateUIToFP(value, wide);
    return to_16(clamp(odd_float(exact), how.saturate), to, how);
  }
  llvm::Type* target = floating(to, scalar_);
  Value* result =
      from.is_signed() ? b_.CreateSIToFP(value, target) : b_.CreateUIToFP(value, target);
  return float_to_bits(clamp(result, how.saturate), to);
}

llvm::Value* Translator::convert_floats(const Instruction& i, Type from, Type to,
                                        const Conversion& how) {
  Value* value = flush(read_float(i.operands[1], from), how.ftz);
  value = clamp(round_integral(value, how.integral), how.saturate);
  if (to.bits == 16) {
    if (from.bits == 16 && from.kind == to.kind && how.integral < 0 && !how.saturate &&
        !how.positive) {
      return read(i.operands[1], 16);
    }
    return to_16(from.bits == 64 ? odd_float(value) : value, to, how);
  }
  if (to.bits == 64 && from.bits < 64) value = b_.CreateFPExt(value, floating(to, scalar_));
  if (to.bits == 32 && from.bits == 64) {
    if (how.rounding == Rounding::kNearest) {
      value = b_.CreateFPTrunc(value, floating(to, scalar_));
    } else {
      Value* out = map_lanes("f64_to_f32", {value}, how.rounding);
      value = bits_to_float(resize(b_.CreateBitCast(out, integer(64, scalar_)), 32, false), to);
    }
  }
  return float_to_bits(flush(how.positive ? relu(value) : value, how.ftz), to);
}

/// The bits of a 16-bit float.
llvm::Value* Translator::to_16(Value* value, Type type, const Conversion& how) {
  if (how.positive) value = relu(value);
  if (how.finite) {
    // The largest of the type, exact in f32.
    const double most = type.kind == Kind::kBfloat ? 0x1.fep127 : 65504;
    llvm::Constant* high = llvm::ConstantFP::get(value->getType(), most);
    llvm::Constant* low = llvm::ConstantFP::get(value->getType(), -most);
    value = b_.CreateSelect(b_.CreateFCmpOGT(value, high), high, value);
    value = b_.CreateSelect(b_.CreateFCmpOLT(value, low), low, value);
  }
  return type.kind == Kind::kBfloat ? round_to_bfloat(value, how.rounding)
                                    : round_to_half(value, how.rounding);
}

llvm::Value* Translator::op_convert(const Instruction& i) {
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
      return resize(to_16(flush(read_float(i.operands[n], from), how.ftz), to, how), 32, false);
    };
    Value* high = half(1);
    Value* low = half(2);
    return b_.CreateOr(b_.CreateShl(high, 16), low);
  }
  need(i, 2);
  if (from.lanes == 2 || from.bits > 64 || to.bits > 64 || from.kind == Kind::kPred ||
      to.kind == Kind::kPred) {
    bad_combination(i);
  }
  if (to.is_float()) {
    return from.is_float() ? convert_floats(i, from, to, how)
                           : convert_integer_to_float(i, from, to, how);
  }
  if (!from.is_float()) return convert_integers(i, from, to, how.saturate);
  Value* value = flush(read_float(i.operands[1], from), how.ftz);
  value = round_integral(value, how.integral < 0 ? 1 : how.integral);
  return extended(i.operands[0], float_to_integer(value, from, to), to);
}

}  // namespace braid::cpu
