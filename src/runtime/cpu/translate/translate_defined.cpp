#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {
namespace {

using ptx::DefinedRule;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;
using ptx::Use;

void collect(const Operand& operand, std::vector<int>& out) {
  if (operand.is_register()) out.push_back(operand.index);
  for (const Operand& element : operand.elements) collect(element, out);
}

DefinedRule rule_of(const Instruction& i) { return ptx::traits(i).defined; }

/// The operand from whose elements those of the result come: the last, or C of a matrix product.
std::size_t source_of_elements(const Instruction& i) {
  return std::min<std::size_t>(i.operands.size() - 1, 3);
}

/// The registers that the results of an instruction are computed from. Results from memory, and
/// those of a matrix product but for its addend, count as defined.
std::vector<int> sources(const Instruction& i) {
  std::vector<int> registers;
  if (rule_of(i) == DefinedRule::kAlways || i.operands.empty()) return {};
  if (rule_of(i) == DefinedRule::kElements) {
    collect(i.operands[source_of_elements(i)], registers);
    return registers;
  }
  for (std::size_t o = 1; o < i.operands.size(); ++o) collect(i.operands[o], registers);
  return registers;
}

/// The operand that an element of the results comes from.
const Operand& source_of_element(const Instruction& i, int reg) {
  const Operand& source = i.operands[source_of_elements(i)];
  const auto& results = i.operands[0].elements;
  const auto it = std::ranges::find_if(results, [&](const Operand& element) {
    return element.is_register() && element.index == reg;
  });
  const auto k = static_cast<std::size_t>(it - results.begin());
  return k < source.elements.size() ? source.elements[k] : source;
}

/// Whether a lane may get the value of one that does not take part.
bool may_leave_group(const Instruction& i) {
  if (!i.is(Op::kShflSync)) return false;
  const Operand& members = i.operands[4];
  return members.form != Operand::Form::kInteger || static_cast<std::uint32_t>(members.bits) != ~0U;
}

}  // namespace

bool Translator::is_unread(const Operand& result) const {
  return result.form == Operand::Form::kSink || (result.is_register() && !read_.has(result.index));
}

/// Finds the registers that a thread may read before it wrote them, which are those that live on
/// entry, those that lanes outside of a shuffle give, and those computed from them; gives each a
/// word with the lanes where it is defined.
void Translator::find_undefined(const std::function<std::uint32_t(std::uint32_t)>& place) {
  defined_slots_.assign(function_.registers.size(), -1);
  read_ = BitSet(function_.registers.size());
  if (!instrumentation_.checks) return;
  for (const Instruction& i : function_.body) {
    for (const int reg : register_use(i).reads) read_.add(reg);
  }
  const auto track = [&](int reg) {
    std::int32_t& slot = defined_slots_[reg];
    if (slot >= 0) return false;
    slot = static_cast<std::int32_t>(place(4));
    return true;
  };
  bool grew = true;
  for (std::size_t r = 0; r < defined_slots_.size(); ++r) {
    const int reg = static_cast<int>(r);
    if (flow_.block(0).live_in.has(reg)) track(reg);
  }
  while (std::exchange(grew, false)) {
    for (const Instruction& i : function_.body) {
      if (!has_result(i) || (!any_tracked(sources(i)) && !may_leave_group(i))) continue;
      for (const int reg : register_use(i).writes) grew = track(reg) || grew;
    }
  }
}

bool Translator::is_tracked(int reg) const { return defined_slots_[reg] >= 0; }

bool Translator::any_tracked(const std::vector<int>& registers) const {
  return std::ranges::any_of(registers, [&](int r) { return is_tracked(r); });
}

llvm::Value* Translator::defined_pointer(int reg) {
  return register_file(static_cast<std::uint32_t>(defined_slots_[reg]));
}

