#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using llvm::Intrinsic::ID;
using ptx::Kind;
using ptx::Space;
using ptx::Type;

llvm::Value* Translator::op_logic(const Instruction& i) {
  const Type type = Choices(i).type();
  if (type.kind != Kind::kPred && (type.kind != Kind::kBits || type.bits < 16)) bad_combination(i);
  const auto input = [&](std::size_t n) {
    return type.kind == Kind::kPred ? read_predicate(i.operands[n])
                                    : read(i.operands[n], type.bits);
  };
  Value* a = input(1);
  if (i.is(Op::kNot)) return b_.CreateNot(a);
  if (i.is(Op::kCnot)) return resize(b_.CreateIsNull(a), type.bits, false);
  Value* b = input(2);
  return i.is(Op::kAnd)  ? b_.CreateAnd(a, b)
         : i.is(Op::kOr) ? b_.CreateOr(a, b)
                         : b_.CreateXor(a, b);
}

/// PTX shifts clamp the amount; LLVM's are undefined past the width.
llvm::Value* Translator::op_shift(const Instruction& i) {
  const Type type = Choices(i).type();
  const unsigned bits = type.bits;
  Value* a = read(i.operands[1], bits);
  Value* amount = read(i.operands[2], 32);
  const bool left = i.is(Op::kShl);
  Value* limit = number_like(amount, bits - 1);
  Value* over = b_.CreateICmpUGT(amount, limit);
  Value* safe = resize(b_.CreateSelect(over, limit, amount), bits, false);
  if (!left && type.is_signed()) return b_.CreateAShr(a, safe);
  Value* shifted = left ? b_.CreateShl(a, safe) : b_.CreateLShr(a, safe);
  return b_.CreateSelect(over, zero_like(a), shifted);
}

llvm::Value* Translator::op_bit_field(const Instruction& i) {
  const Type type = Choices(i).type();
  const bool insert = i.is(Op::kBfi);
  const unsigned bits = type.bits;
  const auto as_position = [&](const Operand& operand) {
    Value* value = read(operand, 32);
    return resize(b_.CreateAnd(value, number_like(value, 0xff)), bits, false);
  };
  llvm::Type* t = integer(bits, scalar_);
  Value* width = llvm::ConstantInt::get(t, bits);
  Value* zero = llvm::Constant::getNullValue(t);
  const auto shl = [&](Value* v, Value* by) {
    Value* over = b_.CreateICmpUGE(by, width);
    return b_.CreateSelect(over, zero, b_.CreateShl(v, b_.CreateSelect(over, zero, by)));
  };
  const auto lshr = [&](Value* v, Value* by) {
    Value* over = b_.CreateICmpUGE(by, width);
    return b_.CreateSelect(over, zero, b_.CreateLShr(v, b_.CreateSelect(over, zero, by)));
  };
  Value* position = as_position(i.operands[insert ? 3 : 2]);
  Value* length = as_position(i.operands[insert ? 4 : 3]);
  Value* ones = b_.CreateNot(shl(llvm::Constant::getAllOnesValue(t), length));
  if (insert) {
    Value* field = shl(ones, position);
    Value* from = shl(read(i.operands[1], bits), position);
    Value* into = read(i.operands[2], bits);
    return b_.CreateOr(b_.CreateAnd(from, field), b_.CreateAnd(into, b_.CreateNot(field)));
  }
  Value* a = read(i.operands[1], bits);
  Value* result = b_.CreateAnd(lshr(a, position), ones);
  if (type.is_signed()) {
    // The sign is the last bit of the field, or of the value when the field reaches beyond it.
    Value* last = b_.CreateAdd(position, b_.CreateSub(length, llvm::ConstantInt::get(t, 1)));
    last = intrinsic(llvm::Intrinsic::umin, {last, llvm::ConstantInt::get(t, bits - 1)});
    Value* sign = b_.CreateTrunc(lshr(a, last), integer(1, scalar_));
    Value* empty = b_.CreateICmpEQ(length, zero);
    sign = b_.CreateAnd(sign, b_.CreateNot(empty));
    // Bits past the end of the value are sign bits, too.
    Value* have = b_.CreateSub(width, intrinsic(llvm::Intrinsic::umin, {position, width}));
    Value* kept = intrinsic(llvm::Intrinsic::umin, {length, have});
    Value* filled = b_.CreateOr(result, shl(llvm::Constant::getAllOnesValue(t), kept));
    result = b_.CreateSelect(sign, filled, result);
  }
  return result;
}

