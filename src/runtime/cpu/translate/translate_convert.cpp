#include <llvm/IR/Intrinsics.h>

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

/// f32 to the bits of bf16; NaN becomes 0x7fff.
llvm::Value* Translator::round_to_bfloat(Value* value, Rounding rounding) {
  const bool scalar = !value->getType()->isVectorTy();
  llvm::Type* word = integer(32, scalar);
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(word, v); };
  Value* bits = b_.CreateBitCast(value, word);
  Value* rounded = bits;
  if (rounding == Rounding::kNearest) {
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), c(1));
    rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, c(0x7fff)));
  } else if (rounding != Rounding::kZero) {
    Value* negative = b_.CreateICmpSLT(bits, c(0));
    Value* away = rounding == Rounding::kDown ? negative : b_.CreateNot(negative);
    rounded = b_.CreateAdd(bits, b_.CreateSelect(away, c(0xffff), c(0)));
  }
  rounded = b_.CreateLShr(rounded, 16);
  rounded = b_.CreateSelect(b_.CreateFCmpUNO(value, value), c(0x7fff), rounded);
  return b_.CreateTrunc(rounded, integer(16, scalar));
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

/// cvt from and to pairs of 8-bit floats.
void Translator::convert_float8(const Instruction& i) {
  Modifiers mods(i);
  if (!mods.take("rn")) mods.unknown();
  const bool finite = mods.take("satfinite");
  const bool positive = mods.take("relu");
  const auto half = [&](const Operand& operand, unsigned k) {
    Value* bits = read(operand, 32);
    if (k != 0) bits = b_.CreateLShr(bits, 16);
    return bits_to_float(resize(bits, 16, false), Type{Kind::kFloat, 16, 1});
  };
  static const std::initializer_list<std::string_view> kTypes = {"e4m3x2", "e5m2x2", "f32",
                                                                 "f16x2"};
  const int to = mods.take_one(kTypes);
  const int source = mods.take_one(kTypes);
  mods.finish();
  if (to == 0 || to == 1) {
    const int from = source - 2;
    if (from < 0 || !finite) mods.unknown();
    need(i, from == 0 ? 3 : 2);
    const auto code = [&](Value* value) {
      if (positive) value = relu(value);
      Value* bits = b_.CreateBitCast(value, integer(32, scalar_));
      return map_lanes("braid_cpu_to_float8", {bits}, static_cast<unsigned>(to));
    };
    // cvt d, a, b: a is the upper byte.
    Value* high =
        code(from == 0 ? read_float(i.operands[1], {Kind::kFloat, 32, 1}) : half(i.operands[1], 1));
    Value* low =
        code(from == 0 ? read_float(i.operands[2], {Kind::kFloat, 32, 1}) : half(i.operands[1], 0));
    write(i.operands[0], resize(b_.CreateOr(b_.CreateShl(high, 8), low), 16, false));
    return;
  }
  const int from = source;
  if (finite || to != 3 || from < 0 || from > 1) mods.unknown();
  need(i, 2);
  Value* codes = resize(read(i.operands[1], 16), 32, false);
  Value* result = nullptr;
  for (unsigned k = 0; k < 2; ++k) {
    Value* code = k == 0 ? codes : b_.CreateLShr(codes, 8);
    Value* bits = map_lanes("braid_cpu_from_float8", {code}, static_cast<unsigned>(from));
    Value* value = b_.CreateBitCast(bits, floating({Kind::kFloat, 32, 1}, scalar_));
    if (positive) value = relu(value);
    Value* half_bits = resize(round_to_half(value, Rounding::kNearest), 32, false);
    result = k == 0 ? half_bits : b_.CreateOr(result, b_.CreateShl(half_bits, 16));
  }
  write(i.operands[0], result);
}

/// cvt.rna.tf32.f32 and its kin: tf32 is an f32 whose 13 low bits are zero.
void Translator::convert_tensor_float(const Instruction& i) {
  Modifiers mods(i);
  const int rounding = mods.take_one({"rna", "rn", "rz"});
  const bool positive = mods.take("relu");
  if (rounding < 0 || mods.take_one({"tf32", "f32"}) != 0 || !mods.take("f32")) mods.unknown();
  mods.finish();
  need(i, 2);
  Value* value = read_float(i.operands[1], {Kind::kFloat, 32, 1});
  if (positive) value = relu(value);
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
  write(i.operands[0], b_.CreateSelect(b_.CreateFCmpUNO(value, value), c(0x7fffffff), rounded));
}

