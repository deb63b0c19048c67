#include "runtime/cpu/translate/defined.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"

namespace braid::cpu {
namespace {

using ptx::DefinedRule;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;
using ptx::Use;

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
    collect_registers(i.operands[source_of_elements(i)], registers);
    return registers;
  }
  for (std::size_t o = 1; o < i.operands.size(); ++o) collect_registers(i.operands[o], registers);
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

/// Whether what it stores is check_stored()'s.
bool is_judged_by_place(const Instruction& i) {
  return (i.is(Op::kSt) || i.is(Op::kStrongSt)) && !ptx::has_modifier(i, "param");
}

bool is_tracked(Emitter& e, int reg) { return e.defined_slots[reg] >= 0; }

bool any_tracked(Emitter& e, const std::vector<int>& registers) {
  return std::ranges::any_of(registers, [&](int r) { return is_tracked(e, r); });
}

Value* defined_pointer(Emitter& e, int reg) {
  return e.register_file(static_cast<std::uint32_t>(e.defined_slots[reg]));
}

/// The lanes where the registers of an operand are defined.
Value* defined(Emitter& e, const Operand& operand) {
  std::vector<int> registers;
  collect_registers(operand, registers);
  Value* lanes = e.ir.getInt32(~0U);
  for (const int reg : registers) {
    if (!is_tracked(e, reg)) continue;
    lanes = e.ir.CreateAnd(lanes, e.ir.CreateLoad(e.ir.getInt32Ty(), defined_pointer(e, reg)));
  }
  return lanes;
}

/// The lanes of `lanes` where the results of an instruction are defined. Generous where a part of
/// an undefined value may not count, so that right code has no finding.
Value* defined_results(Emitter& e, const Instruction& i, Value* lanes) {
  const auto& operands = i.operands;
  Value* all = e.ir.getInt32(~0U);
  if (!any_tracked(e, sources(i)) && !may_leave_group(i)) return all;
  const DefinedRule rule = rule_of(i);
  if (rule == DefinedRule::kSelect) {
    Value* chosen = e.lane_bits(e.read_lanes(operands[3], 1));
    Value* from = e.ir.CreateOr(e.ir.CreateAnd(chosen, defined(e, operands[1])),
                                e.ir.CreateAnd(e.ir.CreateNot(chosen), defined(e, operands[2])));
    return e.ir.CreateAnd(from, defined(e, operands[3]));
  }
  if (rule == DefinedRule::kBitwise) {
    // One side may decide: zeros in an `and`, ones in an `or`.
    const unsigned width = e.register_bits(operands[0].index);
    llvm::Type* type = e.integer(width, false);
    Value* decides =
        i.is(Op::kAnd) ? llvm::Constant::getNullValue(type) : llvm::Constant::getAllOnesValue(type);
    const auto decided = [&](const Operand& side) {
      return e.ir.CreateAnd(defined(e, side),
                            e.lane_bits(e.ir.CreateICmpEQ(e.read_lanes(side, width), decides)));
    };
    return e.ir.CreateOr(e.ir.CreateAnd(defined(e, operands[1]), defined(e, operands[2])),
                         e.ir.CreateOr(decided(operands[1]), decided(operands[2])));
  }
  if (rule == DefinedRule::kParts && operands[1].form == Operand::Form::kVector) {
    // Only a part of it may be used.
    Value* some = e.ir.getInt32(0);
    for (const Operand& element : operands[1].elements)
      some = e.ir.CreateOr(some, defined(e, element));
    return some;
  }
  if (rule == DefinedRule::kShuffle) {
    // As the values go. Where all lanes are named, lanes elsewhere are another check's.
    const int mode = Choices(i).of("up");
    Value* known = may_leave_group(i)
                       ? e.ir.CreateAnd(defined(e, operands[1]), lanes)
                       : e.ir.CreateOr(defined(e, operands[1]), e.ir.CreateNot(lanes));
    e.to_scratch(
        0, e.ir.CreateZExt(e.ir.CreateBitCast(known, e.integer(1, false)), e.integer(32, false)));
    e.to_scratch(2, e.read_lanes(operands[2], 32));
    e.to_scratch(4, e.read_lanes(operands[3], 32));
    e.call("shuffle", {e.scratch(6), e.scratch(0), e.scratch(2), e.scratch(4), mode},
           e.ir.getInt32Ty());
    Value* moved = e.ir.CreateTrunc(e.from_scratch(6, e.integer(32, false)), e.integer(1, false));
    return e.ir.CreateAnd(e.lane_bits(moved),
                          e.ir.CreateAnd(defined(e, operands[2]), defined(e, operands[3])));
  }
  for (std::size_t o = 1; o < operands.size(); ++o)
    all = e.ir.CreateAnd(all, defined(e, operands[o]));
  if (rule != DefinedRule::kGroup) return all;
  // All lanes get what all lanes gave.
  Value* whole = e.ir.CreateICmpEQ(e.ir.CreateAnd(all, lanes), lanes);
  return e.ir.CreateSelect(whole, e.ir.getInt32(~0U), e.ir.getInt32(0));
}

/// Calls `report` in code for lanes where a register of the operand is undefined.
void for_undefined(Emitter& e, const Operand& operand, Value* lanes, std::string_view use,
                   llvm::function_ref<void(Value* bad, Value* message, int reg)> report) {
  std::vector<int> registers;
  collect_registers(operand, registers);
  for (const int reg : registers) {
    if (!is_tracked(e, reg)) continue;
    Value* known = e.ir.CreateLoad(e.ir.getInt32Ty(), defined_pointer(e, reg));
    Value* bad = e.ir.CreateAnd(lanes, e.ir.CreateNot(known));
    const bool own = e.flow.block(0).live_in.has(reg);
    const std::string message =
        fmt::format("{} {}, which {}", use, e.function.registers[reg].name,
                    own ? "the thread did not write"
                        : "comes from a register that the thread did not write, or from a lane "
                          "outside of a shuffle");
    e.split_unlikely(e.ir.CreateIsNotNull(bad),
                     [&] { report(bad, e.ir.CreateGlobalString(message), reg); });
  }
}

constexpr std::string_view kStores = "write of";

}  // namespace

