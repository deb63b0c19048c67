#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "runtime/cpu/translate/translator.h"

// Video instructions. They compute in whole numbers, for which 64 bits nearly always do.

namespace braid::cpu {

namespace {
constexpr unsigned kWide = 64;
constexpr unsigned kWidest = 128;
using Parts = ptx::Operand::Parts;
}  // namespace

llvm::Value* Translator::number(std::uint64_t value, unsigned bits) {
  return llvm::ConstantInt::get(integer(bits, scalar_), llvm::APInt(64, value).zextOrTrunc(bits));
}

/// The k-th of the parts of a word, with its sign or zeros above it.
llvm::Value* Translator::part(Value* word, const Parts& parts, unsigned k, bool is_signed,
                              unsigned bits) {
  const unsigned from = unsigned{parts.bits} * parts.at[k];
  return resize(resize(b_.CreateLShr(word, from), parts.bits, false), bits, is_signed);
}

/// Operand `n`, or the part of it that is named.
llvm::Value* Translator::whole_or_part(const Instruction& i, std::size_t n, bool is_signed,
                                       unsigned bits) {
  const Parts& parts = i.operands[n].parts;
  Value* word = read(i.operands[n], 32);
  if (parts.count == 0) return resize(word, bits, is_signed);
  if (parts.count != 1 || unsigned{parts.bits} * parts.at[0] >= 32) bad(i, "expected one part");
  return part(word, parts, 0, is_signed, bits);
}

/// The nearest number of `width` bits. One without a sign is all of its bits.
llvm::Value* Translator::to_range(Value* value, unsigned width, bool to_signed, bool from_signed) {
  llvm::Type* type = value->getType();
  const unsigned bits = type->getScalarSizeInBits();
  const llvm::APInt high = to_signed ? llvm::APInt::getSignedMaxValue(width).sext(bits)
                                     : llvm::APInt::getMaxValue(width).zext(bits);
  llvm::Constant* top = llvm::ConstantInt::get(type, high);
  if (!from_signed) return intrinsic(llvm::Intrinsic::umin, {value, top});
  const llvm::APInt low =
      to_signed ? llvm::APInt::getSignedMinValue(width).sext(bits) : llvm::APInt::getZero(bits);
  value = intrinsic(llvm::Intrinsic::smax, {value, llvm::ConstantInt::get(type, low)});
  return intrinsic(llvm::Intrinsic::smin, {value, top});
}

/// The exact result of the named operation on two numbers.
llvm::Value* Translator::video_result(const Instruction& i, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  const std::string_view name(i.name);
  const auto begins = [&](std::string_view with) { return name.substr(0, with.size()) == with; };
  if (begins("vadd")) return b_.CreateAdd(a, b);
  if (begins("vsub")) return b_.CreateSub(a, b);
  if (begins("vabsdiff")) {
    Value* difference = b_.CreateSub(a, b);
    return intrinsic(llvm::Intrinsic::smax, {difference, b_.CreateNeg(difference)});
  }
  if (begins("vmin")) return intrinsic(llvm::Intrinsic::smin, {a, b});
  if (begins("vmax")) return intrinsic(llvm::Intrinsic::smax, {a, b});
  if (begins("vshl")) return b_.CreateShl(a, b);
  if (begins("vshr")) return b_.CreateAShr(a, b);
  const unsigned bits = a->getType()->getScalarSizeInBits();
  if (begins("vavrg")) {
    // Halves go away from zero where the sum is above it, and down below.
    Value* sum = b_.CreateAdd(a, b);
    Value* above = b_.CreateNot(b_.CreateLShr(sum, bits - 1));
    return b_.CreateAShr(b_.CreateAdd(sum, b_.CreateAnd(above, number(1, bits))), 1);
  }
  constexpr P kHow[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  return resize(b_.CreateICmp(kHow[Choices(i).of("eq")], a, b), bits, false);
}

/// An operation on words or their parts; then a second one with the last operand, or the result
/// takes the place of a part of it.
llvm::Value* Translator::op_video(const Instruction& i) {
  const Choices mods(i);
  const bool set = i.is(Op::kVideoSet);
  const bool shift = i.is(Op::kVideoShift);
  const auto is_signed = [&](int nth) { return mods.of("u32", nth) == 1; };
  const bool to_signed = !set && is_signed(0);
  if (std::ranges::any_of(i.operands, [](const Operand& o) { return o.minus; })) {
    bad(i, "a sign is not supported");
  }
  const Parts& into = i.operands[0].parts;
  const int second = mods.of("add");
  const bool third = into.count != 0 || second >= 0;
  if (into.count > 1 || unsigned{into.bits} * into.at[0] >= 32 ||
      (into.count != 0 && second >= 0)) {
    bad(i, "unsupported destination");
  }
  if (third) need(i, 4);  // else a third is not looked at
  const bool a_signed = is_signed(set ? 0 : 1);
  Value* a = whole_or_part(i, 1, a_signed, kWide);
  Value* b = whole_or_part(i, 2, !shift && is_signed(set ? 1 : 2), kWide);
  if (shift) {
    b = mods.has("wrap") ? b_.CreateAnd(b, number(31, kWide))
                         : intrinsic(llvm::Intrinsic::umin, {b, number(32, kWide)});
  }
  Value* result = video_result(i, a, b);
  if (mods.has("sat")) {
    result = to_range(result, into.count == 0 ? 32 : into.bits, to_signed, !shift || a_signed);
  }
  if (!third) return resize(result, 32, false);
  Value* c = read(i.operands[3], 32);
  if (into.count == 0) {
    // Both have 33 bits.
    result = resize(resize(result, 33, false), kWide, true);
    Value* other = resize(c, kWide, to_signed);
    result = second == 0   ? b_.CreateAdd(result, other)
             : second == 1 ? intrinsic(llvm::Intrinsic::smin, {result, other})
                           : intrinsic(llvm::Intrinsic::smax, {result, other});
    return resize(result, 32, false);
  }
  const std::uint64_t field = ((std::uint64_t{1} << into.bits) - 1) << (into.bits * into.at[0]);
  result = b_.CreateShl(resize(result, 32, false), unsigned{into.bits} * into.at[0]);
  return b_.CreateOr(b_.CreateAnd(result, number(field, 32)), b_.CreateAnd(c, number(~field, 32)));
}

/// a b + c with signs, shifted down.
llvm::Value* Translator::op_video_mad(const Instruction& i) {
  const Choices mods(i);
  const bool more = mods.has("po");
  const auto& operands = i.operands;
  const bool negative = operands[1].minus != operands[2].minus;
  const bool a_signed = mods.of("u32", 1) == 1;
  const bool b_signed = mods.of("u32", 2) == 1;
  const bool final_signed = a_signed || b_signed || negative || operands[3].minus;
  if (operands[0].parts.count != 0 || operands[3].parts.count != 0 ||
      (more && (operands[1].minus || operands[2].minus || operands[3].minus)) ||
      (negative && operands[3].minus)) {
    bad(i, "unsupported operands");
  }
  // A result that is unsigned by its factors may need more than 63 bits.
  const unsigned bits = final_signed && !a_signed && !b_signed ? kWidest : kWide;
  Value* product =
      b_.CreateMul(whole_or_part(i, 1, a_signed, bits), whole_or_part(i, 2, b_signed, bits));
  Value* c = resize(read(operands[3], 32), bits, final_signed);
  if (negative) product = b_.CreateNeg(product);
  if (operands[3].minus) c = b_.CreateNeg(c);
  Value* sum = b_.CreateAdd(product, c);
  if (more) sum = b_.CreateAdd(sum, number(1, bits));
  const int scale = mods.of("shr7");
  const std::uint64_t by = scale < 0 ? 0 : scale == 0 ? 7 : 15;
  sum = final_signed ? b_.CreateAShr(sum, by) : b_.CreateLShr(sum, by);
  if (mods.has("sat")) sum = to_range(sum, 32, final_signed, final_signed);
  return resize(sum, 32, false);
}

/// The same on the selected halves or bytes of two words. The results that the destination names
/// are added to the last operand, or replace its parts.
llvm::Value* Translator::op_video_packed(const Instruction& i) {
  const Choices mods(i);
  const bool set = i.is(Op::kVideoPackedSet);
  const bool bytes = i.name.back() == '4';
  const auto is_signed = [&](int nth) { return mods.of("u32", nth) == 1; };
  const unsigned count = bytes ? 4 : 2;
  const auto width = static_cast<std::uint8_t>(32 / count);
  const auto parts_of = [&](std::size_t n, std::uint8_t first) {
    Parts parts = i.operands[n].parts;
    if (parts.count == 0) {
      parts = {width, static_cast<std::uint8_t>(count), {}};
      for (std::uint8_t k = 0; k < count; ++k) parts.at[k] = static_cast<std::uint8_t>(first + k);
    }
    const bool descends =
        std::adjacent_find(parts.at.begin(), parts.at.begin() + parts.count,
                           std::greater_equal<>()) == parts.at.begin() + parts.count;
    if (parts.bits != width || i.operands[n].minus ||
        (n == 0 ? !descends || parts.at[parts.count - 1U] >= count : parts.count != count)) {
      bad(i, "unsupported parts of an operand");
    }
    return parts;
  };
  const Parts into = parts_of(0, 0);
  const Parts from_a = parts_of(1, 0);
  const Parts from_b = parts_of(2, static_cast<std::uint8_t>(count));
  if (i.operands[3].parts.count != 0 || i.operands[3].minus ||
      (mods.has("sat") && mods.has("add"))) {
    bad_combination(i);
  }
  Value* both = b_.CreateOr(resize(read(i.operands[1], 32), kWide, false),
                            b_.CreateShl(resize(read(i.operands[2], 32), kWide, false), 32));
  Value* c = read(i.operands[3], 32);
  Value* result = c;
  for (unsigned n = 0; n < into.count; ++n) {
    const unsigned k = into.at[n];
    Value* x = part(both, from_a, k, is_signed(set ? 0 : 1), 32);
    Value* y = part(both, from_b, k, is_signed(set ? 1 : 2), 32);
    Value* one = video_result(i, x, y);
    if (mods.has("sat")) one = to_range(one, width, is_signed(0), true);
    if (mods.has("add")) {
      result = b_.CreateAdd(result, one);
      continue;
    }
    const std::uint64_t field = ((std::uint64_t{1} << width) - 1) << (width * k);
    result = b_.CreateOr(b_.CreateAnd(b_.CreateShl(one, width * k), number(field, 32)),
                         b_.CreateAnd(result, number(~field, 32)));
  }
  return result;
}

}  // namespace braid::cpu
