#include "runtime/cpu/check/joined_instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/cpu/ptx/opcodes.h"

namespace braid::cpu {
namespace {

/// Kinds of instructions that can be merged into, or absorb, another one.
enum class Kind : std::uint8_t { kOther, kProduct, kShift, kSum, kBits, kTest, kWiden, kAccess };

Kind kind_of(const ptx::Instruction& instruction) {
  const std::string_view name = instruction.name;
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  if (is({"ld", "st", "red", "ldmatrix", "stmatrix"})) return Kind::kAccess;
  if (instruction.is(ptx::Op::kCpAsync)) return Kind::kAccess;
  if (name == "setp") return Kind::kTest;
  const auto type = instruction.type();
  if (!type || type->is_float() || instruction.guard >= 0) return Kind::kOther;
  if (is({"mul", "mad"})) return Kind::kProduct;
  if (is({"shl", "shr"})) return Kind::kShift;
  if (is({"add", "sub"})) return Kind::kSum;
  if (is({"and", "or", "xor", "not"})) return Kind::kBits;
  return name == "cvt" ? Kind::kWiden : Kind::kOther;
}

bool adds_constant(const ptx::Instruction& instruction) {
  return kind_of(instruction) == Kind::kSum &&
         instruction.operands.back().form == ptx::Operand::Form::kInteger;
}

bool takes_in(Kind user, const ptx::Instruction& giver) {
  const Kind kind = kind_of(giver);
  switch (user) {
    case Kind::kSum:
      return kind == Kind::kProduct || kind == Kind::kShift || kind == Kind::kSum;
    case Kind::kBits:
      return kind == Kind::kBits || kind == Kind::kTest;
    case Kind::kProduct:
    case Kind::kShift:
      return kind == Kind::kWiden;
    case Kind::kAccess:
      return adds_constant(giver);
    default:
      return false;
  }
}

bool computes(const ptx::Instruction& instruction) {
  const auto unit = ptx::traits(instruction).unit;
  return !unit || *unit == InstructionClass::kConvert || *unit == InstructionClass::kMove;
}

/// What an instruction computes, with `same` in place of registers; empty where others of that text
/// may compute something else.
std::string computation(const ptx::Instruction& instruction,
                        const std::unordered_map<int, int>& same) {
  const auto& operands = instruction.operands;
  if (!computes(instruction) || instruction.guard >= 0 || operands.empty() ||
      !operands[0].is_register()) {
    return "";
  }
  std::string text = instruction.full_name();
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const ptx::Operand& operand = operands[i];
    using Form = ptx::Operand::Form;
    const bool is_plain = operand.is_register() || operand.form == Form::kInteger ||
                          operand.form == Form::kFloat32 || operand.form == Form::kFloat64;
    if (!is_plain || operand.negated || operand.minus || operand.parts.count != 0) return "";
    const auto known = same.find(operand.index);
    text += operand.is_register()
                ? fmt::format(" r{}", known == same.end() ? operand.index : known->second)
                : fmt::format(" {}:{}", static_cast<int>(operand.form), operand.bits);
  }
  return text;
}

}  // namespace

std::vector<bool> joined_instructions(const ptx::Function& function, const ControlFlow& flow) {
  std::vector<bool> joined(function.body.size());
  std::unordered_map<int, int> reads, writes;
  for (const Block& block : flow.blocks()) {
    if (block.predicate >= 0) ++reads[block.predicate];
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const RegisterUse use = register_use(function.body[i]);
      for (const int r : use.reads) ++reads[r];
      for (const int r : use.writes) ++writes[r];
    }
  }
  for (int b = 0; b < flow.size(); ++b) {
    const Block& block = flow.block(b);
    const bool loop = block.taken == b || block.next == b;
    std::unordered_map<int, std::uint32_t> givers;     // writer of each register in the basic block
    std::vector<bool> took(block.last - block.first);  // has absorbed another instruction
    std::unordered_map<std::string, int> computed;     // where the result of what was computed is
    std::unordered_map<int, int> same;                 // registers with equal numbers
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const ptx::Instruction& instruction = function.body[i];
      const RegisterUse use = register_use(instruction);
      const auto is_written_once = [&](int r) { return writes[r] == 1; };
      if (use.writes.size() == 1 && is_written_once(use.writes[0]) &&
          std::ranges::all_of(use.reads, [&](int r) { return writes[r] <= 1; })) {
        const std::string text = computation(instruction, same);
        const auto [first, is_new] = computed.try_emplace(text, use.writes[0]);
        if (!text.empty() && !is_new) {
          same[use.writes[0]] = first->second;
          joined[i] = true;
          continue;
        }
      }
      const Kind kind = kind_of(instruction);
      bool changes = false;
      for (const int r : use.reads) {
        const auto giver = givers.find(r);
        changes = changes || giver != givers.end() || writes[r] != 1;
        if (giver == givers.end() || took[i - block.first]) continue;
        const std::uint32_t g = giver->second;
        // An instruction that absorbed another has no room left, except in an address.
        if (kind != Kind::kAccess && (reads[r] != 1 || took[g - block.first])) continue;
        if (!takes_in(kind, function.body[g])) continue;
        joined[g] = true;
        took[i - block.first] = true;
      }
      const bool stays = loop && !changes && computes(instruction) && use.writes.size() == 1 &&
                         is_written_once(use.writes[0]);
      if (stays) {
        joined[i] = true;
      } else {
        for (const int r : use.writes) givers[r] = i;
      }
    }
  }
  return joined;
}

}  // namespace braid::cpu
