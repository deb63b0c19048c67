#include <algorithm>
#include <utility>

#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/plans.h"
#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

namespace {

/// Instructions to emit twice at most.
constexpr std::uint32_t kMost = 256;

}  // namespace

/// Emits these instructions of a block, if the first is a guarded row, for warps where all lanes do
/// such accesses and for others; false where it is not or they are too many.
bool Translator::emit_for_all_lanes(int index, std::uint32_t first, std::uint32_t last) {
  if (!e_.tricks.guarded_rows || !is_unobserved() || e_.mask != nullptr) return false;
  if (!is_guarded_row(analysis(), first) || last - first > kMost) return false;
  const auto begin = e_.function.body.begin();
  if (std::any_of(begin + first, begin + last, is_grouped)) return false;
  const std::vector<int> guards = guards_of_rows(analysis(), first, last);
  if (guards.empty()) return false;
  Value* hold = nullptr;
  for (const int guard : guards) {
    Value* lanes = e_.load_register(guard).value;
    hold = hold == nullptr ? lanes : ir_.CreateAnd(hold, lanes);
  }
  llvm::BasicBlock* all = e_.new_block("all");
  llvm::BasicBlock* some = e_.new_block("some");
  ir_.CreateCondBr(ir_.CreateICmpEQ(e_.lane_bits(hold), ir_.getInt32(~0U)), all, some);
  const auto before = e_.cache;
  const std::vector<std::uint32_t> order =
      in_order_of_use(analysis(), flow_.block(index), first, last);
  const auto emit_all = [&](llvm::BasicBlock* start) {
    ir_.SetInsertPoint(start);
    for (const std::uint32_t i : order) emit_instruction(i, last);
    return ir_.GetInsertBlock();
  };
  for (const int guard : guards) {
    e_.cache[guard].value = e_.cache[guard].lanes =
        llvm::Constant::getAllOnesValue(e_.integer(1, false));
  }
  llvm::BasicBlock* all_end = emit_all(all);
  for (const int guard : guards) e_.cache[guard] = before.at(guard);
  const auto values = std::exchange(e_.cache, before);
  llvm::BasicBlock* some_end = emit_all(some);
  join(flow_.block(index), values, all_end, some_end);
  return true;
}

/// Goes on behind both ways with what the end of the block reads, or others behind it.
void Translator::join(const Block& block, const RegisterCache& all, llvm::BasicBlock* all_end,
                      llvm::BasicBlock* some_end) {
  llvm::BasicBlock* next = e_.new_block("next");
  ir_.CreateBr(next);
  ir_.SetInsertPoint(all_end);
  ir_.CreateBr(next);
  ir_.SetInsertPoint(next);
  const auto some = std::exchange(e_.cache, {});
  for (const auto& [reg, one] : all) {
    const auto found = some.find(reg);
    if (one.value == nullptr || found == some.end() || found->second.value == nullptr) continue;
    const Cached& other = found->second;
    if (one.value == other.value) {
      e_.cache[reg] = one;
      continue;
    }
    if (!one.dirty || e_.recomputed[reg] >= 0) continue;
    if (!block.live_out.has(reg) && reg != block.predicate) continue;
    llvm::PHINode* phi = ir_.CreatePHI(one.value->getType(), 2);
    phi->addIncoming(one.value, all_end);
    phi->addIncoming(other.value, some_end);
    e_.cache[reg] = Cached{phi, nullptr, true};
  }
}

bool Translator::keeps_values(int from, int to) const {
  return e_.tricks.kept_values && inherits(analysis(), in_place_, from, to);
}

/// Ends the current LLVM block of a full warp: it goes to `to`, all of it.
void Translator::leave_for(int from, int to) {
  const BitSet& live = flow_.block(to).live_in;
  if (from == to && !carried_.empty()) {
    for (const auto& [r, phi] : carried_) {
      phi->addIncoming(e_.load_register(r).value, ir_.GetInsertBlock());
    }
  } else if (keeps_values(from, to)) {
    Inheritance& next = inherited_[to];
    for (const int r : flow_.block(to).predecessors.size() > 1 ? carried(analysis(), in_place_, to)
                                                               : std::vector<int>()) {
      e_.load_register(r);
    }
    next.from = ir_.GetInsertBlock();
    for (auto& [r, cached] : e_.cache) {
      if (cached.value == nullptr || !live.has(r)) continue;
      if (!in_place_[r]) {
        next.values.emplace(r, cached);
      } else if (cached.dirty) {
        e_.store_register(r, cached.value);
      }
    }
  } else {
    write_back(live);
  }
  go(from, to, true);
}

/// Called at the head of a block.
void Translator::take_over(int block) {
  const auto found = inherited_.find(block);
  if (found == inherited_.end()) return;
  e_.cache = std::move(found->second.values);
  if (flow_.block(block).predecessors.size() == 1) return;
  for (const int r : carried(analysis(), in_place_, block)) {
    Value* first = e_.cache[r].value;
    llvm::PHINode* phi = ir_.CreatePHI(first->getType(), 2);
    phi->addIncoming(first, found->second.from);
    carried_[r] = phi;
    e_.cache[r] = Cached{phi, nullptr, true};
  }
}

/// Behind the barrier that leads to `block`: the first warp does its common work, the others copy
/// the results from its registers.
void Translator::emit_common_work(int block) {
  std::vector<const Instruction*> work;
  std::vector<int> results;
  for (std::uint32_t k = flow_.block(block).first; k < flow_.block(block).last; ++k) {
    if (!common_.instructions[k]) continue;
    work.push_back(&e_.function.body[k]);
    for (const int r : register_use(*work.back()).writes) {
      if (common_.results[r]) results.push_back(r);
    }
  }
  if (work.empty()) return;
  Value* leader = ir_.CreateLoad(ir_.getPtrTy(), e_.context_field(offsetof(WarpContext, leader)));
  llvm::BasicBlock* first = e_.new_block("first");
  llvm::BasicBlock* others = e_.new_block("others");
  llvm::BasicBlock* next = e_.new_block("next");
  ir_.CreateCondBr(ir_.CreateIsNull(leader), first, others);
  ir_.SetInsertPoint(first);
  e_.cache.clear();
  for (const Instruction* instruction : work) e_.emit(*instruction);
  for (const int r : results) e_.store_register(r, e_.cache[r].value);
  ir_.CreateBr(next);
  ir_.SetInsertPoint(others);
  for (const int r : results) {
    const unsigned bytes = e_.register_bits(r) == 1 ? 1 : e_.register_bits(r) / 8;
    const auto slot = static_cast<std::uint32_t>(e_.slots[r]);
    ir_.CreateMemCpy(e_.slot_pointer(r), llvm::Align(8),
                     ir_.CreateConstInBoundsGEP1_32(ir_.getInt8Ty(), leader, slot), llvm::Align(8),
                     bytes);
  }
  ir_.CreateBr(next);
  ir_.SetInsertPoint(next);
  e_.cache.clear();
}

}  // namespace braid::cpu
