#include <algorithm>
#include <functional>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/plans.h"

// Values that a warp computes again behind a barrier rather than keep over it in memory: those made
// of what ld.global.nc reads, which is the same for as long as the kernel runs, by a few pure
// instructions. It pays where one block behind barriers uses them, once, for what it stores: words
// that are read there again need not be taken apart (WideValues), and their halves not be stored.

namespace braid::cpu {
namespace {

using ptx::Space;
using ptx::Special;

/// The most vector instructions between the read and the value.
constexpr int kMostSteps = 4;

bool is_constant(Special special) { return special < Special::kClusterId; }

}  // namespace

std::vector<std::int32_t> find_recomputed(const Analysis& a, const std::vector<bool>& in_place,
                                          const CommonWork& common) {
  const std::size_t registers = a.function.registers.size();
  std::vector<std::int32_t> recomputed(registers, -1);
  if (a.flow.waits() != Waits::kAtBarriers) return recomputed;

  std::vector<int> writes(registers), writer(registers, -1);
  std::vector<int> block_of(a.function.body.size(), -1);
  std::vector<std::vector<int>> readers(registers);  // blocks
  for (int b = 0; b < a.flow.size(); ++b) {
    const Block& block = a.flow.block(b);
    for (std::uint32_t k = block.first; k < block.last; ++k) {
      block_of[k] = b;
      const RegisterUse use = register_use(a.function.body[k]);
      for (const int r : use.writes) {
        ++writes[r];
        writer[r] = static_cast<int>(k);
      }
      for (const int r : use.reads) readers[r].push_back(b);
    }
    if (block.predicate >= 0) readers[block.predicate].push_back(b);
  }
  std::vector<bool> repeats(a.flow.blocks().size());  // blocks, in reverse post order, of loops
  for (int b = 0; b < a.flow.size(); ++b) {
    for (const int from : a.flow.block(b).predecessors) {
      if (from < b) continue;
      std::fill(repeats.begin() + b, repeats.begin() + from + 1, true);
    }
  }

  /// Adds what the value takes to compute; false where that is not possible.
  const std::function<bool(int, int, std::vector<int>&)> add = [&](int reg, int steps,
                                                                   std::vector<int>& needed) {
    const auto r = static_cast<std::size_t>(reg);
    if (std::ranges::find(needed, reg) != needed.end()) return true;
    if (writes[r] != 1 || in_place[r] || common.results[r]) return false;
    const auto k = static_cast<std::size_t>(writer[r]);
    const Instruction& i = a.function.body[k];
    const int home = block_of[k];
    const auto repeated = [&](int b) { return static_cast<bool>(repeats[b]); };
    if (i.guard >= 0 || common.instructions[k] || repeated(home) || a.shapes.component(home) >= 0 ||
        std::ranges::any_of(readers[r], repeated)) {
      return false;
    }
    const bool vector = a.shapes.shape(reg).is_vector();
    if (i.is(Op::kLd)) {
      const MemoryAccess access = parse_access(i);
      const unsigned bytes = access.count * access.type.total_bits() / 8;
      const bool lasting =
          access.space == Space::kParam ||
          (access.space == Space::kGlobal && Choices(i).has("nc") &&
           is_consecutive(a.shapes.operand_shape(i.operands[1].elements[0]), bytes));
      if (!lasting) return false;
    } else if (!ptx::traits(i).is_pure() || (vector && steps == 0)) {
      return false;
    }
    const std::function<bool(const Operand&)> is_at_hand = [&](const Operand& operand) {
      if (operand.form == Operand::Form::kSpecial) {
        return is_constant(static_cast<Special>(operand.index));
      }
      if (operand.is_register()) {
        return add(operand.index, vector ? steps - 1 : steps, needed);
      }
      return std::ranges::all_of(operand.elements, is_at_hand);
    };
    for (std::size_t n = 1; n < i.operands.size(); ++n) {
      if (!is_at_hand(i.operands[n])) return false;
    }
    needed.push_back(reg);
    return true;
  };

  const auto stores_wide = [&](int b) {
    const Block& block = a.flow.block(b);
    return std::any_of(
        a.function.body.begin() + block.first, a.function.body.begin() + block.last,
        [&](const Instruction& i) { return i.is(Op::kSt) && parse_access(i).count > 1; });
  };
  const auto pays = [&](int reg) {
    const auto r = static_cast<std::size_t>(reg);
    if (writes[r] != 1 || !a.shapes.shape(reg).is_vector()) return false;
    const int home = block_of[writer[r]];
    int user = -1;
    for (const int b : readers[r]) {
      if (b == home || b == user) continue;
      if (user >= 0) return false;
      user = b;
    }
    return user >= 0 && stores_wide(user);
  };
  for (int b = 0; b < a.flow.size(); ++b) {
    if (!a.flow.block(b).parks) continue;
    for (std::size_t r = 0; r < registers; ++r) {
      const int reg = static_cast<int>(r);
      if (recomputed[r] >= 0 || !a.flow.block(b).live_out.has(reg) || !pays(reg)) continue;
      std::vector<int> needed;
      if (!add(reg, kMostSteps, needed)) continue;
      const bool reads = std::ranges::any_of(needed, [&](int n) {
        return a.shapes.shape(n).is_vector() && a.function.body[writer[n]].is(Op::kLd);
      });
      if (!reads) continue;
      for (const int n : needed) {
        recomputed[n] = writer[n];
      }
    }
  }
  return recomputed;
}

}  // namespace braid::cpu