bool is_unread(Emitter& e, const Operand& result) {
  return result.form == Operand::Form::kSink ||
         (result.is_register() && !e.read_registers.has(result.index));
}

void find_undefined(Emitter& e, const std::function<std::uint32_t(std::uint32_t)>& place) {
  e.defined_slots.assign(e.function.registers.size(), -1);
  e.read_registers = BitSet(e.function.registers.size());
  if (!e.instrumentation.checks) return;
  for (const Instruction& i : e.function.body) {
    for (const int reg : register_use(i).reads) e.read_registers.add(reg);
  }
  const auto add = [&](int reg) {
    std::int32_t& slot = e.defined_slots[reg];
    if (slot >= 0) return false;
    slot = static_cast<std::int32_t>(place(4));
    return true;
  };
  bool grew = true;
  for (std::size_t r = 0; r < e.defined_slots.size(); ++r) {
    const int reg = static_cast<int>(r);
    if (e.flow.block(0).live_in.has(reg)) add(reg);
  }
  while (std::exchange(grew, false)) {
    for (const Instruction& i : e.function.body) {
      if (!has_result(i) || (!any_tracked(e, sources(i)) && !may_leave_group(i))) continue;
      for (const int reg : register_use(i).writes) grew = add(reg) || grew;
    }
  }
}

Value* lanes_of_guard(Emitter& e, const Instruction& i) {
  if (i.guard < 0) return e.mask_bits;
  Value* guard = e.load_register(i.guard).value;
  if (i.guard_negated) guard = e.ir.CreateNot(guard);
  if (!guard->getType()->isVectorTy())
    return e.ir.CreateSelect(guard, e.mask_bits, e.ir.getInt32(0));
  return e.ir.CreateAnd(e.mask_bits, e.lane_bits(guard));
}

