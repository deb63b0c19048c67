#include "runtime/cpu/ptx/opcodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "braid/error.h"

namespace braid::cpu::ptx {
namespace {

/// An entry as written in opcodes.inc.
struct Entry {
  Op op;
  std::string_view names, modifiers, operands;
  Traits traits;
};

#define UNIT(name) .unit = Unit::k##name
#define FLOW(name) .flow = Flow::k##name
#define SHAPE(name) .shape = ShapeRule::k##name
#define DEFINED(name) .defined = DefinedRule::k##name
#define ROUND "?rn|rz|rm|rp "
#define COMPARE "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan "
#define SCOPE "cta|cluster|gpu|gl|sys "
#define PLACE                                                                              \
  "?param|global|shared::cta|shared|local|const|param::entry|param::func|shared::cluster " \
  "*ca|cg|cs|lu|cv|wb|wt|nc|L1::evict_normal|L1::evict_unchanged|L1::evict_first|"         \
  "L1::evict_last|L1::no_allocate|L2::evict_first|L2::evict_last|L2::evict_normal|"        \
  "L2::cache_hint|L2::64B|L2::128B|L2::256B ?v2|v4|v8 .any"
#define ORDER "?relaxed|acquire|release|acq_rel ?" SCOPE
#define ATOMIC                                  \
  ORDER                                         \
  "?global|shared::cta|shared|shared::cluster " \
  "add|min|max|and|or|xor|exch|cas|inc|dec ?noftz ?L2::cache_hint .any"
#define ATOMIC_VECTOR ORDER "?global add|min|max v2|v4|v8 ?noftz ?L2::cache_hint .float"
#define BULK_OPS "add|min|max|and|or|xor|exch|cas|inc|dec "
#define TENSOR(name) name ".1d " name ".2d " name ".3d " name ".4d " name ".5d"
#define OBJECT "?cta|cluster ?shared::cta|shared|shared::cluster b64"
#define BYTES "mbarrier::complete_tx::bytes "
#define RESTRICT "sync_restrict::shared::cta|sync_restrict::shared::cluster "
#define MULTIMEM_OPS "add|min|max|and|or|xor "
#define MEMORY UNIT(Memory)
#define WARP UNIT(Warp)
#define SYNC UNIT(Sync)
#define CONTROL UNIT(Control)
#define SMALL_FLOATS "e4m3x2|e5m2x2|e2m1x2|e2m3x2|e3m2x2"
#define VIDEO_TYPES "u32|s32,u32|s32"
#define PAIR UNIT(Float)
#define SPARSE "sp|sp::ordered_metadata sync aligned "
#define ORDERED "sp::ordered_metadata sync aligned "
#define SMALL_TYPES "e4m3|e5m2|e3m2|e2m3|e2m1,e4m3|e5m2|e3m2|e2m3|e2m1,"
#define WMMA_SHAPES "m16n16k16|m8n32k16|m32n8k16 "
#define WMMA_SHAPES_OF_ALL "m16n16k16|m8n32k16|m32n8k16|m16n16k8|m8n8k4|m8n8k32|m8n8k128 "
#define MMA UNIT(Matrix), SHAPE(Lanes), DEFINED(Elements)
#define GROUP "cta_group::1|cta_group::2 "
#define TENSOR_SHAPES "32x32b|16x64b|16x128b|16x256b|16x32bx2 "
#define COLLECTOR \
  "?collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard"
#define WGMMA UNIT(Matrix), SHAPE(Lanes), DEFINED(Always)

constexpr Entry kEntries[] = {
#define PTX(op, names, modifiers, operands, handler, ...) \
  {Op::k##op, names, modifiers, operands, Traits{__VA_ARGS__}},
#include "runtime/cpu/ptx/opcodes.inc"
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool accept(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

using Types = Opcode::Group::Types;
constexpr std::pair<std::string_view, Types> kTypeSets[] = {{".number", Types::kNumber},
                                                            {".bits", Types::kBits},
                                                            {".int", Types::kInt},
                                                            {".float", Types::kFloat},
                                                            {".any", Types::kAny}};

Opcode::Group group_of(std::string_view text, bool behind) {
  Opcode::Group group;
  group.behind = behind;
  if (accept(text, '?')) group.need = Opcode::Group::Need::kMaybe;
  if (accept(text, '*')) group.need = Opcode::Group::Need::kMany;
  for (const auto& [name, types] : kTypeSets) {
    if (text == name) group.types = types;
  }
  if (group.types == Types::kNone) group.names = split(text, '|');
  return group;
}

Opcode::OperandUse use_of(std::string_view text) {
  Opcode::OperandUse use;
  use.optional = accept(text, '?');
  constexpr std::string_view kLetters = "wrmaictu";
  use.use = static_cast<Use>(kLetters.find(text.front()));
  return use;
}

Opcode read(const Entry& entry) {
  Opcode result;
  result.op = entry.op;
  result.traits = entry.traits;
  for (const std::string_view name : split(entry.names, ' ')) {
    std::vector<std::string_view> parts = split(name, '.');
    const std::string_view opcode = parts.front();
    parts.erase(parts.begin());
    result.names.push_back({opcode, std::move(parts)});
  }
  result.any_modifiers = entry.modifiers == "...";
  if (!result.any_modifiers) {
    for (const std::string_view chain : split(entry.modifiers, ' ')) {
      bool behind = false;
      for (const std::string_view group : split(chain, ',')) {
        result.groups.push_back(group_of(group, std::exchange(behind, true)));
      }
    }
  }
  for (const std::string_view operand : split(entry.operands, ' ')) {
    if (operand == "...") {
      result.any_operands = true;
    } else {
      result.operands.push_back(use_of(operand));
    }
  }
  return result;
}

/// The entries of a name, in order.
std::span<const Opcode* const> entries_of(std::string_view name) {
  using Index = std::unordered_map<std::string_view, std::vector<const Opcode*>>;
  static const Index kIndex = [] {
    Index index;
    for (const Opcode& opcode : opcodes()) {
      for (const Opcode::Name& known : opcode.names) {
        auto& entries = index[known.opcode];
        if (entries.empty() || entries.back() != &opcode) entries.push_back(&opcode);
      }
    }
    return index;
  }();
  const auto it = kIndex.find(name);
  if (it == kIndex.end()) return {};
  return it->second;
}

/// Whether a modifier matches `name` of the table, in which '#' stands for a number.
bool is_called(std::string_view modifier, std::string_view name) {
  const std::size_t at = name.find('#');
  if (at == std::string_view::npos) return modifier == name;
  const std::string_view end = name.substr(at + 1);
  if (modifier.size() <= name.size() - 1 || !modifier.starts_with(name.substr(0, at)) ||
      !modifier.ends_with(end)) {
    return false;
  }
  const std::string_view number = modifier.substr(at, modifier.size() - at - end.size());
  return number.find_first_not_of("0123456789") == std::string_view::npos;
}

bool takes(const Opcode::Group& group, const std::optional<Type>& type) {
  using Types = Opcode::Group::Types;
  if (group.types == Types::kNone || !type) return false;
  const bool whole = type->bits >= 16 && type->bits <= 64 && type->lanes == 1;
  if (group.types == Types::kBits) return whole && type->kind == Kind::kBits;
  if (group.types == Types::kNumber) {
    return whole && (type->kind == Kind::kUnsigned || type->kind == Kind::kSigned);
  }
  return group.types == Types::kAny || type->is_float() == (group.types == Types::kFloat);
}

bool knows(const Opcode& opcode, const std::string& modifier) {
  const auto type = parse_type(modifier);
  const auto holds = [&](const auto& names) {
    return std::ranges::any_of(names,
                               [&](std::string_view name) { return is_called(modifier, name); });
  };
  return std::ranges::any_of(opcode.names,
                             [&](const Opcode::Name& name) { return holds(name.head); }) ||
         std::ranges::any_of(opcode.groups, [&](const Opcode::Group& group) {
           return holds(group.names) || takes(group, type);
         });
}

/// A text for the expected number of operands, if `found` differs.
std::string wanted(const Opcode& opcode, std::size_t found) {
  const auto needed = static_cast<std::size_t>(std::ranges::count_if(
      opcode.operands, [](const Opcode::OperandUse& use) { return !use.optional; }));
  return std::to_string(found < needed ? needed : opcode.operands.size());
}

}  // namespace

bool Traits::has_effects() const {
  return unit == Unit::kMemory || unit == Unit::kWarp || unit == Unit::kSync ||
         unit == Unit::kControl || acts;
}

bool Opcode::has_result() const {
  return !operands.empty() && (operands.front().use == Use::kWritten || updates());
}

bool Opcode::updates() const { return !operands.empty() && operands.front().use == Use::kUpdated; }

bool Opcode::has_address() const {
  return std::ranges::any_of(operands,
                             [](const OperandUse& operand) { return is_address(operand.use); });
}

bool Opcode::reads_carry() const { return !operands.empty() && operands.back().use == Use::kCarry; }

std::span<const Opcode> opcodes() {
  static const std::vector<Opcode> kOpcodes = [] {
    std::vector<Opcode> all;
    for (const Entry& entry : kEntries) all.push_back(read(entry));
    return all;
  }();
  return kOpcodes;
}

const Traits& traits(const Instruction& instruction) {
  static constexpr Traits kNone;
  return instruction.entry == nullptr ? kNone : instruction.entry->traits;
}

bool has_modifier(const Instruction& instruction, std::string_view name) {
  return std::ranges::find(instruction.modifiers, name) != instruction.modifiers.end();
}

bool is_wgmma(const Instruction& instruction) {
  return instruction.entry != nullptr && instruction.entry->updates() &&
         instruction.entry->traits.unit == Unit::kMatrix;
}

bool is_choice(const Instruction& instruction) {
  return instruction.is(Op::kSelp) || ((instruction.is(Op::kAnd) || instruction.is(Op::kOr)) &&
                                       has_modifier(instruction, "pred"));
}

bool is_sparse(const Instruction& instruction) {
  return has_modifier(instruction, "sp") || has_modifier(instruction, "sp::ordered_metadata");
}

const Opcode* find_opcode(const Instruction& instruction) {
  for (const Opcode* entry : entries_of(instruction.name)) {
    if (Choices(*entry, instruction).fits()) return entry;
  }
  return nullptr;
}

Instruction make_instruction(Op op, std::vector<std::string> modifiers,
                             std::vector<Operand> operands, std::uint32_t line) {
  const Opcode& entry = opcodes()[static_cast<std::size_t>(op)];
  Instruction result;
  result.name = entry.names.front().opcode;
  result.entry = &entry;
  result.modifiers = std::move(modifiers);
  result.operands = std::move(operands);
  result.line = line;
  return result;
}

void require_known(const Instruction& instruction) {
  const Opcode* entry = instruction.entry;
  const std::string quoted = "'" + instruction.full_name() + "'";
  if (entry == nullptr) {
    const auto entries = entries_of(instruction.name);
    if (entries.empty()) fail(instruction.line, "unknown opcode " + quoted);
    for (const std::string& modifier : instruction.modifiers) {
      if (std::ranges::none_of(entries, [&](const Opcode* e) { return knows(*e, modifier); })) {
        fail(instruction.line, fmt::format("unknown modifier '.{}' of {}", modifier, quoted));
      }
    }
    fail(instruction.line, quoted + " lacks a modifier, or is an unsupported combination of them");
  }
  const std::size_t found = instruction.operands.size();
  const auto& uses = entry->operands;
  const bool enough = found >= uses.size() || uses[found].optional;
  if (!enough || (found > uses.size() && !entry->any_operands)) {
    fail(instruction.line, quoted + ": expected " + wanted(*entry, found) + " operands, found " +
                               std::to_string(found));
  }
  for (std::size_t k = 0; k < std::min(found, uses.size()); ++k) {
    const Operand::Form form = instruction.operands[k].form;
    if (is_address(uses[k].use) && form != Operand::Form::kMemory) {
      fail(instruction.line, quoted + ": expected an address in brackets");
    }
    const bool placed = instruction.operands[k].elements.size() > 1;
    if (is_address(uses[k].use) && placed != (uses[k].use == Use::kTensor)) {
      fail(instruction.line, fmt::format("{}: operand {} {}", quoted, k + 1,
                                         placed ? "has no coordinates" : "needs coordinates"));
    }
    if (uses[k].use == Use::kConstant && form != Operand::Form::kInteger) {
      fail(instruction.line, quoted + ": operand " + std::to_string(k + 1) + " must be a constant");
    }
  }
}

Choices::Choices(const Opcode& entry, const Instruction& instruction)
    : entry_(entry), instruction_(instruction) {
  picked_.fill(-1);
  const auto& modifiers = instruction.modifiers;
  for (std::size_t n = 0; n < entry.names.size(); ++n) {
    const Opcode::Name& name = entry.names[n];
    if (name.opcode != instruction.name || name.head.size() > modifiers.size() ||
        !std::equal(name.head.begin(), name.head.end(), modifiers.begin())) {
      continue;
    }
    picked_.fill(-1);
    name_ = static_cast<int>(n);
    if (entry.any_modifiers) return;
    const bool all =
        std::all_of(modifiers.begin() + static_cast<std::ptrdiff_t>(name.head.size()),
                    modifiers.end(), [&](const std::string& modifier) { return pick(modifier); });
    bool complete = all;
    for (std::size_t g = 0; g < entry.groups.size(); ++g) {
      complete = complete && (picked_[g] >= 0 || entry.groups[g].need != Opcode::Group::Need::kOne);
    }
    if (complete) return;
    name_ = -1;
  }
}

/// Assigns a modifier to the first group that can still take it.
bool Choices::pick(const std::string& modifier) {
  std::optional<Type> type;
  bool parsed = false;
  std::size_t types = 0;
  for (std::size_t g = 0; g < entry_.groups.size(); ++g) {
    const Opcode::Group& group = entry_.groups[g];
    const bool is_type = group.types != Opcode::Group::Types::kNone;
    const std::size_t nth = is_type ? types++ : 0;
    if (picked_[g] >= 0 && group.need != Opcode::Group::Need::kMany) continue;
    if (group.behind && picked_[g - 1] < 0) continue;
    if (is_type) {
      if (!std::exchange(parsed, true)) type = parse_type(modifier);
      if (!takes(group, type)) continue;
      picked_[g] = 0;
      types_[nth] = *type;
      return true;
    }
    const auto it = std::ranges::find_if(
        group.names, [&](std::string_view name) { return is_called(modifier, name); });
    if (it == group.names.end()) continue;
    picked_[g] = static_cast<std::int8_t>(it - group.names.begin());
    return true;
  }
  return false;
}

bool Choices::has(std::string_view modifier) const { return has_modifier(instruction_, modifier); }

int Choices::of(std::string_view first, int nth) const {
  for (std::size_t g = 0; g < entry_.groups.size(); ++g) {
    const auto& names = entry_.groups[g].names;
    if (!names.empty() && names.front() == first && nth-- == 0) return picked_[g];
  }
  return -1;
}

}  // namespace braid::cpu::ptx