llvm::Value* Translator::op_count_bits(const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  if (type.bits < 32) bad_combination(i);
  Value* a = read(i.operands[1], type.bits);
  Value* no = b_.getFalse();
  if (i.is(Op::kPopc)) return resize(intrinsic(llvm::Intrinsic::ctpop, {a}), 32, false);
  if (i.is(Op::kBrev)) return intrinsic(llvm::Intrinsic::bitreverse, {a});
  if (i.is(Op::kClz)) return resize(intrinsic(llvm::Intrinsic::ctlz, {a, no}), 32, false);
  if (type.is_signed()) a = b_.CreateXor(a, b_.CreateAShr(a, type.bits - 1));
  Value* leading = resize(intrinsic(llvm::Intrinsic::ctlz, {a, no}), 32, false);
  Value* top = number_like(leading, type.bits - 1);
  Value* none = b_.CreateIsNull(a);
  Value* found = mods.has("shiftamt") ? leading : b_.CreateSub(top, leading);
  return b_.CreateSelect(none, ones_like(leading), found);
}

llvm::Value* Translator::op_find_set(const Instruction& i) {
  return map_lanes("find_set",
                   {read(i.operands[1], 32), read(i.operands[2], 32), read(i.operands[3], 32)});
}

/// A number of bits, in 64: of 32 and above it is 32, or wraps.
llvm::Value* Translator::bit_count(const Operand& operand, bool wraps) {
  Value* value = resize(read(operand, 32), 64, false);
  const auto c = [&](std::uint64_t v) { return number_like(value, v); };
  return wraps ? b_.CreateAnd(value, c(31)) : intrinsic(llvm::Intrinsic::umin, {value, c(32)});
}

/// `count` ones in the low bits of 64.
llvm::Value* Translator::low_bits(const Operand& count, bool wraps) {
  Value* size = bit_count(count, wraps);
  Value* one = number_like(size, 1);
  return b_.CreateSub(b_.CreateShl(one, size), one);
}

/// bmsk: `b` ones starting at bit `a`.
llvm::Value* Translator::op_bit_mask(const Instruction& i) {
  const bool wraps = Choices(i).has("wrap");
  Value* ones = low_bits(i.operands[2], wraps);
  return resize(b_.CreateShl(ones, bit_count(i.operands[1], wraps)), 32, false);
}

/// The low `b` bits of `a`, with the sign or zeros above them.
llvm::Value* Translator::op_extend(const Instruction& i) {
  const Choices mods(i);
  Value* a = read(i.operands[1], 32);
  Value* field = resize(low_bits(i.operands[2], mods.has("wrap")), 32, false);
  Value* result = b_.CreateAnd(a, field);
  if (mods.has("s32")) {
    Value* zero = zero_like(a);
    Value* sign = b_.CreateXor(field, b_.CreateLShr(field, 1));
    Value* negative = b_.CreateICmpNE(b_.CreateAnd(a, sign), zero);
    result = b_.CreateOr(result, b_.CreateSelect(negative, b_.CreateNot(field), zero));
  }
  return result;
}

