#include <algorithm>
#include <functional>

#include "runtime/cpu/translate/translator.h"

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

using ptx::Op;
using ptx::Space;
using ptx::Special;

/// Less work is not worth the check.
constexpr std::size_t kLeast = 4;

bool is_of_block(Special special) {
  return special >= Special::kNtid && special < Special::kClusterId;
}

}  // namespace

void Translator::find_common_work() {
  is_common_.assign(function_.body.size(), false);
  is_common_result_.assign(function_.registers.size(), false);
  if (instrumentation_.checks || instrumentation_.counts) return;
  std::vector<int> writes(function_.registers.size());
  for (const Instruction& i : function_.body) {
    for (const int r : register_use(i).writes) ++writes[r];
  }
  std::vector<bool> alike(function_.registers.size());  // equal in all warps of a block
  const std::function<bool(const Operand&)> is_alike = [&](const Operand& operand) {
    switch (operand.form) {
      case Operand::Form::kRegister:
        return static_cast<bool>(alike[operand.index]);
      case Operand::Form::kSpecial:
        return is_of_block(static_cast<Special>(operand.index));
      case Operand::Form::kVariable: {
        const auto& params = function_.params;
        const Space space = module_.variables[operand.index].space;
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
    return !i.entry->updates() && shapes_.result_shape(i).is_uniform() &&
           std::all_of(i.operands.begin() + 1, i.operands.end(), is_alike) &&
           std::ranges::all_of(use.writes, [&](int r) {
             return writes[r] == 1 && shapes_.shape(r).is_table() &&
                    !block.live_in.has(r);  // nothing before it reads what was there
           });
  };
  /// Scans a block up to the first instruction with effects; behind a barrier it may read shared
  /// memory.
  const auto find = [&](int b, bool behind_barrier,
                        const std::function<void(std::uint32_t)>& found) {
    const Block& block = flow_.block(b);
    for (std::uint32_t k = block.first; k < block.last; ++k) {
      const Instruction& i = function_.body[k];
      if (behind_barrier && ptx::traits(i).has_effects() && !i.is(Op::kLd)) break;
      if ((!behind_barrier && space_of(i) == Space::kShared) || !computes_alike(i, block)) continue;
      for (const int r : register_use(i).writes) alike[r] = true;
      found(k);
    }
  };
  find(0, false, [](std::uint32_t) {});  // the entry block, which all run
  const std::vector<bool> always = alike;
  for (int b = 1; b < flow_.size(); ++b) {
    const Block& block = flow_.block(b);
    if (block.predecessors.size() != 1 || shapes_.component(b) >= 0) continue;
    if (!flow_.block(block.predecessors.front()).parks) continue;
    alike = always;
    std::vector<std::uint32_t> work;
    find(b, true, [&](std::uint32_t k) { work.push_back(k); });
    if (work.size() < kLeast || std::ranges::none_of(work, [&](std::uint32_t k) {
          return space_of(function_.body[k]) == Space::kShared;
        })) {
      continue;
    }
    for (const std::uint32_t k : work) is_common_[k] = true;
    // Results are values that other code reads.
    BitSet read = block.live_out;
    if (block.predicate >= 0) read.add(block.predicate);
    for (std::uint32_t k = block.first; k < block.last; ++k) {
      if (is_common_[k]) continue;
      for (const int r : register_use(function_.body[k]).reads) read.add(r);
    }
    for (const std::uint32_t k : work) {
      for (const int r : register_use(function_.body[k]).writes) {
        if (read.has(r)) is_common_result_[r] = true;
      }
    }
  }
}

/// Behind the barrier that leads to `block`: the first warp does its common work, the others copy
/// the results from its registers.
void Translator::emit_common_work(int block) {
  std::vector<const Instruction*> work;
  std::vector<int> results;
  for (std::uint32_t k = flow_.block(block).first; k < flow_.block(block).last; ++k) {
    if (!is_common_[k]) continue;
    work.push_back(&function_.body[k]);
    for (const int r : register_use(*work.back()).writes) {
      if (is_common_result_[r]) results.push_back(r);
    }
  }
  if (work.empty()) return;
  Value* leader = b_.CreateLoad(b_.getPtrTy(), context_field(offsetof(WarpContext, leader)));
  llvm::BasicBlock* first = new_block("first");
  llvm::BasicBlock* others = new_block("others");
  llvm::BasicBlock* next = new_block("next");
  b_.CreateCondBr(b_.CreateIsNull(leader), first, others);
  b_.SetInsertPoint(first);
  cache_.clear();
  for (const Instruction* instruction : work) emit(*instruction);
  for (const int r : results) store_register(r, cache_[r].value);
  b_.CreateBr(next);
  b_.SetInsertPoint(others);
  for (const int r : results) {
    const unsigned bytes = register_bits(r) == 1 ? 1 : register_bits(r) / 8;
    const auto slot = static_cast<std::uint32_t>(slots_[r]);
    b_.CreateMemCpy(slot_pointer(r), llvm::Align(8),
                    b_.CreateConstInBoundsGEP1_32(b_.getInt8Ty(), leader, slot), llvm::Align(8),
                    bytes);
  }
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  cache_.clear();
}

}  // namespace braid::cpu
