#include <algorithm>
#include <functional>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/plans.h"

// Common work: values that all warps of a block would compute alike behind a barrier, such as a sum
// over shared memory and what depends only on it (a mean, a quotient, a root). The first warp that
// continues behind the barrier computes them for all, if the block runner says that the others
// follow it (WarpContext::leader).
//
// Common work is in a block that only a barrier leads to, before any instruction with effects
// there: weak loads of shared memory and pure instructions that depend only on numbers, parameters,
// the block's index in the grid, and each other. In a program without races no warp can see other
// values than the first one.

namespace braid::cpu {
namespace {

using ptx::Space;
using ptx::Special;

/// Less work is not worth the check.
constexpr std::size_t kLeast = 4;

bool is_of_block(Special special) {
  return special >= Special::kNtid && special < Special::kClusterId;
}

}  // namespace

CommonWork find_common_work(const Analysis& a) {
  CommonWork common(a.function);
  std::vector<int> writes(a.function.registers.size());
  for (const Instruction& i : a.function.body) {
    for (const int r : register_use(i).writes) ++writes[r];
  }
  std::vector<bool> alike(a.function.registers.size());  // equal in all warps of a block
  const std::function<bool(const Operand&)> is_alike = [&](const Operand& operand) {
    switch (operand.form) {
      case Operand::Form::kRegister:
        return static_cast<bool>(alike[operand.index]);
      case Operand::Form::kSpecial:
        return is_of_block(static_cast<Special>(operand.index));
      case Operand::Form::kVariable: {
        const auto& params = a.function.params;
        const Space space = a.ptx_module.variables[operand.index].space;
        return space == Space::kShared || std::ranges::find(params, operand.index) != params.end();
      }
      default:
        return std::ranges::all_of(operand.elements, is_alike);
    }
  };
  const auto space_of = [&](const Instruction& i) {
    return i.is(Op::kLd) ? parse_access(i).space : Space::kGeneric;
  };
  /// Whether all warps compute the same result here, given equal operands.
  const auto computes_alike = [&](const Instruction& i, const Block& block) {
    const Space space = space_of(i);
    const bool reads = space == Space::kParam || space == Space::kShared;
    if (i.guard >= 0 || !has_result(i) || !(ptx::traits(i).is_pure() || reads)) return false;
    const RegisterUse use = register_use(i);
    return !i.entry->updates() && a.shapes.result_shape(i).is_uniform() &&
           std::all_of(i.operands.begin() + 1, i.operands.end(), is_alike) &&
           std::ranges::all_of(use.writes, [&](int r) {
             return writes[r] == 1 && a.shapes.shape(r).is_table() &&
                    !block.live_in.has(r);  // nothing before it reads what was there
           });
  };
  /// Scans a block up to the first instruction with effects; behind a barrier it may read shared
  /// memory.
  const auto find = [&](int b, bool behind_barrier,
                        const std::function<void(std::uint32_t)>& found) {
    const Block& block = a.flow.block(b);
    for (std::uint32_t k = block.first; k < block.last; ++k) {
      const Instruction& i = a.function.body[k];
      if (behind_barrier && ptx::traits(i).has_effects() && !i.is(Op::kLd)) break;
      if ((!behind_barrier && space_of(i) == Space::kShared) || !computes_alike(i, block)) continue;
      for (const int r : register_use(i).writes) alike[r] = true;
      found(k);
    }
  };
  find(0, false, [](std::uint32_t) {});  // the entry block, which all run
  const std::vector<bool> always = alike;
  for (int b = 1; b < a.flow.size(); ++b) {
    const Block& block = a.flow.block(b);
    if (block.predecessors.size() != 1 || a.shapes.component(b) >= 0) continue;
    if (!a.flow.block(block.predecessors.front()).parks) continue;
    alike = always;
    std::vector<std::uint32_t> work;
    find(b, true, [&](std::uint32_t k) { work.push_back(k); });
    if (work.size() < kLeast || std::ranges::none_of(work, [&](std::uint32_t k) {
          return space_of(a.function.body[k]) == Space::kShared;
        })) {
      continue;
    }
    for (const std::uint32_t k : work) common.instructions[k] = true;
    // Results are values that other code reads.
    BitSet read = block.live_out;
    if (block.predicate >= 0) read.add(block.predicate);
    for (std::uint32_t k = block.first; k < block.last; ++k) {
      if (common.instructions[k]) continue;
      for (const int r : register_use(a.function.body[k]).reads) read.add(r);
    }
    for (const std::uint32_t k : work) {
      for (const int r : register_use(a.function.body[k]).writes) {
        if (read.has(r)) common.results[r] = true;
      }
    }
  }
  return common;
}

}  // namespace braid::cpu