llvm::Value* Translator::op_permute(const Instruction& i) {
  const int mode = Choices(i).of("f4e");
  Value* low = resize(read(i.operands[1], 32), 64, false);
  Value* high = resize(read(i.operands[2], 32), 64, false);
  Value* bytes = b_.CreateOr(low, b_.CreateShl(high, 32));
  Value* selector = resize(read(i.operands[3], 32), 64, false);
  llvm::Type* t = bytes->getType();
  Value* result = llvm::Constant::getNullValue(t);
  // The modes name byte k of the result by the low bits of the selector.
  Value* control = b_.CreateAnd(selector, 3);
  const auto by_mode = [&](unsigned k) {
    Value* constant = llvm::ConstantInt::get(t, k);
    if (mode == 0) return b_.CreateAdd(control, constant);
    if (mode == 1) return b_.CreateAnd(b_.CreateSub(control, constant), 7);
    if (mode == 2) return control;
    if (mode == 3) return intrinsic(llvm::Intrinsic::umax, {control, constant});
    if (mode == 4) return intrinsic(llvm::Intrinsic::umin, {control, constant});
    Value* upper = b_.CreateAnd(control, 1);
    return b_.CreateAdd(b_.CreateShl(upper, 1), llvm::ConstantInt::get(t, k & 1));
  };
  for (unsigned k = 0; k < 4; ++k) {
    Value* pick = mode >= 0 ? by_mode(k) : b_.CreateLShr(selector, 4 * k);
    Value* by = b_.CreateShl(b_.CreateAnd(pick, 7), 3);
    Value* byte = b_.CreateAnd(b_.CreateLShr(bytes, by), 0xff);
    Value* replicate = b_.CreateIsNotNull(b_.CreateAnd(pick, 8));
    Value* sign = b_.CreateICmpUGT(byte, number_like(byte, 0x7f));
    Value* filled = b_.CreateSelect(sign, number_like(byte, 0xff), zero_like(byte));
    result = b_.CreateOr(result, b_.CreateShl(b_.CreateSelect(replicate, filled, byte), 8 * k));
  }
  return resize(result, 32, false);
}

llvm::Value* Translator::op_funnel(const Instruction& i) {
  const Choices mods(i);
  Value* low = resize(read(i.operands[1], 32), 64, false);
  Value* high = resize(read(i.operands[2], 32), 64, false);
  Value* both = b_.CreateOr(low, b_.CreateShl(high, 32));
  Value* by = read(i.operands[3], 32);
  by = mods.has("wrap") ? b_.CreateAnd(by, number_like(by, 31))
                        : intrinsic(llvm::Intrinsic::umin, {by, number_like(by, 32)});
  by = resize(by, 64, false);
  Value* result =
      mods.name() == 0 ? b_.CreateLShr(b_.CreateShl(both, by), 32) : b_.CreateLShr(both, by);
  return resize(result, 32, false);
}

llvm::Value* Translator::op_lop3(const Instruction& i) {
  Value* in[3] = {read(i.operands[1], 32), read(i.operands[2], 32), read(i.operands[3], 32)};
  Value* result = zero_like(in[0]);
  for (unsigned row = 0; row < 8; ++row) {
    if (((i.operands[4].bits >> row) & 1) == 0) continue;
    Value* term = nullptr;
    for (unsigned k = 0; k < 3; ++k) {
      Value* bit = ((row >> (2 - k)) & 1) != 0 ? in[k] : b_.CreateNot(in[k]);
      term = term == nullptr ? bit : b_.CreateAnd(term, bit);
    }
    result = b_.CreateOr(result, term);
  }
  if (!i.is(Op::kLop3Joined)) return result;
  if (i.operands[0].form != Operand::Form::kPair) bad(i, "expected a register and a predicate");
  Value* some = b_.CreateIsNotNull(result);
  Value* other = read_predicate(i.operands[5]);
  Value* joined = Choices(i).of("and") == 0 ? b_.CreateAnd(some, other) : b_.CreateOr(some, other);
  return with_predicate(i, result, joined);
}

llvm::Value* Translator::op_select(const Instruction& i) {
  const unsigned bits = Choices(i).type().total_bits();
  Value* a = read(i.operands[1], bits);
  Value* b = read(i.operands[2], bits);
  return b_.CreateSelect(read_predicate(i.operands[3]), a, b);
}

llvm::Value* Translator::op_select_by_sign(const Instruction& i) {
  const Choices mods(i);
  const unsigned bits = mods.type(0).total_bits();
  const Type test = mods.type(1);
  if (test.bits != 32) bad_combination(i);
  Value* a = read(i.operands[1], bits);
  Value* b = read(i.operands[2], bits);
  if (test.is_float()) {
    Value* c = flush(read_float(i.operands[3], test), mods.has("ftz"));
    return b_.CreateSelect(b_.CreateFCmpOGE(c, zero_like(c)), a, b);
  }
  Value* c = read(i.operands[3], 32);
  return b_.CreateSelect(b_.CreateICmpSGE(c, zero_like(c)), a, b);
}

