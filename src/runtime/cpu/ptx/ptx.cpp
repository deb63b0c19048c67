#include "runtime/cpu/ptx/ptx.h"

#include <unordered_map>

namespace braid::cpu::ptx {

void fail(std::uint32_t line, const std::string& message) {
  throw_invalid("ptx:" + std::to_string(line), message);
}

std::optional<Type> parse_type(std::string_view name) {
  static const std::unordered_map<std::string_view, Type> kTypes = {
      {"pred", {Kind::kPred, 1, 1}},     {"b8", {Kind::kBits, 8, 1}},
      {"b16", {Kind::kBits, 16, 1}},     {"b32", {Kind::kBits, 32, 1}},
      {"b64", {Kind::kBits, 64, 1}},     {"b128", {Kind::kBits, 128, 1}},
      {"u8", {Kind::kUnsigned, 8, 1}},   {"u16", {Kind::kUnsigned, 16, 1}},
      {"u32", {Kind::kUnsigned, 32, 1}}, {"u64", {Kind::kUnsigned, 64, 1}},
      {"s8", {Kind::kSigned, 8, 1}},     {"s16", {Kind::kSigned, 16, 1}},
      {"s32", {Kind::kSigned, 32, 1}},   {"s64", {Kind::kSigned, 64, 1}},
      {"f16", {Kind::kFloat, 16, 1}},    {"f16x2", {Kind::kFloat, 16, 2}},
      {"f32", {Kind::kFloat, 32, 1}},    {"f64", {Kind::kFloat, 64, 1}},
      {"bf16", {Kind::kBfloat, 16, 1}},  {"bf16x2", {Kind::kBfloat, 16, 2}},
  };
  const auto it = kTypes.find(name);
  if (it == kTypes.end()) return std::nullopt;
  return it->second;
}

std::optional<Type> Instruction::type() const {
  for (auto it = modifiers.rbegin(); it != modifiers.rend(); ++it) {
    if (const auto type = parse_type(*it)) return type;
  }
  return std::nullopt;
}

std::string Instruction::full_name() const {
  std::string full = name;
  for (const std::string& modifier : modifiers) full += "." + modifier;
  return full;
}

}  // namespace braid::cpu::ptx
