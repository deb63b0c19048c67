#include "runtime/cpu/check/stored_floats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {
namespace {

using ptx::Instruction;
using ptx::Op;
using ptx::Operand;

/// Follows registers back to the arithmetic that defines them.
class Origin {
 public:
  explicit Origin(const ptx::Function& function)
      : function_(function), seen_(function.registers.size()) {}

  StoredFloats of_stores(std::uint32_t line) {
    for (const Instruction& i : function_.body) {
      if (i.line != line || i.entry == nullptr || !i.entry->has_address() || has_result(i))
        continue;
      for (std::size_t o = 0; o < i.operands.size(); ++o) {
        if (!ptx::is_address(i.entry->operands[o].use)) follow(i.operands[o]);
      }
    }
    return mixed_ ? StoredFloats::kNone : kind_;
  }

 private:
  void follow(const Operand& operand) {
    for (const Operand& element : operand.elements) follow(element);
    if (!operand.is_register() || seen_.has(operand.index)) return;
    seen_.add(operand.index);
    for (const Instruction& i : function_.body) {
      const std::vector<int> writes = has_result(i) ? register_use(i).writes : std::vector<int>();
      if (std::ranges::find(writes, operand.index) != writes.end()) come_from(i);
    }
  }

  void come_from(const Instruction& i) {
    if (i.is(Op::kLd) || i.is(Op::kStrongLd)) return;  // decided by its other origins
    if (i.is(Op::kMov) || i.is(Op::kMovVector) || i.is(Op::kShfl) || i.is(Op::kShflSync)) {
      return follow(i.operands[1]);
    }
    if (i.is(Op::kSelp)) {
      follow(i.operands[1]);
      return follow(i.operands[2]);
    }
    const StoredFloats kind = result_of(i);
    mixed_ =
        mixed_ || kind == StoredFloats::kNone || (kind_ != StoredFloats::kNone && kind != kind_);
    kind_ = kind;
  }

  /// Uses the first type, which is the result's.
  static StoredFloats result_of(const Instruction& i) {
    constexpr std::array<std::pair<std::string_view, StoredFloats>, 7> kTypes = {
        {{"f32", StoredFloats::kF32},
         {"f32x2", StoredFloats::kF32},
         {"f64", StoredFloats::kF64},
         {"f16", StoredFloats::kF16},
         {"f16x2", StoredFloats::kF16},
         {"bf16", StoredFloats::kBf16},
         {"bf16x2", StoredFloats::kBf16}}};
    for (const std::string& modifier : i.modifiers) {
      const auto type =
          std::ranges::find_if(kTypes, [&](const auto& known) { return known.first == modifier; });
      if (type != kTypes.end()) return type->second;
      const bool integer = modifier.size() > 1 && modifier.size() < 4 &&
                           std::string_view("usb").find(modifier[0]) != std::string_view::npos &&
                           modifier[1] >= '0' && modifier[1] <= '9';
      if (integer) break;
    }
    return StoredFloats::kNone;
  }

  const ptx::Function& function_;
  BitSet seen_;
  StoredFloats kind_ = StoredFloats::kNone;
  bool mixed_ = false;
};

std::size_t size_of(StoredFloats kind) {
  constexpr std::array<std::size_t, 5> kSizes = {1, 2, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(kind)];
}

double value_of(StoredFloats kind, const std::uint8_t* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(kind));
  switch (kind) {
    case StoredFloats::kF16:
      return half_to_float(static_cast<std::uint16_t>(bits));
    case StoredFloats::kBf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16U));
    case StoredFloats::kF32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

}  // namespace

StoredFloats stored_floats(const ptx::Function& function, std::uint32_t line) {
  return Origin(function).of_stores(line);
}

double largest_of(StoredFloats kind, const std::uint8_t* values, std::size_t bytes) {
  const std::size_t size = size_of(kind);
  if (kind == StoredFloats::kNone || bytes % size != 0) return 0;
  double most = 0;
  for (std::size_t k = 0; k < bytes; k += size) {
    const double value = std::abs(value_of(kind, values + k));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

bool differ_by_rounding(StoredFloats kind, const std::uint8_t* a, const std::uint8_t* b,
                        std::size_t bytes, double size_of_terms) {
  const std::size_t size = size_of(kind);
  if (kind == StoredFloats::kNone || bytes % size != 0) return false;
  constexpr std::array<int, 5> kBits = {0, 9, 6, 16, 45};
  const double most = std::ldexp(1, -kBits[static_cast<std::size_t>(kind)]);
  for (std::size_t k = 0; k < bytes; k += size) {
    if (std::memcmp(a + k, b + k, size) == 0) continue;
    const double x = value_of(kind, a + k);
    const double y = value_of(kind, b + k);
    if (!(std::abs(x - y) <= most * std::max({std::abs(x), std::abs(y), size_of_terms}))) {
      return false;
    }
  }
  return true;
}

}  // namespace braid::cpu