/// Compares operands 1 and 2; of a packed type their low or high halves.
llvm::Value* Translator::compare(const Instruction& i, const Choices& mods, Type type,
                                 unsigned half) {
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
    return b_.CreateICmp(how, read(i.operands[1], type.bits), read(i.operands[2], type.bits));
  }
  const auto input = [&](std::size_t n) {
    Value* bits = read(i.operands[n], type.total_bits());
    if (half != 0) bits = b_.CreateLShr(bits, 16);
    return flush(bits_to_float(resize(bits, type.bits, false), {type.kind, type.bits, 1}),
                 mods.has("ftz"), type);
  };
  return b_.CreateFCmp(how, input(1), input(2));
}

/// The result of `set`: all bits or 1.0, in each half for packed operands.
llvm::Value* Translator::set_of(const Instruction& i, Type result, llvm::ArrayRef<Value*> truths) {
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
  Value* out = llvm::Constant::getNullValue(integer(bits, scalar_));
  for (unsigned k = 0; k < truths.size(); ++k) {
    llvm::Constant* set = number_like(out, yes << (16 * k));
    out = b_.CreateOr(out, b_.CreateSelect(truths[k], set, zero_like(out)));
  }
  return out;
}

llvm::Value* Translator::op_compare(const Instruction& i) {
  const Choices mods(i);
  const int combine = mods.of("and");
  const bool to_register = i.is(Op::kSet) || i.is(Op::kSetJoined);
  const Type type = mods.type(to_register ? 1 : 0);
  const bool packed = type.lanes == 2;
  Value* value = compare(i, mods, type, 0);
  const auto joined = [&](Value* v) {
    if (combine < 0) return v;
    Value* other = read_predicate(i.operands[3]);
    return combine == 0   ? b_.CreateAnd(v, other)
           : combine == 1 ? b_.CreateOr(v, other)
                          : b_.CreateXor(v, other);
  };
  if (to_register) {
    std::vector<Value*> truths{joined(value)};
    if (packed) truths.push_back(joined(compare(i, mods, type, 1)));
    return set_of(i, mods.type(0), truths);
  }
  Value* first = joined(value);
  if (i.operands[0].form != Operand::Form::kPair) return first;
  Value* second = joined(packed ? compare(i, mods, type, 1) : b_.CreateNot(value));
  return with_predicate(i, first, second);
}

llvm::Value* Translator::op_move(const Instruction& i) {
  const Type type = Choices(i).type();
  const Operand& to = i.operands[0];
  const Operand& from = i.operands[1];
  const unsigned bits = type.total_bits();
  if (bits > 64) {
    // A register of 128 bits is a pair.
    move_pair(i);
    return nullptr;
  }
  const auto part_bits = [&](const Operand& vector) {
    const std::size_t parts = vector.elements.size();
    if ((parts != 1 && parts != 2 && parts != 4) || bits / parts < 8) bad(i, "bad vector");
    return bits / static_cast<unsigned>(parts);
  };
  if (type.kind == Kind::kPred) return read_predicate(from);
  if (from.form == Operand::Form::kVector) {
    const unsigned part = part_bits(from);
    Value* result = nullptr;
    for (std::size_t k = 0; k < from.elements.size(); ++k) {
      Value* piece = resize(read(from.elements[k], part), bits, false);
      if (k != 0) piece = b_.CreateShl(piece, part * k);
      result = result == nullptr ? piece : b_.CreateOr(result, piece);
    }
    return result;
  }
  if (to.form != Operand::Form::kVector) return read(from, bits);
  const unsigned part = part_bits(to);
  Value* whole = read(from, bits);
  for (std::size_t k = 0; k < to.elements.size(); ++k) {
    write(to.elements[k], resize(b_.CreateLShr(whole, part * k), part, false));
  }
  return nullptr;
}

/// mov.b128: a pair of 64-bit words to another, from or to four of 32 bits.
void Translator::move_pair(const Instruction& i) {
  const std::vector<Operand>& to = i.operands[0].elements;
  const std::vector<Operand>& from = i.operands[1].elements;
  if (to.size() == from.size() || (to.size() != 4 && from.size() != 4)) {
    return move_elements(i, 2, 64);
  }
  if (from.size() == 4) {
    const std::vector<Operand> pair = elements_of(i, i.operands[0], 2);
    for (std::size_t k = 0; k < 2; ++k) {
      Value* low = resize(read(from[2 * k], 32), 64, false);
      Value* high = resize(read(from[2 * k + 1], 32), 64, false);
      write(pair[k], b_.CreateOr(low, b_.CreateShl(high, 32)));
    }
    return;
  }
  const std::vector<Operand> pair = elements_of(i, i.operands[1], 2);
  for (std::size_t k = 0; k < 2; ++k) {
    Value* word = read(pair[k], 64);
    write(to[2 * k], resize(word, 32, false));
    write(to[2 * k + 1], resize(b_.CreateLShr(word, 32), 32, false));
  }
}