/// The lanes where the registers of an operand are defined.
llvm::Value* Translator::defined(const Operand& operand) {
  std::vector<int> registers;
  collect(operand, registers);
  Value* lanes = b_.getInt32(~0U);
  for (const int reg : registers) {
    if (!is_tracked(reg)) continue;
    lanes = b_.CreateAnd(lanes, b_.CreateLoad(b_.getInt32Ty(), defined_pointer(reg)));
  }
  return lanes;
}

/// The lanes that run the instruction, of those of the current block.
llvm::Value* Translator::lanes_of_guard(const Instruction& i) {
  if (i.guard < 0) return mask_bits_;
  Value* guard = load_register(i.guard).value;
  if (i.guard_negated) guard = b_.CreateNot(guard);
  if (!guard->getType()->isVectorTy()) return b_.CreateSelect(guard, mask_bits_, b_.getInt32(0));
  return b_.CreateAnd(mask_bits_, lane_bits(guard));
}

/// Tells the sanitizer of those of `lanes` where a register of the operand is undefined.
void Translator::check_defined(const Operand& operand, Value* lanes, std::string_view use) {
  std::vector<int> registers;
  collect(operand, registers);
  for (const int reg : registers) {
    if (!is_tracked(reg)) continue;
    Value* known = b_.CreateLoad(b_.getInt32Ty(), defined_pointer(reg));
    Value* bad = b_.CreateAnd(lanes, b_.CreateNot(known));
    const bool own = flow_.block(0).live_in.has(reg);
    const std::string message =
        fmt::format("{} {}, which {}", use, function_.registers[reg].name,
                    own ? "the thread did not write"
                        : "comes from a register that the thread did not write, or from a lane "
                          "outside of a shuffle");
    split_unlikely(b_.CreateIsNotNull(bad), [&] {
      call("check_defined", {context_, bad, b_.CreateGlobalString(message), reg, line_});
    });
  }
}

/// Checks what an instruction that is emitted next reads for a branch, an address or a store, and
/// notes where its results are defined.
void Translator::track(const Instruction& i) {
  const RegisterUse use = register_use(i);
  if (!any_tracked(use.reads) && !any_tracked(use.writes)) return;
  line_ = i.line;
  Value* lanes = lanes_of_guard(i);
  if (i.guard >= 0) check_defined(Operand::of_register(i.guard), mask_bits_, "branch on");
  if (i.entry->has_address()) {
    // The addresses are those of as many lanes as there are rows.
    Value* addressing = lanes;
    const bool tall = ptx::has_modifier(i, "m16n16");
    if (ptx::has_modifier(i, "x1")) {
      addressing = b_.CreateAnd(lanes, b_.getInt32(tall ? 0xffffU : 0xffU));
    }
    if (ptx::has_modifier(i, "x2") && !tall) addressing = b_.CreateAnd(lanes, b_.getInt32(0xffffU));
    for (std::size_t o = 0; o < i.operands.size(); ++o) {
      const Use how = i.entry->operands[o].use;
      if (how == Use::kWritten || how == Use::kUpdated) continue;
      check_defined(i.operands[o], is_address(how) ? addressing : lanes,
                    how == Use::kRead ? "write of" : "address from");
    }
  }
  if (!any_tracked(use.writes)) return;
  Value* results = defined_results(i, lanes);
  const bool by_element = rule_of(i) == DefinedRule::kElements;
  // All are found before one is noted: a result may be the source of another.
  std::vector<std::pair<int, Value*>> noted;
  for (const int reg : use.writes) {
    if (!is_tracked(reg)) continue;
    Value* result = by_element ? defined(source_of_element(i, reg)) : results;
    Value* before = b_.CreateLoad(b_.getInt32Ty(), defined_pointer(reg));
    noted.emplace_back(
        reg, b_.CreateOr(b_.CreateAnd(before, b_.CreateNot(lanes)), b_.CreateAnd(result, lanes)));
  }
  for (const auto& [reg, known] : noted) b_.CreateStore(known, defined_pointer(reg));
}