void check_defined(Emitter& e, const Operand& operand, Value* lanes, std::string_view use) {
  for_undefined(e, operand, lanes, use, [&](Value* bad, Value* message, int reg) {
    e.call("check_defined", {e.context, bad, message, reg, e.line});
  });
}

void check_stored(Emitter& e, const Operand& source, unsigned offset, unsigned bytes) {
  for_undefined(e, source, e.execution_bits(), kStores, [&](Value* bad, Value* message, int reg) {
    e.call("check_stored", {e.context, e.scratch(0), bad, offset, bytes, message, reg, e.line});
  });
}

void track(Emitter& e, const Instruction& i) {
  const RegisterUse use = register_use(i);
  if (!any_tracked(e, use.reads) && !any_tracked(e, use.writes)) return;
  e.line = i.line;
  Value* lanes = lanes_of_guard(e, i);
  if (i.guard >= 0) check_defined(e, Operand::of_register(i.guard), e.mask_bits, "branch on");
  if (i.entry->has_address()) {
    // The addresses are those of as many lanes as there are rows.
    Value* addressing = lanes;
    const bool tall = ptx::has_modifier(i, "m16n16");
    if (ptx::has_modifier(i, "x1")) {
      addressing = e.ir.CreateAnd(lanes, e.ir.getInt32(tall ? 0xffffU : 0xffU));
    }
    if (ptx::has_modifier(i, "x2") && !tall)
      addressing = e.ir.CreateAnd(lanes, e.ir.getInt32(0xffffU));
    for (std::size_t o = 0; o < i.operands.size(); ++o) {
      const Use how = i.entry->operands[o].use;
      if (how == Use::kWritten || how == Use::kUpdated) continue;
      if (how == Use::kRead && is_judged_by_place(i)) continue;
      check_defined(e, i.operands[o], is_address(how) ? addressing : lanes,
                    how == Use::kRead ? kStores : "address from");
    }
  }
  if (!any_tracked(e, use.writes)) return;
  Value* results = defined_results(e, i, lanes);
  const bool by_element = rule_of(i) == DefinedRule::kElements;
  // All are found before one is noted: a result may be the source of another.
  std::vector<std::pair<int, Value*>> noted;
  for (const int reg : use.writes) {
    if (!is_tracked(e, reg)) continue;
    Value* result = by_element ? defined(e, source_of_element(i, reg)) : results;
    Value* before = e.ir.CreateLoad(e.ir.getInt32Ty(), defined_pointer(e, reg));
    noted.emplace_back(reg, e.ir.CreateOr(e.ir.CreateAnd(before, e.ir.CreateNot(lanes)),
                                          e.ir.CreateAnd(result, lanes)));
  }
  for (const auto& [reg, known] : noted) e.ir.CreateStore(known, defined_pointer(e, reg));
}

void track_choice(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.checks || !ptx::is_choice(i)) return;
  if (!i.operands[1].is_register() && !i.operands[2].is_register()) return;
  Value* lanes = lanes_of_guard(e, i);
  const auto where = [&](const Operand& operand, bool is) {
    Value* bits = e.lane_bits(e.read_lanes(operand, 1));
    return e.ir.CreateAnd(lanes, is != operand.negated ? bits : e.ir.CreateNot(bits));
  };
  const bool selects = i.is(Op::kSelp);
  const bool decides = i.is(Op::kAnd);  // where the other operand does not
  Value* first = selects ? where(i.operands[3], true) : where(i.operands[2], decides);
  Value* second = selects ? where(i.operands[3], false) : where(i.operands[1], decides);
  e.call("check_choice", {e.context, first, second, static_cast<int>(i.line)});
}

}  // namespace braid::cpu