/// All elements are read before any is written.
void Translator::op_move_vector(const Instruction& i) {
  const Choices mods(i);
  const std::size_t count = mods.has("v2") ? 2 : 4;
  const unsigned bits = mods.type().total_bits();
  if (bits < 16 || bits > 64) bad(i, "expected elements of 16 to 64 bits");
  move_elements(i, count, bits);
}

void Translator::move_elements(const Instruction& i, std::size_t count, unsigned bits) {
  if (i.operands[0].form != Operand::Form::kVector ||
      i.operands[1].form != Operand::Form::kVector) {
    bad(i, "expected two vectors");
  }
  const std::vector<Operand> results = elements_of(i, i.operands[0], count);
  std::vector<Value*> values;
  for (const Operand& element : elements_of(i, i.operands[1], count)) {
    values.push_back(read(element, bits));
  }
  for (std::size_t k = 0; k < count; ++k) write(results[k], values[k]);
}

llvm::Value* Translator::op_cvta(const Instruction& i) {
  const Choices mods(i);
  const int space = mods.of("global");
  if (mods.type().bits != 64) bad_combination(i);
  constexpr Space kSpaces[] = {Space::kGlobal, Space::kShared, Space::kShared, Space::kLocal,
                               Space::kConst,  Space::kParam,  Space::kParam,  Space::kShared};
  const Space from = kSpaces[space];
  const bool shared = from == Space::kShared;
  if (i.operands[1].form == Operand::Form::kVariable) {
    const Space home = module_.variables[i.operands[1].index].space;
    if (home != from) bad(i, "the variable is in another space");
  }
  Value* value = read(i.operands[1], 64);
  if (shared && !scalar_ && maps_addresses()) return cluster_pointer(value, mods.name() == 1);
  if (shared) {
    Value* window = field(offsetof(WarpContext, shared), 64);
    if (!scalar_) window = splat(window);
    value = mods.name() == 1 ? b_.CreateSub(value, window) : b_.CreateAdd(value, window);
  }
  if ((from == Space::kLocal || from == Space::kParam) && mods.name() == 0) {
    // An address of 32 bits, extended.
    Value* low = b_.CreateTrunc(value, integer(32, scalar_));
    Value* high = b_.CreateLShr(value, std::uint64_t{32});
    value = b_.CreateSelect(b_.CreateIsNull(high), whole_address(low, from), value);
  }
  return value;
}

llvm::Value* Translator::op_isspacep(const Instruction& i) {
  const int space = Choices(i).of("shared::cta");
  Value* value = read(i.operands[1], 64);
  const auto inside = [&](Value* start, Value* size) {
    if (!scalar_) {
      start = splat(start);
      size = splat(size);
    }
    return b_.CreateICmpULT(b_.CreateSub(value, start), size);
  };
  Value* shared =
      inside(field(offsetof(WarpContext, shared), 64),
             b_.CreateZExt(field(offsetof(WarpContext, total_shared), 32), b_.getInt64Ty()));
  Value* local =
      inside(field(offsetof(WarpContext, local), 64), b_.getInt64(32ULL * layout_.local_bytes));
  if (space == 2) return local;
  if (space < 2 || space == 7) return shared;
  if (space == 3 || space == 4) {
    Value* constant = zero_like(shared);
    for (std::size_t v = 0; v < layout_.globals.size(); ++v) {
      const ptx::Variable& variable = module_.variables[v];
      if (variable.space != ptx::Space::kConst) continue;
      Value* start = b_.CreatePtrToInt(layout_.globals[v], b_.getInt64Ty());
      constant = b_.CreateOr(constant, inside(start, b_.getInt64(variable.size)));
    }
    return space == 4 ? constant : b_.CreateNot(b_.CreateOr(b_.CreateOr(shared, local), constant));
  }
  return inside(field(offsetof(WarpContext, params), 64), b_.getInt64(kMaxParameterBytes));
}

}  // namespace braid::cpu
