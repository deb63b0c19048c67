#include "runtime/cpu/check/joined_instructions.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
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
    for (std::uint32_t i = block.first; i < block.last; ++i) {
      const ptx::Instruction& instruction = function.body[i];
      const RegisterUse use = register_use(instruction);
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
                         writes[use.writes[0]] == 1;
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
