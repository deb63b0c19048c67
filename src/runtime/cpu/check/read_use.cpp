#include "runtime/cpu/check/read_use.h"

#include <algorithm>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {
namespace {

using ptx::Instruction;
using ptx::Op;
using ptx::Operand;

class Follower {
 public:
  explicit Follower(const ptx::Function& function)
      : function_(function), followed_(function.registers.size()) {}

  ReadUse run(std::uint32_t line) {
    for (const Instruction& i : function_.body) {
      if (i.line != line || i.entry == nullptr || !has_result(i)) continue;
      if (!i.entry->has_address() && !ptx::is_choice(i)) continue;
      take(i);
      if (!i.is(Op::kLd) && !i.is(Op::kStrongLd) && !ptx::is_choice(i)) use_.crosses_lanes = true;
    }
    // The values escape from registers.
    if (!grew_) use_.always = true;
    while (grew_ && !use_.always) {
      grew_ = false;
      for (const Instruction& i : function_.body) visit(i);
    }
    return std::move(use_);
  }

 private:
  [[nodiscard]] bool holds(const Operand& operand) const {
    return (operand.is_register() && followed_.has(operand.index)) ||
           std::ranges::any_of(operand.elements,
                               [&](const Operand& element) { return holds(element); });
  }

  /// Its results depend on followed values.
  void take(const Instruction& i) {
    for (const int reg : register_use(i).writes) {
      if (followed_.has(reg)) continue;
      followed_.add(reg);
      grew_ = true;
    }
  }

  void visit(const Instruction& i) {
    const bool has_results = has_result(i);
    bool reads = false;
    for (std::size_t o = has_results ? 1 : 0; o < i.operands.size(); ++o) {
      reads = reads || holds(i.operands[o]);
    }
    const bool guarded = i.guard >= 0 && followed_.has(i.guard);
    if (!reads && !guarded) return;
    const auto unit = ptx::traits(i).unit;
    if (i.entry == nullptr || (guarded && ptx::traits(i).has_effects())) {
      use_.always = true;
    } else if (is_store(i)) {
      if (holds_address(i)) {
        use_.always = true;
      } else {
        store(i.line);
      }
    } else if (!has_results || i.entry->has_address() || unit == ptx::Unit::kSync) {
      use_.always = true;
    } else if (ptx::is_choice(i) && !guarded && !decided_by_followed(i)) {
      for (std::uint32_t value = 0; value < 2; ++value) {
        if (holds(i.operands[1 + value])) choice(i.line, value);
      }
    } else {
      take(i);
      if (unit == ptx::Unit::kWarp || unit == ptx::Unit::kMatrix) use_.crosses_lanes = true;
    }
  }

  /// Whether it is a store that the sanitizer observes.
  static bool is_store(const Instruction& i) {
    return (i.is(Op::kSt) || i.is(Op::kStrongSt) || i.is(Op::kRed) || i.is(Op::kAtom) ||
            i.is(Op::kStmatrix)) &&
           !ptx::has_modifier(i, "param");
  }
  [[nodiscard]] bool holds_address(const Instruction& i) const {
    for (std::size_t o = 0; o < i.operands.size(); ++o) {
      if (ptx::is_address(i.entry->operands[o].use) && holds(i.operands[o])) return true;
    }
    return false;
  }
  /// Whether which of the values counts depends on followed ones.
  [[nodiscard]] bool decided_by_followed(const Instruction& i) const {
    return i.is(Op::kSelp) ? holds(i.operands[3]) : holds(i.operands[1]) && holds(i.operands[2]);
  }
  void store(std::uint32_t line) {
    if (std::ranges::find(use_.stores, line) == use_.stores.end()) {
      use_.stores.push_back(line);
    }
  }

  void choice(std::uint32_t line, std::uint32_t value) {
    const auto is_known = [&](const ReadUse::Choice& known) {
      return known.line == line && known.value == value;
    };
    if (std::ranges::none_of(use_.choices, is_known)) use_.choices.push_back({line, value});
  }

  const ptx::Function& function_;
  BitSet followed_;
  bool grew_ = false;
  ReadUse use_;
};

}  // namespace

ReadUse use_of_reads(const ptx::Function& function, std::uint32_t line) {
  return Follower(function).run(line);
}

}  // namespace braid::cpu