/// Tells the sanitizer in which lanes each value that ptx::is_choice() names counts.
void Translator::track_choice(const Instruction& i) {
  if (!instrumentation_.checks || !ptx::is_choice(i)) return;
  if (!i.operands[1].is_register() && !i.operands[2].is_register()) return;
  Value* lanes = lanes_of_guard(i);
  const auto where = [&](const Operand& operand, bool is) {
    Value* bits = lane_bits(read_lanes(operand, 1));
    return b_.CreateAnd(lanes, is != operand.negated ? bits : b_.CreateNot(bits));
  };
  const bool selects = i.is(Op::kSelp);
  const bool decides = i.is(Op::kAnd);  // where the other operand does not
  Value* first = selects ? where(i.operands[3], true) : where(i.operands[2], decides);
  Value* second = selects ? where(i.operands[3], false) : where(i.operands[1], decides);
  call("check_choice", {context_, first, second, static_cast<int>(i.line)});
}

/// The lanes of `lanes` where the results of an instruction are defined. Generous where a part of
/// an undefined value may not count, so that right code has no finding.
llvm::Value* Translator::defined_results(const Instruction& i, Value* lanes) {
  const auto& operands = i.operands;
  Value* all = b_.getInt32(~0U);
  if (!any_tracked(sources(i)) && !may_leave_group(i)) return all;
  const DefinedRule rule = rule_of(i);
  if (rule == DefinedRule::kSelect) {
    Value* chosen = lane_bits(read_lanes(operands[3], 1));
    Value* from = b_.CreateOr(b_.CreateAnd(chosen, defined(operands[1])),
                              b_.CreateAnd(b_.CreateNot(chosen), defined(operands[2])));
    return b_.CreateAnd(from, defined(operands[3]));
  }
  if (rule == DefinedRule::kBitwise) {
    // One side may decide: zeros in an `and`, ones in an `or`.
    const unsigned width = register_bits(operands[0].index);
    llvm::Type* type = integer(width, false);
    Value* decides =
        i.is(Op::kAnd) ? llvm::Constant::getNullValue(type) : llvm::Constant::getAllOnesValue(type);
    const auto decided = [&](const Operand& side) {
      return b_.CreateAnd(defined(side),
                          lane_bits(b_.CreateICmpEQ(read_lanes(side, width), decides)));
    };
    return b_.CreateOr(b_.CreateAnd(defined(operands[1]), defined(operands[2])),
                       b_.CreateOr(decided(operands[1]), decided(operands[2])));
  }
  if (rule == DefinedRule::kParts && operands[1].form == Operand::Form::kVector) {
    // Only a part of it may be used.
    Value* some = b_.getInt32(0);
    for (const Operand& element : operands[1].elements) some = b_.CreateOr(some, defined(element));
    return some;
  }
  if (rule == DefinedRule::kShuffle) {
    // As the values go. Where all lanes are named, lanes elsewhere are another check's.
    const int mode = Choices(i).of("up");
    Value* known = may_leave_group(i) ? b_.CreateAnd(defined(operands[1]), lanes)
                                      : b_.CreateOr(defined(operands[1]), b_.CreateNot(lanes));
    to_scratch(0, b_.CreateZExt(b_.CreateBitCast(known, integer(1, false)), integer(32, false)));
    to_scratch(2, read_lanes(operands[2], 32));
    to_scratch(4, read_lanes(operands[3], 32));
    call("shuffle", {scratch(6), scratch(0), scratch(2), scratch(4), mode}, b_.getInt32Ty());
    Value* moved = b_.CreateTrunc(from_scratch(6, integer(32, false)), integer(1, false));
    return b_.CreateAnd(lane_bits(moved), b_.CreateAnd(defined(operands[2]), defined(operands[3])));
  }
  for (std::size_t o = 1; o < operands.size(); ++o) all = b_.CreateAnd(all, defined(operands[o]));
  if (rule != DefinedRule::kGroup) return all;
  // All lanes get what all lanes gave.
  Value* whole = b_.CreateICmpEQ(b_.CreateAnd(all, lanes), lanes);
  return b_.CreateSelect(whole, b_.getInt32(~0U), b_.getInt32(0));
}

}  // namespace braid::cpu