void Translator::op_convert(const Instruction& i) {
  for (const std::string& modifier : i.modifiers) {
    if (modifier == "e4m3x2" || modifier == "e5m2x2") return convert_float8(i);
    if (modifier == "tf32") return convert_tensor_float(i);
  }
  Modifiers mods(i);
  const int integral = mods.take_one({"rni", "rzi", "rmi", "rpi"});
  int rounding_index = -1;
  if (integral < 0) rounding_index = mods.take_one({"rn", "rz", "rm", "rp"});
  const bool ftz = mods.take("ftz");
  const bool positive = mods.take("relu");
  const bool saturate = mods.take("sat");
  const Type to = mods.type();
  const Type from = mods.type();
  mods.finish();
  const auto rounding =
      rounding_index < 0 ? Rounding::kNearest : static_cast<Rounding>(rounding_index);
  const auto to_16 = [&](Value* v, Type t) {
    if (positive) v = relu(v);
    return t.kind == Kind::kBfloat ? round_to_bfloat(v, rounding) : round_to_half(v, rounding);
  };
  if (to.lanes == 2) {
    // cvt d, a, b: a is the upper half.
    need(i, 3);
    if (from.bits != 32 || !from.is_float() || saturate || integral >= 0 ||
        rounding > Rounding::kZero) {
      mods.unknown();
    }
    Value* high = resize(to_16(flush(read_float(i.operands[1], from), ftz), to), 32, false);
    Value* low = resize(to_16(flush(read_float(i.operands[2], from), ftz), to), 32, false);
    write(i.operands[0], b_.CreateOr(b_.CreateShl(high, 16), low));
    return;
  }
  need(i, 2);
  if (from.lanes == 2 || from.bits > 64 || to.bits > 64 || from.kind == Kind::kPred ||
      to.kind == Kind::kPred) {
    mods.unknown();
  }
  if (!from.is_float() && !to.is_float()) {
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
    // A narrow result fills a wider register by its own sign.
    if (i.operands[0].is_register() && register_bits(i.operands[0].index) > to.bits) {
      value = resize(value, register_bits(i.operands[0].index), to.is_signed());
    }
    write(i.operands[0], value);
    return;
  }
  if (from.is_float() && !to.is_float()) {
    Value* value = flush(read_float(i.operands[1], from), ftz);
    value = float_to_integer(round_integral(value, integral < 0 ? 1 : integral), from, to);
    if (i.operands[0].is_register() && register_bits(i.operands[0].index) > to.bits) {
      value = resize(value, register_bits(i.operands[0].index), to.is_signed());
    }
    write(i.operands[0], value);
    return;
  }
  if (!from.is_float()) {
    Value* value = read(i.operands[1], from.bits);
    if (rounding != Rounding::kNearest && to.bits >= 32) {
      // Any 64-bit integer is exact in a long double: let the host round.
      const unsigned mode = static_cast<unsigned>(rounding) | (from.is_signed() ? 4U : 0U);
      Value* wide = resize(value, 64, from.is_signed());
      Value* out =
          map_lanes(to.bits == 64 ? "braid_cpu_int_to_f64" : "braid_cpu_int_to_f32", {wide}, mode);
      write(i.operands[0], resize(out, to.bits, false));
      return;
    }
    if (to.bits == 16) {
      // Through an f32 with a sticky bit: from f64, or from the host where that might round, too.
      if (from.bits == 64) {
        const unsigned mode = 8U | (from.is_signed() ? 4U : 0U);
        Value* out = resize(map_lanes("braid_cpu_int_to_f32", {value}, mode), 32, false);
        const Type single{Kind::kFloat, 32, 1};
        write(i.operands[0], to_16(clamp(bits_to_float(out, single), saturate), to));
        return;
      }
      llvm::Type* wide = floating(Type{Kind::kFloat, 64, 1}, scalar_);
      Value* exact = from.is_signed() ? b_.CreateSIToFP(value, wide) : b_.CreateUIToFP(value, wide);
      write(i.operands[0], to_16(clamp(odd_float(exact), saturate), to));
      return;
    }
    llvm::Type* target = floating(to, scalar_);
    Value* result =
        from.is_signed() ? b_.CreateSIToFP(value, target) : b_.CreateUIToFP(value, target);
    write_float(i.operands[0], clamp(result, saturate), to);
    return;
  }
  Value* value = flush(read_float(i.operands[1], from), ftz);
  value = clamp(round_integral(value, integral), saturate);
  if (to.bits == 16) {
    if (from.bits == 16 && from.kind == to.kind && integral < 0 && !saturate && !positive) {
      write(i.operands[0], read(i.operands[1], 16));
      return;
    }
    if (from.bits == 64) value = odd_float(value);
    write(i.operands[0], to_16(value, to));
    return;
  }
  if (to.bits == 64 && from.bits < 64) value = b_.CreateFPExt(value, floating(to, scalar_));
  if (to.bits == 32 && from.bits == 64) {
    if (rounding == Rounding::kNearest) {
      value = b_.CreateFPTrunc(value, floating(to, scalar_));
    } else {
      Value* out = map_lanes("braid_cpu_f64_to_f32", {value}, static_cast<unsigned>(rounding));
      value = bits_to_float(resize(b_.CreateBitCast(out, integer(64, scalar_)), 32, false), to);
    }
  }
  write_float(i.operands[0], flush(positive ? relu(value) : value, ftz), to);
}

}  // namespace braid::cpu
