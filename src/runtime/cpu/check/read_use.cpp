#include "runtime/cpu/check/read_use.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/translate/control_flow.h"

namespace braid::cpu {
namespace {

using ptx::Instruction;
using ptx::Op;
using ptx::Operand;

bool is_same_register(const Operand& a, const Operand& b) {
  return a.is_register() && b.is_register() && a.index == b.index;
}

class Follower {
 public:
  explicit Follower(const ptx::Function& function)
      : function_(function), followed_(function.registers.size()) {}

  ReadUse run(std::uint32_t line, int matrix) {
    for (const Instruction& i : function_.body) {
      if (i.line != line || i.entry == nullptr || !has_result(i)) continue;
      if (!i.entry->has_address() && !ptx::is_choice(i)) continue;
      if (i.is(Op::kLdmatrix)) {
        use_.matrices = static_cast<int>(std::max<std::size_t>(1, i.operands[0].elements.size()));
        use_.transposed = ptx::has_modifier(i, "trans");
        if (matrix != kAllMatrices) {
          add(use_.matrices == 1 ? i.operands[0] : i.operands[0].elements[matrix]);
          continue;
        }
      }
      take(i);
      if (i.is(Op::kLd)) reads_.push_back(&i);
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
    for (const int reg : register_use(i).writes) add(reg);
  }
  void add(int reg) {
    if (followed_.has(reg)) return;
    followed_.add(reg);
    grew_ = true;
  }
  void add(const Operand& operand) {
    if (operand.is_register()) add(operand.index);
  }

  /// Of a product m16n8: the elements of A are of the lane's row g and of row g + 8 in turns; the
  /// first half of D is of row g (PTX ISA, 9.7.15, fragments). Whether it is one.
  bool take_product(const Instruction& i) {
    if (i.name != "mma" || i.operands.size() != 4) return false;
    const bool is_known = std::ranges::any_of(
        i.modifiers, [](const std::string& m) { return m.starts_with("m16n8k"); });
    if (!is_known || ptx::is_sparse(i) || i.operands[0].elements.size() % 2 != 0) return false;
    const std::vector<Operand>& d = i.operands[0].elements;
    const auto take_half = [&](std::size_t half) {
      for (std::size_t e = half * d.size() / 2; e < (half + 1) * d.size() / 2; ++e) add(d[e]);
    };
    const std::vector<Operand>& a = i.operands[1].elements;
    for (std::size_t e = 0; e < a.size(); ++e) {
      if (!holds(a[e])) continue;
      use_.crosses_quads = true;
      take_half(e % 2);
    }
    if (holds(i.operands[2])) {
      use_.crosses_columns = true;
      take(i);
    }
    const std::vector<Operand>& c = i.operands[3].elements;
    for (std::size_t e = 0; e < c.size(); ++e) {
      if (holds(c[e])) add(d[e]);
    }
    return true;
  }
  /// Whether it exchanges values within groups of four lanes.
  [[nodiscard]] bool stays_in_quad(const Instruction& i) const {
    if (!i.is(Op::kShfl) && !i.is(Op::kShflSync)) return false;
    const std::optional<std::uint64_t> by = constant(i.operands[2]);
    return ptx::has_modifier(i, "bfly") && by && *by < 4;
  }
  /// An integer, or what a register is set to once.
  [[nodiscard]] std::optional<std::uint64_t> constant(const Operand& operand) const {
    if (operand.form == Operand::Form::kInteger) return operand.bits;
    if (!operand.is_register()) return std::nullopt;
    const Instruction* only = nullptr;
    for (const Instruction& i : function_.body) {
      if (std::ranges::count(register_use(i).writes, operand.index) == 0) continue;
      if (only != nullptr || !i.is(Op::kMov) || i.guard >= 0) return std::nullopt;
      only = &i;
    }
    if (only == nullptr || only->operands[1].form != Operand::Form::kInteger) return std::nullopt;
    return only->operands[1].bits;
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
    if (verifies(i) || asks_for_success(i)) {
      use_.guesses = true;
    } else if (i.entry == nullptr || (guarded && ptx::traits(i).has_effects())) {
      use_.always = true;
    } else if (is_store(i)) {
      if (holds_address(i)) {
        use_.always = true;
      } else {
        add_line(use_.stores, i.line);
        if (i.is(Op::kSt)) add_line(use_.computed_by, i.line);
      }
    } else if (!has_results || i.entry->has_address() || unit == ptx::Unit::kSync) {
      use_.always = true;
    } else if (ptx::is_choice(i) && !guarded && !decided_by_followed(i)) {
      for (std::uint32_t value = 0; value < 2; ++value) {
        if (holds(i.operands[1 + value])) choice(i.line, value);
      }
    } else if (guarded || !take_product(i)) {
      take(i);
      if (unit != ptx::Unit::kWarp && unit != ptx::Unit::kMatrix) return;
      (stays_in_quad(i) ? use_.crosses_quads : use_.crosses_lanes) = true;
    }
  }

  /// Whether it is a compare-and-swap that expects a followed value at the place where that was
  /// read. What it returns is read anew.
  [[nodiscard]] bool verifies(const Instruction& i) const {
    if (!i.is(Op::kAtom) || !ptx::has_modifier(i, "cas") || !holds(i.operands[2])) return false;
    return i.guard < 0 && !holds_address(i) && !reads_.empty() &&
           std::ranges::all_of(reads_, [&](const Instruction* read) {
             return is_word(*read, i) && same_place(read->operands[1], i.operands[1]);
           });
  }
  /// Whether both access one element of a size.
  static bool is_word(const Instruction& read, const Instruction& swap) {
    return read.operands[0].is_register() &&
           ptx::Choices(read).type().total_bits() == ptx::Choices(swap).type().total_bits();
  }
  [[nodiscard]] bool same_place(const Operand& a, const Operand& b) const {
    const Operand &base = a.elements[0], &other = b.elements[0];
    if (!is_same_register(base, other) || a.bits != b.bits) return false;
    return std::ranges::count_if(function_.body, [&](const Instruction& i) {
             return std::ranges::count(register_use(i).writes, base.index) != 0;
           }) == 1;
  }
  /// Whether it asks if such a swap has succeeded.
  [[nodiscard]] bool asks_for_success(const Instruction& i) const {
    if (!i.is(Op::kSetp) || !(ptx::has_modifier(i, "eq") || ptx::has_modifier(i, "ne"))) {
      return false;
    }
    return i.operands.size() == 3 && std::ranges::any_of(function_.body, [&](const Instruction& s) {
             if (!verifies(s)) return false;
             const Operand &found = s.operands[0], &expected = s.operands[2];
             return (is_same_register(i.operands[1], found) &&
                     is_same_register(i.operands[2], expected)) ||
                    (is_same_register(i.operands[2], found) &&
                     is_same_register(i.operands[1], expected));
           });
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
  static void add_line(std::vector<std::uint32_t>& lines, std::uint32_t line) {
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }

  void choice(std::uint32_t line, std::uint32_t value) {
    const auto is_known = [&](const ReadUse::Choice& known) {
      return known.line == line && known.value == value;
    };
    if (std::ranges::none_of(use_.choices, is_known)) use_.choices.push_back({line, value});
  }

  const ptx::Function& function_;
  BitSet followed_;
  std::vector<const Instruction*> reads_;  ///< loads of the line
  bool grew_ = false;
  ReadUse use_;
};

/// Follows the registers that hold what a line read, as control flows.
class Holders {
 public:
  Holders(const ptx::Function& function, ReadUse& use)
      : function_(function), flow_(function), use_(use) {}

  void run(std::uint32_t line) {
    for (int b = 0; b < flow_.size(); ++b) {
      const Block& block = flow_.block(b);
      for (std::uint32_t i = block.first; i < block.last; ++i) {
        const Instruction& read = function_.body[i];
        if (read.line != line || read.entry == nullptr || !has_result(read)) continue;
        BitSet held(function_.registers.size());
        for (const int reg : register_use(read).writes) held.add(reg);
        use_.in_block = walk(block, i + 1, std::move(held)) || use_.in_block;
      }
    }
    while (!work_.empty()) {
      const int b = work_.back();
      work_.pop_back();
      const bool known = std::ranges::find(use_.blocks, b) != use_.blocks.end();
      if (walk(flow_.block(b), flow_.block(b).first, at_start_.at(b)) && !known) {
        use_.blocks.push_back(b);
      }
    }
  }

 private:
  /// The block from instruction `first` on, with those registers at its start. Returns whether it
  /// does more with them than to move them.
  bool walk(const Block& block, std::uint32_t first, BitSet held) {
    bool reads = false;
    for (std::uint32_t k = first; k < block.last; ++k)
      reads = step(function_.body[k], held) || reads;
    for (const int next : {block.next, block.taken}) {
      if (next < 0) continue;
      BitSet& there = at_start_.try_emplace(next, function_.registers.size()).first->second;
      if (there.merge(held)) work_.push_back(next);
    }
    return reads || (block.predicate >= 0 && held.has(block.predicate));
  }

  bool step(const Instruction& i, BitSet& held) {
    const bool guarded = i.guard >= 0;
    const RegisterUse registers = register_use(i);
    // What a guarded write keeps is no use.
    const auto sources =
        std::span(registers.reads)
            .first(registers.reads.size() - (guarded ? registers.writes.size() : 0));
    const bool reads = std::ranges::any_of(sources, [&](int reg) { return held.has(reg); });
    const bool moves = i.is(Op::kMov) && !(guarded && held.has(i.guard));
    for (const int reg : registers.writes) {
      if (reads && moves) {
        held.add(reg);
      } else if (!guarded) {
        held.remove(reg);
      }
    }
    // Of a vector other elements may be written.
    if (i.is(Op::kSt) && i.operands[1].is_register() && held.has(i.operands[1].index)) {
      use_.moved_by.push_back(i.line);
    }
    return reads && !moves;
  }

  const ptx::Function& function_;
  ControlFlow flow_;
  ReadUse& use_;
  std::map<int, BitSet> at_start_;  ///< by block
  std::vector<int> work_;
};

}  // namespace

std::uint32_t ReadUse::reached(std::uint32_t lanes) const {
  if (lanes == 0 || crosses_lanes || (crosses_quads && crosses_columns))
    return lanes == 0 ? 0 : ~0U;
  std::uint32_t all = lanes;
  for (std::uint32_t l = 0; l < 32 && (crosses_quads || crosses_columns); ++l) {
    if ((lanes >> l & 1) == 0) continue;
    all |= crosses_quads ? 0xfU << (l & ~3U) : 0x11111111U << (l / 8);
  }
  return all;
}

std::uint32_t ReadUse::receiving(std::uint32_t lanes, int matrix) const {
  std::uint32_t all = 0;
  for (std::uint32_t row = 0; row < 8; ++row) {
    if ((lanes >> (8 * matrix + static_cast<int>(row)) & 1) == 0) continue;
    all |= transposed ? 0x11111111U << (row / 2) : 0xfU << (4 * row);
  }
  return all;
}

ReadUse use_of_reads(const ptx::Function& function, std::uint32_t line, int matrix) {
  ReadUse use = Follower(function).run(line, matrix);
  Holders(function, use).run(line);
  return use;
}

}  // namespace braid::cpu
