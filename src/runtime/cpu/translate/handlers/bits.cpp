#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {
namespace {

using llvm::Intrinsic::ID;
using ptx::Kind;
using ptx::Space;
using ptx::Type;

/// A number of bits, in 64: of 32 and above it is 32, or wraps.
Value* bit_count(Emitter& e, const Operand& operand, bool wraps) {
  Value* value = e.resize(e.read(operand, 32), 64, false);
  const auto c = [&](std::uint64_t v) { return number_like(value, v); };
  return wraps ? e.ir.CreateAnd(value, c(31)) : e.intrinsic(llvm::Intrinsic::umin, {value, c(32)});
}

/// `count` ones in the low bits of 64.
Value* low_bits(Emitter& e, const Operand& count, bool wraps) {
  Value* size = bit_count(e, count, wraps);
  Value* one = number_like(size, 1);
  return e.ir.CreateSub(e.ir.CreateShl(one, size), one);
}

/// Compares operands 1 and 2; of a packed type their low or high halves.
Value* compare(Emitter& e, const Instruction& i, const Choices& mods, Type type, unsigned half) {
  using P = llvm::CmpInst::Predicate;
  constexpr P kNone = P::BAD_ICMP_PREDICATE;
  // In the order of the table: for floats, signed and unsigned integers.
  static constexpr P kHow[][3] = {{P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},
                                  {P::FCMP_ONE, P::ICMP_NE, P::ICMP_NE},
                                  {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT},
                                  {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
                                  {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT},
                                  {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE},
                                  {kNone, kNone, P::ICMP_ULT},
                                  {kNone, kNone, P::ICMP_ULE},
                                  {kNone, kNone, P::ICMP_UGT},
                                  {kNone, kNone, P::ICMP_UGE},
                                  {P::FCMP_UEQ, kNone, kNone},
                                  {P::FCMP_UNE, kNone, kNone},
                                  {P::FCMP_ULT, kNone, kNone},
                                  {P::FCMP_ULE, kNone, kNone},
                                  {P::FCMP_UGT, kNone, kNone},
                                  {P::FCMP_UGE, kNone, kNone},
                                  {P::FCMP_ORD, kNone, kNone},
                                  {P::FCMP_UNO, kNone, kNone}};
  const P how = kHow[mods.of("eq")][type.is_float() ? 0 : type.is_signed() ? 1 : 2];
  // Bits are equal or not, and nothing else.
  if (how == kNone || (type.kind == Kind::kBits && mods.of("eq") > 1)) bad(i, "unknown comparison");
  if (!type.is_float()) {
    return e.ir.CreateICmp(how, e.read(i.operands[1], type.bits), e.read(i.operands[2], type.bits));
  }
  const auto input = [&](std::size_t n) {
    Value* bits = e.read(i.operands[n], type.total_bits());
    if (half != 0) bits = e.ir.CreateLShr(bits, 16);
    return flush(e, e.bits_to_float(e.resize(bits, type.bits, false), {type.kind, type.bits, 1}),
                 mods.has("ftz"), type);
  };
  return e.ir.CreateFCmp(how, input(1), input(2));
}

/// The result of `set`: all bits or 1.0, in each half for packed operands.
Value* set_of(Emitter& e, const Instruction& i, Type result, llvm::ArrayRef<Value*> truths) {
  const unsigned bits = result.total_bits();
  const bool packed = truths.size() == 2;
  const unsigned part = packed ? 16 : bits;
  std::uint64_t yes = ~0ULL >> (64 - part);
  if (result.is_float()) {
    yes = result.bits == 32 ? 0x3f800000 : result.kind == Kind::kBfloat ? 0x3f80 : 0x3c00;
  }
  if (bits > 32 || (packed ? bits != 32 || (result.is_float() && result.lanes != 2)
                           : result.lanes != 1 || bits < 16)) {
    bad(i, "unsupported result");
  }
  Value* out = llvm::Constant::getNullValue(e.integer(bits, e.on_bases));
  for (unsigned k = 0; k < truths.size(); ++k) {
    llvm::Constant* set = number_like(out, yes << (16 * k));
    out = e.ir.CreateOr(out, e.ir.CreateSelect(truths[k], set, zero_like(out)));
  }
  return out;
}

void move_elements(Emitter& e, const Instruction& i, std::size_t count, unsigned bits) {
  if (i.operands[0].form != Operand::Form::kVector ||
      i.operands[1].form != Operand::Form::kVector) {
    bad(i, "expected two vectors");
  }
  const std::vector<Operand> results = elements_of(i, i.operands[0], count);
  std::vector<Value*> values;
  for (const Operand& element : elements_of(i, i.operands[1], count)) {
    values.push_back(e.read(element, bits));
  }
  for (std::size_t k = 0; k < count; ++k) e.write(results[k], values[k]);
}

/// mov.b128: a pair of 64-bit words to another, from or to four of 32 bits.
void move_pair(Emitter& e, const Instruction& i) {
  const std::vector<Operand>& to = i.operands[0].elements;
  const std::vector<Operand>& from = i.operands[1].elements;
  if (to.size() == from.size() || (to.size() != 4 && from.size() != 4)) {
    return move_elements(e, i, 2, 64);
  }
  if (from.size() == 4) {
    const std::vector<Operand> pair = elements_of(i, i.operands[0], 2);
    for (std::size_t k = 0; k < 2; ++k) {
      Value* low = e.resize(e.read(from[2 * k], 32), 64, false);
      Value* high = e.resize(e.read(from[2 * k + 1], 32), 64, false);
      e.write(pair[k], e.ir.CreateOr(low, e.ir.CreateShl(high, 32)));
    }
    return;
  }
  const std::vector<Operand> pair = elements_of(i, i.operands[1], 2);
  for (std::size_t k = 0; k < 2; ++k) {
    Value* word = e.read(pair[k], 64);
    e.write(to[2 * k], e.resize(word, 32, false));
    e.write(to[2 * k + 1], e.resize(e.ir.CreateLShr(word, 32), 32, false));
  }
}

}  // namespace

Value* op_logic(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  if (type.kind != Kind::kPred && (type.kind != Kind::kBits || type.bits < 16)) bad_combination(i);
  const auto input = [&](std::size_t n) {
    return type.kind == Kind::kPred ? e.read_predicate(i.operands[n])
                                    : e.read(i.operands[n], type.bits);
  };
  Value* a = input(1);
  if (i.is(Op::kNot)) return e.ir.CreateNot(a);
  if (i.is(Op::kCnot)) return e.resize(e.ir.CreateIsNull(a), type.bits, false);
  Value* b = input(2);
  return i.is(Op::kAnd)  ? e.ir.CreateAnd(a, b)
         : i.is(Op::kOr) ? e.ir.CreateOr(a, b)
                         : e.ir.CreateXor(a, b);
}

/// PTX shifts clamp the amount; LLVM's are undefined past the width.
Value* op_shift(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  const unsigned bits = type.bits;
  Value* a = e.read(i.operands[1], bits);
  Value* amount = e.read(i.operands[2], 32);
  const bool left = i.is(Op::kShl);
  Value* limit = number_like(amount, bits - 1);
  Value* over = e.ir.CreateICmpUGT(amount, limit);
  Value* safe = e.resize(e.ir.CreateSelect(over, limit, amount), bits, false);
  if (!left && type.is_signed()) return e.ir.CreateAShr(a, safe);
  Value* shifted = left ? e.ir.CreateShl(a, safe) : e.ir.CreateLShr(a, safe);
  return e.ir.CreateSelect(over, zero_like(a), shifted);
}

Value* op_bit_field(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  const bool insert = i.is(Op::kBfi);
  const unsigned bits = type.bits;
  const auto as_position = [&](const Operand& operand) {
    Value* value = e.read(operand, 32);
    return e.resize(e.ir.CreateAnd(value, number_like(value, 0xff)), bits, false);
  };
  llvm::Type* t = e.integer(bits, e.on_bases);
  Value* width = llvm::ConstantInt::get(t, bits);
  Value* zero = llvm::Constant::getNullValue(t);
  const auto shl = [&](Value* v, Value* by) {
    Value* over = e.ir.CreateICmpUGE(by, width);
    return e.ir.CreateSelect(over, zero, e.ir.CreateShl(v, e.ir.CreateSelect(over, zero, by)));
  };
  const auto lshr = [&](Value* v, Value* by) {
    Value* over = e.ir.CreateICmpUGE(by, width);
    return e.ir.CreateSelect(over, zero, e.ir.CreateLShr(v, e.ir.CreateSelect(over, zero, by)));
  };
  Value* position = as_position(i.operands[insert ? 3 : 2]);
  Value* length = as_position(i.operands[insert ? 4 : 3]);
  Value* ones = e.ir.CreateNot(shl(llvm::Constant::getAllOnesValue(t), length));
  if (insert) {
    Value* field = shl(ones, position);
    Value* from = shl(e.read(i.operands[1], bits), position);
    Value* into = e.read(i.operands[2], bits);
    return e.ir.CreateOr(e.ir.CreateAnd(from, field), e.ir.CreateAnd(into, e.ir.CreateNot(field)));
  }
  Value* a = e.read(i.operands[1], bits);
  Value* result = e.ir.CreateAnd(lshr(a, position), ones);
  if (type.is_signed()) {
    // The sign is the last bit of the field, or of the value when the field reaches beyond it.
    Value* last = e.ir.CreateAdd(position, e.ir.CreateSub(length, llvm::ConstantInt::get(t, 1)));
    last = e.intrinsic(llvm::Intrinsic::umin, {last, llvm::ConstantInt::get(t, bits - 1)});
    Value* sign = e.ir.CreateTrunc(lshr(a, last), e.integer(1, e.on_bases));
    Value* empty = e.ir.CreateICmpEQ(length, zero);
    sign = e.ir.CreateAnd(sign, e.ir.CreateNot(empty));
    // Bits past the end of the value are sign bits, too.
    Value* have = e.ir.CreateSub(width, e.intrinsic(llvm::Intrinsic::umin, {position, width}));
    Value* kept = e.intrinsic(llvm::Intrinsic::umin, {length, have});
    Value* filled = e.ir.CreateOr(result, shl(llvm::Constant::getAllOnesValue(t), kept));
    result = e.ir.CreateSelect(sign, filled, result);
  }
  return result;
}

Value* op_count_bits(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  Value* a = e.read(i.operands[1], type.bits);
  Value* no = e.ir.getFalse();
  if (i.is(Op::kPopc)) return e.resize(e.intrinsic(llvm::Intrinsic::ctpop, {a}), 32, false);
  if (i.is(Op::kBrev)) return e.intrinsic(llvm::Intrinsic::bitreverse, {a});
  if (i.is(Op::kClz)) return e.resize(e.intrinsic(llvm::Intrinsic::ctlz, {a, no}), 32, false);
  if (type.is_signed()) a = e.ir.CreateXor(a, e.ir.CreateAShr(a, type.bits - 1));
  Value* leading = e.resize(e.intrinsic(llvm::Intrinsic::ctlz, {a, no}), 32, false);
  Value* top = number_like(leading, type.bits - 1);
  Value* none = e.ir.CreateIsNull(a);
  Value* found = mods.has("shiftamt") ? leading : e.ir.CreateSub(top, leading);
  return e.ir.CreateSelect(none, ones_like(leading), found);
}

Value* op_find_set(Emitter& e, const Instruction& i) {
  return e.map_lanes("find_set", {e.read(i.operands[1], 32), e.read(i.operands[2], 32),
                                  e.read(i.operands[3], 32)});
}

/// bmsk: `b` ones starting at bit `a`.
Value* op_bit_mask(Emitter& e, const Instruction& i) {
  const bool wraps = Choices(i).has("wrap");
  Value* ones = low_bits(e, i.operands[2], wraps);
  return e.resize(e.ir.CreateShl(ones, bit_count(e, i.operands[1], wraps)), 32, false);
}

/// The low `b` bits of `a`, with the sign or zeros above them.
Value* op_extend(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  Value* a = e.read(i.operands[1], 32);
  Value* field = e.resize(low_bits(e, i.operands[2], mods.has("wrap")), 32, false);
  Value* result = e.ir.CreateAnd(a, field);
  if (mods.has("s32")) {
    Value* zero = zero_like(a);
    Value* sign = e.ir.CreateXor(field, e.ir.CreateLShr(field, 1));
    Value* negative = e.ir.CreateICmpNE(e.ir.CreateAnd(a, sign), zero);
    result = e.ir.CreateOr(result, e.ir.CreateSelect(negative, e.ir.CreateNot(field), zero));
  }
  return result;
}

Value* op_permute(Emitter& e, const Instruction& i) {
  const int mode = Choices(i).of("f4e");
  Value* low = e.resize(e.read(i.operands[1], 32), 64, false);
  Value* high = e.resize(e.read(i.operands[2], 32), 64, false);
  Value* bytes = e.ir.CreateOr(low, e.ir.CreateShl(high, 32));
  Value* selector = e.resize(e.read(i.operands[3], 32), 64, false);
  llvm::Type* t = bytes->getType();
  Value* result = llvm::Constant::getNullValue(t);
  // The modes name byte k of the result by the low bits of the selector.
  Value* control = e.ir.CreateAnd(selector, 3);
  const auto by_mode = [&](unsigned k) {
    Value* constant = llvm::ConstantInt::get(t, k);
    if (mode == 0) return e.ir.CreateAdd(control, constant);
    if (mode == 1) return e.ir.CreateAnd(e.ir.CreateSub(control, constant), 7);
    if (mode == 2) return control;
    if (mode == 3) return e.intrinsic(llvm::Intrinsic::umax, {control, constant});
    if (mode == 4) return e.intrinsic(llvm::Intrinsic::umin, {control, constant});
    Value* upper = e.ir.CreateAnd(control, 1);
    return e.ir.CreateAdd(e.ir.CreateShl(upper, 1), llvm::ConstantInt::get(t, k & 1));
  };
  for (unsigned k = 0; k < 4; ++k) {
    Value* pick = mode >= 0 ? by_mode(k) : e.ir.CreateLShr(selector, 4 * k);
    Value* by = e.ir.CreateShl(e.ir.CreateAnd(pick, 7), 3);
    Value* byte = e.ir.CreateAnd(e.ir.CreateLShr(bytes, by), 0xff);
    Value* replicate = e.ir.CreateIsNotNull(e.ir.CreateAnd(pick, 8));
    Value* sign = e.ir.CreateICmpUGT(byte, number_like(byte, 0x7f));
    Value* filled = e.ir.CreateSelect(sign, number_like(byte, 0xff), zero_like(byte));
    result =
        e.ir.CreateOr(result, e.ir.CreateShl(e.ir.CreateSelect(replicate, filled, byte), 8 * k));
  }
  return e.resize(result, 32, false);
}

Value* op_funnel(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  Value* low = e.resize(e.read(i.operands[1], 32), 64, false);
  Value* high = e.resize(e.read(i.operands[2], 32), 64, false);
  Value* both = e.ir.CreateOr(low, e.ir.CreateShl(high, 32));
  Value* by = e.read(i.operands[3], 32);
  by = mods.has("wrap") ? e.ir.CreateAnd(by, number_like(by, 31))
                        : e.intrinsic(llvm::Intrinsic::umin, {by, number_like(by, 32)});
  by = e.resize(by, 64, false);
  Value* result =
      mods.name() == 0 ? e.ir.CreateLShr(e.ir.CreateShl(both, by), 32) : e.ir.CreateLShr(both, by);
  return e.resize(result, 32, false);
}

Value* op_lop3(Emitter& e, const Instruction& i) {
  Value* in[3] = {e.read(i.operands[1], 32), e.read(i.operands[2], 32), e.read(i.operands[3], 32)};
  Value* result = zero_like(in[0]);
  for (unsigned row = 0; row < 8; ++row) {
    if (((i.operands[4].bits >> row) & 1) == 0) continue;
    Value* term = nullptr;
    for (unsigned k = 0; k < 3; ++k) {
      Value* bit = ((row >> (2 - k)) & 1) != 0 ? in[k] : e.ir.CreateNot(in[k]);
      term = term == nullptr ? bit : e.ir.CreateAnd(term, bit);
    }
    result = e.ir.CreateOr(result, term);
  }
  if (!i.is(Op::kLop3Joined)) return result;
  if (i.operands[0].form != Operand::Form::kPair) bad(i, "expected a register and a predicate");
  Value* some = e.ir.CreateIsNotNull(result);
  Value* other = e.read_predicate(i.operands[5]);
  Value* joined =
      Choices(i).of("and") == 0 ? e.ir.CreateAnd(some, other) : e.ir.CreateOr(some, other);
  return e.with_predicate(i, result, joined);
}

Value* op_select(Emitter& e, const Instruction& i) {
  const unsigned bits = Choices(i).type().total_bits();
  Value* a = e.read(i.operands[1], bits);
  Value* b = e.read(i.operands[2], bits);
  return e.ir.CreateSelect(e.read_predicate(i.operands[3]), a, b);
}

Value* op_select_by_sign(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const unsigned bits = mods.type(0).total_bits();
  const Type test = mods.type(1);
  if (test.bits != 32) bad_combination(i);
  Value* a = e.read(i.operands[1], bits);
  Value* b = e.read(i.operands[2], bits);
  if (test.is_float()) {
    Value* c = flush(e, e.read_float(i.operands[3], test), mods.has("ftz"));
    return e.ir.CreateSelect(e.ir.CreateFCmpOGE(c, zero_like(c)), a, b);
  }
  Value* c = e.read(i.operands[3], 32);
  return e.ir.CreateSelect(e.ir.CreateICmpSGE(c, zero_like(c)), a, b);
}

Value* op_compare(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int combine = mods.of("and");
  const bool to_register = i.is(Op::kSet) || i.is(Op::kSetJoined);
  const Type type = mods.type(to_register ? 1 : 0);
  const bool packed = type.lanes == 2;
  Value* value = compare(e, i, mods, type, 0);
  const auto joined = [&](Value* v) {
    if (combine < 0) return v;
    Value* other = e.read_predicate(i.operands[3]);
    return combine == 0   ? e.ir.CreateAnd(v, other)
           : combine == 1 ? e.ir.CreateOr(v, other)
                          : e.ir.CreateXor(v, other);
  };
  if (to_register) {
    std::vector<Value*> truths{joined(value)};
    if (packed) truths.push_back(joined(compare(e, i, mods, type, 1)));
    return set_of(e, i, mods.type(0), truths);
  }
  Value* first = joined(value);
  if (i.operands[0].form != Operand::Form::kPair) return first;
  Value* second = joined(packed ? compare(e, i, mods, type, 1) : e.ir.CreateNot(value));
  return e.with_predicate(i, first, second);
}

Value* op_move(Emitter& e, const Instruction& i) {
  const Type type = Choices(i).type();
  const Operand& to = i.operands[0];
  const Operand& from = i.operands[1];
  const unsigned bits = type.total_bits();
  if (bits > 64) {
    // A register of 128 bits is a pair.
    move_pair(e, i);
    return nullptr;
  }
  const auto part_bits = [&](const Operand& vector) {
    const std::size_t parts = vector.elements.size();
    if ((parts != 1 && parts != 2 && parts != 4) || bits / parts < 8) bad(i, "bad vector");
    return bits / static_cast<unsigned>(parts);
  };
  if (type.kind == Kind::kPred) return e.read_predicate(from);
  if (from.form == Operand::Form::kVector) {
    const unsigned part = part_bits(from);
    Value* result = nullptr;
    for (std::size_t k = 0; k < from.elements.size(); ++k) {
      Value* piece = e.resize(e.read(from.elements[k], part), bits, false);
      if (k != 0) piece = e.ir.CreateShl(piece, part * k);
      result = result == nullptr ? piece : e.ir.CreateOr(result, piece);
    }
    return result;
  }
  if (to.form != Operand::Form::kVector) return e.read(from, bits);
  const unsigned part = part_bits(to);
  Value* whole = e.read(from, bits);
  for (std::size_t k = 0; k < to.elements.size(); ++k) {
    e.write(to.elements[k], e.resize(e.ir.CreateLShr(whole, part * k), part, false));
  }
  return nullptr;
}

/// All elements are read before any is written.
Value* op_move_vector(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const std::size_t count = mods.has("v2") ? 2 : 4;
  const unsigned bits = mods.type().total_bits();
  if (bits < 16 || bits > 64) bad(i, "expected elements of 16 to 64 bits");
  move_elements(e, i, count, bits);
  return nullptr;
}

Value* op_cvta(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const int space = mods.of("global");
  if (mods.type().bits != 64) bad_combination(i);
  constexpr Space kSpaces[] = {Space::kGlobal, Space::kShared, Space::kShared, Space::kLocal,
                               Space::kConst,  Space::kParam,  Space::kParam,  Space::kShared};
  const Space from = kSpaces[space];
  const bool shared = from == Space::kShared;
  if (i.operands[1].form == Operand::Form::kVariable) {
    const Space home = e.ptx_module.variables[i.operands[1].index].space;
    if (home != from) bad(i, "the variable is in another space");
  }
  Value* value = e.read(i.operands[1], 64);
  if (shared && e.names_blocks && !e.on_bases) return cluster_pointer(e, value, mods.name() == 1);
  if (shared && e.names_blocks && mods.name() == 0) {
    Value* low = e.ir.CreateTrunc(value, e.ir.getInt32Ty());
    return e.call("cluster_address", {e.context, low}, e.ir.getInt64Ty());
  }
  if (shared) {
    Value* window = e.shared_start();
    if (!e.on_bases) window = e.splat(window);
    value = mods.name() == 1 ? e.ir.CreateSub(value, window) : e.ir.CreateAdd(value, window);
  }
  if ((from == Space::kLocal || from == Space::kParam) && mods.name() == 0) {
    // An address of 32 bits, extended.
    Value* low = e.ir.CreateTrunc(value, e.integer(32, e.on_bases));
    Value* high = e.ir.CreateLShr(value, std::uint64_t{32});
    value = e.ir.CreateSelect(e.ir.CreateIsNull(high), whole_address(e, low, from), value);
  }
  return value;
}

Value* op_isspacep(Emitter& e, const Instruction& i) {
  const int space = Choices(i).of("shared::cta");
  Value* value = e.read(i.operands[1], 64);
  const auto inside = [&](Value* start, Value* size) {
    if (!e.on_bases) {
      start = e.splat(start);
      size = e.splat(size);
    }
    return e.ir.CreateICmpULT(e.ir.CreateSub(value, start), size);
  };
  Value* shared =
      inside(e.field(offsetof(WarpContext, shared), 64),
             e.ir.CreateZExt(e.field(offsetof(WarpContext, total_shared), 32), e.ir.getInt64Ty()));
  Value* local = inside(e.field(offsetof(WarpContext, local), 64),
                        e.ir.getInt64(32ULL * e.layout.local_bytes));
  if (space == 2) return local;
  if (space < 2 || space == 7) return shared;
  if (space == 3 || space == 4) {
    Value* constant = zero_like(shared);
    for (std::size_t v = 0; v < e.layout.globals.size(); ++v) {
      const ptx::Variable& variable = e.ptx_module.variables[v];
      if (variable.space != ptx::Space::kConst) continue;
      Value* start = e.ir.CreatePtrToInt(e.layout.globals[v], e.ir.getInt64Ty());
      constant = e.ir.CreateOr(constant, inside(start, e.ir.getInt64(variable.size)));
    }
    return space == 4 ? constant
                      : e.ir.CreateNot(e.ir.CreateOr(e.ir.CreateOr(shared, local), constant));
  }
  return inside(e.field(offsetof(WarpContext, params), 64), e.ir.getInt64(kMaxParameterBytes));
}

}  // namespace braid::cpu
