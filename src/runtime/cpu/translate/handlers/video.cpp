#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/integers.h"

// Video instructions. They compute in whole numbers, for which 64 bits nearly always do.

namespace braid::cpu {
namespace {

constexpr unsigned kWide = 64;
constexpr unsigned kWidest = 128;
using Parts = ptx::Operand::Parts;

Value* number(Emitter& e, std::uint64_t value, unsigned bits) {
  return llvm::ConstantInt::get(e.integer(bits, e.on_bases),
                                llvm::APInt(64, value).zextOrTrunc(bits));
}

/// Operand `n`, or the part of it that is named.
Value* whole_or_part(Emitter& e, const Instruction& i, std::size_t n, bool is_signed,
                     unsigned bits) {
  const Parts& parts = i.operands[n].parts;
  Value* word = e.read(i.operands[n], 32);
  if (parts.count == 0) return e.resize(word, bits, is_signed);
  if (parts.count != 1 || unsigned{parts.bits} * parts.at[0] >= 32) bad(i, "expected one part");
  return part(e, word, parts, 0, is_signed, bits);
}

/// The nearest number of `width` bits. One without a sign is all of its bits.
Value* to_range(Emitter& e, Value* value, unsigned width, bool to_signed, bool from_signed) {
  llvm::Type* type = value->getType();
  const unsigned bits = type->getScalarSizeInBits();
  const llvm::APInt high = to_signed ? llvm::APInt::getSignedMaxValue(width).sext(bits)
                                     : llvm::APInt::getMaxValue(width).zext(bits);
  llvm::Constant* top = llvm::ConstantInt::get(type, high);
  if (!from_signed) return e.intrinsic(llvm::Intrinsic::umin, {value, top});
  const llvm::APInt low =
      to_signed ? llvm::APInt::getSignedMinValue(width).sext(bits) : llvm::APInt::getZero(bits);
  value = e.intrinsic(llvm::Intrinsic::smax, {value, llvm::ConstantInt::get(type, low)});
  return e.intrinsic(llvm::Intrinsic::smin, {value, top});
}

/// The exact result of the named operation on two numbers.
Value* video_result(Emitter& e, const Instruction& i, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  const std::string_view name(i.name);
  const auto begins = [&](std::string_view with) { return name.substr(0, with.size()) == with; };
  if (begins("vadd")) return e.ir.CreateAdd(a, b);
  if (begins("vsub")) return e.ir.CreateSub(a, b);
  if (begins("vabsdiff")) {
    Value* difference = e.ir.CreateSub(a, b);
    return e.intrinsic(llvm::Intrinsic::smax, {difference, e.ir.CreateNeg(difference)});
  }
  if (begins("vmin")) return e.intrinsic(llvm::Intrinsic::smin, {a, b});
  if (begins("vmax")) return e.intrinsic(llvm::Intrinsic::smax, {a, b});
  if (begins("vshl")) return e.ir.CreateShl(a, b);
  if (begins("vshr")) return e.ir.CreateAShr(a, b);
  const unsigned bits = a->getType()->getScalarSizeInBits();
  if (begins("vavrg")) {
    // Halves go away from zero where the sum is above it, and down below.
    Value* sum = e.ir.CreateAdd(a, b);
    Value* above = e.ir.CreateNot(e.ir.CreateLShr(sum, bits - 1));
    return e.ir.CreateAShr(e.ir.CreateAdd(sum, e.ir.CreateAnd(above, number(e, 1, bits))), 1);
  }
  constexpr P kHow[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  return e.resize(e.ir.CreateICmp(kHow[Choices(i).of("eq")], a, b), bits, false);
}

}  // namespace

Value* part(Emitter& e, Value* word, const Parts& parts, unsigned k, bool is_signed,
            unsigned bits) {
  const unsigned from = unsigned{parts.bits} * parts.at[k];
  return e.resize(e.resize(e.ir.CreateLShr(word, from), parts.bits, false), bits, is_signed);
}

/// An operation on words or their parts; then a second one with the last operand, or the result
/// takes the place of a part of it.
Value* op_video(Emitter& e, const Instruction& i) {
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
  Value* a = whole_or_part(e, i, 1, a_signed, kWide);
  Value* b = whole_or_part(e, i, 2, !shift && is_signed(set ? 1 : 2), kWide);
  if (shift) {
    b = mods.has("wrap") ? e.ir.CreateAnd(b, number(e, 31, kWide))
                         : e.intrinsic(llvm::Intrinsic::umin, {b, number(e, 32, kWide)});
  }
  Value* result = video_result(e, i, a, b);
  if (mods.has("sat")) {
    result = to_range(e, result, into.count == 0 ? 32 : into.bits, to_signed, !shift || a_signed);
  }
  if (!third) return e.resize(result, 32, false);
  Value* c = e.read(i.operands[3], 32);
  if (into.count == 0) {
    // Both have 33 bits.
    result = e.resize(e.resize(result, 33, false), kWide, true);
    Value* other = e.resize(c, kWide, to_signed);
    result = second == 0   ? e.ir.CreateAdd(result, other)
             : second == 1 ? e.intrinsic(llvm::Intrinsic::smin, {result, other})
                           : e.intrinsic(llvm::Intrinsic::smax, {result, other});
    return e.resize(result, 32, false);
  }
  const std::uint64_t field = ((std::uint64_t{1} << into.bits) - 1) << (into.bits * into.at[0]);
  result = e.ir.CreateShl(e.resize(result, 32, false), unsigned{into.bits} * into.at[0]);
  return e.ir.CreateOr(e.ir.CreateAnd(result, number(e, field, 32)),
                       e.ir.CreateAnd(c, number(e, ~field, 32)));
}

/// a b + c with signs, shifted down.
Value* op_video_mad(Emitter& e, const Instruction& i) {
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
  Value* product = e.ir.CreateMul(whole_or_part(e, i, 1, a_signed, bits),
                                  whole_or_part(e, i, 2, b_signed, bits));
  Value* c = e.resize(e.read(operands[3], 32), bits, final_signed);
  if (negative) product = e.ir.CreateNeg(product);
  if (operands[3].minus) c = e.ir.CreateNeg(c);
  Value* sum = e.ir.CreateAdd(product, c);
  if (more) sum = e.ir.CreateAdd(sum, number(e, 1, bits));
  const int scale = mods.of("shr7");
  const std::uint64_t by = scale < 0 ? 0 : scale == 0 ? 7 : 15;
  sum = final_signed ? e.ir.CreateAShr(sum, by) : e.ir.CreateLShr(sum, by);
  if (mods.has("sat")) sum = to_range(e, sum, 32, final_signed, final_signed);
  return e.resize(sum, 32, false);
}

/// The same on the selected halves or bytes of two words. The results that the destination names
/// are added to the last operand, or replace its parts.
Value* op_video_packed(Emitter& e, const Instruction& i) {
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
  Value* both =
      e.ir.CreateOr(e.resize(e.read(i.operands[1], 32), kWide, false),
                    e.ir.CreateShl(e.resize(e.read(i.operands[2], 32), kWide, false), 32));
  Value* c = e.read(i.operands[3], 32);
  Value* result = c;
  for (unsigned n = 0; n < into.count; ++n) {
    const unsigned k = into.at[n];
    Value* x = part(e, both, from_a, k, is_signed(set ? 0 : 1), 32);
    Value* y = part(e, both, from_b, k, is_signed(set ? 1 : 2), 32);
    Value* one = video_result(e, i, x, y);
    if (mods.has("sat")) one = to_range(e, one, width, is_signed(0), true);
    if (mods.has("add")) {
      result = e.ir.CreateAdd(result, one);
      continue;
    }
    const std::uint64_t field = ((std::uint64_t{1} << width) - 1) << (width * k);
    result = e.ir.CreateOr(e.ir.CreateAnd(e.ir.CreateShl(one, width * k), number(e, field, 32)),
                           e.ir.CreateAnd(result, number(e, ~field, 32)));
  }
  return result;
}

}  // namespace braid::cpu
