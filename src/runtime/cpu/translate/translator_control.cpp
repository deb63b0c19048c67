#include <algorithm>

#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/defined.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"
#include "runtime/cpu/translate/plans.h"
#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

/// The LLVM block of one of the two copies of a block; it is emitted later.
llvm::BasicBlock* Translator::copy_of(int block, bool full) {
  llvm::BasicBlock*& copy = copies_[full ? 1 : 0][block];
  if (copy == nullptr) {
    copy = e_.new_block(full ? "full" : "masked");
    work_.emplace_back(block, full);
  }
  return copy;
}

/// Marks the blocks that a warp may come to after some of its lanes have returned: elsewhere a full
/// warp is still full where its lanes meet.
void Translator::find_partial_warps() {
  std::vector<int> work;
  for (int b = 0; b < flow_.size(); ++b) {
    const Block& block = flow_.block(b);
    const int component = shapes_.component(b);
    const bool exits = block.end == BlockEnd::kExit || block.end == BlockEnd::kGuardedExit;
    const bool parts = block.predicate >= 0 && shapes_.shape(block.predicate).is_vector();
    if (!exits || (component < 0 && !parts)) continue;
    work.push_back(block.next);
    if (component >= 0) work.push_back(shapes_.component_exit(component));
  }
  may_be_partial_.assign(flow_.blocks().size(), false);
  while (!work.empty()) {
    const int b = work.back();
    work.pop_back();
    if (b < 0 || may_be_partial_[b]) continue;
    may_be_partial_[b] = true;
    work.push_back(flow_.block(b).next);
    work.push_back(flow_.block(b).taken);
  }
}

/// Whether it executes something together with all lanes before it does anything that they could
/// wait for.
bool Translator::needs_all_lanes(const Block& block) const {
  for (std::uint32_t i = block.first; i < block.last; ++i) {
    const Instruction& instruction = e_.function.body[i];
    const Operand* members = member_mask(instruction);
    if (members != nullptr && (shapes_.known_value(*members).value_or(0) & ~0U) == ~0U) return true;
    if (ptx::traits(instruction).has_effects() && !instruction.is(ptx::Op::kLd)) return false;
  }
  return false;
}

llvm::BasicBlock* Translator::dispatcher(int component) {
  llvm::BasicBlock*& block = dispatchers_[component];
  if (block == nullptr) {
    block = e_.new_block("dispatch");
    const int exit = shapes_.component_exit(component);
    if (exit >= 0) {
      if (!e_.aligned || may_be_partial_[exit]) copy_of(exit, false);
      if (e_.aligned) copy_of(exit, true);
    }
  }
  return block;
}

Value* Translator::predicate_of_end(const Block& block) {
  Value* value = e_.load_register(block.predicate).value;
  return block.negated ? ir_.CreateNot(value) : value;
}

/// Loops that may wait let others run on their way back; those that cannot end are an error.
void Translator::back_edge(int from, int to) {
  if (to > from) return;
  if (flow_.block(from).endless) {
    e_.call("stop", {e_.context, Stop::kEndless, e_.line});
  }
  if (!flow_.block(from).spins) return;
  // A loop that reads a clock, for example, ends by itself; this also holds for kernels without
  // read-only loops.
  if (!flow_.block(from).looks) e_.store_action();
  e_.call("yield", {e_.context, flow_.block(from).poll_line});
  const int component = shapes_.component(from);
  if (component < 0) return;
  ir_.CreateStore(ir_.getInt32(static_cast<unsigned>(component_order_[from]) + 1),
                  e_.register_file(rotate_slots_[component]));
}

void Translator::add_pending(int component, int block, Value* mask) {
  may_pend_[block] = true;
  copy_of(block, false);
  if (e_.aligned) copy_of(block, true);
  Value* pointer = e_.register_file(pending_slots_[block]);
  Value* old = ir_.CreateLoad(ir_.getInt32Ty(), pointer);
  ir_.CreateStore(ir_.CreateOr(old, mask), pointer);
  const auto order = static_cast<unsigned>(component_order_[block]);
  Value* word = e_.register_file(bits_slots_[component] + order / 64 * 8);
  Value* any = ir_.CreateZExt(ir_.CreateIsNotNull(mask), ir_.getInt64Ty());
  // Volatile, so that it stays whole: a byte store before the dispatcher's load stalls it.
  Value* others = ir_.CreateLoad(ir_.getInt64Ty(), word, /*isVolatile=*/true);
  ir_.CreateStore(ir_.CreateOr(others, ir_.CreateShl(any, order % 64)), word, /*isVolatile=*/true);
}

Value* Translator::resume_pointer() { return e_.context_field(offsetof(WarpContext, resume)); }

/// Behind a barrier: the warp leaves if it has to wait. What follows may use no value from before.
void Translator::park() {
  llvm::BasicBlock* parked = e_.new_block("parked");
  llvm::BasicBlock* after = e_.new_block("after");
  ir_.CreateCondBr(ir_.CreateICmpNE(e_.parked, ir_.getInt32(kEnds)), parked, after);
  resumes_.push_back(after);
  ir_.SetInsertPoint(parked);
  ir_.CreateStore(ir_.getInt32(static_cast<std::uint32_t>(resumes_.size())), resume_pointer());
  ir_.CreateRet(e_.parked);
  ir_.SetInsertPoint(after);
}

/// Ends the current LLVM block: all its lanes go to `to`.
void Translator::go(int from, int to, bool full) {
  back_edge(from, to);
  const int component = shapes_.component(from);
  if (full) {
    ir_.CreateBr(copy_of(to, true));
  } else if (component < 0) {
    ir_.CreateBr(copy_of(to, false));
  } else if (shapes_.component(to) != component) {
    ir_.CreateBr(dispatcher(component));
  } else if (flow_.block(to).predecessors.size() == 1 && !meets_[to]) {
    ir_.CreateBr(copy_of(to, false));
  } else {
    add_pending(component, to, ir_.CreateLoad(ir_.getInt32Ty(), e_.register_file(mask_slot_)));
    ir_.CreateBr(dispatcher(component));
  }
}

/// Ends the current LLVM block: its lanes part.
void Translator::spread(int from, Value* taken_mask, Value* next_mask) {
  const Block& block = flow_.block(from);
  int component = shapes_.component(from);
  if (component < 0) {
    component = std::max(shapes_.component(block.taken), shapes_.component(block.next));
  }
  back_edge(from, std::min(block.taken, block.next));
  const bool takes = shapes_.component(block.taken) == component;
  const bool skips = shapes_.component(block.next) == component;
  if (shapes_.component(from) < 0 && takes != skips) {
    // The other lanes are at the reconvergence point, so none is pending.
    const int inside = takes ? block.taken : block.next;
    if (flow_.block(inside).predecessors.size() == 1) {
      ir_.CreateStore(takes ? taken_mask : next_mask, e_.register_file(mask_slot_));
      ir_.CreateBr(copy_of(inside, false));
      return;
    }
  }
  if (takes) {
    add_pending(component, block.taken, taken_mask);
  }
  if (skips) add_pending(component, block.next, next_mask);
  ir_.CreateBr(dispatcher(component));
}

/// The one block between a branch and the place where its lanes meet again, or -1.
int Translator::conditional_block(const Block& block) const {
  for (const auto& [inside, meeting] :
       {std::pair(block.taken, block.next), std::pair(block.next, block.taken)}) {
    const Block& candidate = flow_.block(inside);
    if (candidate.end == BlockEnd::kJump && candidate.next == meeting && !candidate.parks &&
        !candidate.spins && candidate.predecessors.size() == 1 && inside != meeting) {
      return inside;
    }
  }
  return -1;
}

/// Whether its code is faster for a full mask: it accesses contiguous memory.
bool Translator::gains_from_full_mask(const Block& block) const {
  for (std::uint32_t i = block.first; i < block.last; ++i) {
    for (const Operand& operand : e_.function.body[i].operands) {
      if (operand.form == Operand::Form::kMemory && shapes_.operand_shape(operand).is_table()) {
        return true;
      }
    }
  }
  return false;
}

/// Ends the current LLVM block: `lanes` run `block` at once, then all go on behind it.
void Translator::emit_conditional(int from, int index, bool full, Value* lanes) {
  const Block& block = flow_.block(index);
  llvm::BasicBlock* meeting = e_.new_block("meeting");
  const auto before = e_.cache;
  const auto run = [&](llvm::BasicBlock* start, Value* mask) {
    ir_.SetInsertPoint(start);
    e_.cache = before;
    e_.divergent = true;
    run_under(mask);
    emit_body(index);
    e_.line = block.line;
    write_back(block.live_out);
    ir_.CreateBr(meeting);
  };
  llvm::BasicBlock* some = e_.new_block("some");
  if (full && gains_from_full_mask(block)) {
    llvm::BasicBlock* all = e_.new_block("all");
    llvm::SwitchInst* choose = ir_.CreateSwitch(lanes, some);
    choose->addCase(ir_.getInt32(0), meeting);
    choose->addCase(ir_.getInt32(~0U), all);
    run(all, nullptr);
  } else {
    ir_.CreateCondBr(ir_.CreateIsNull(lanes), meeting, some);
  }
  run(some, lanes);
  ir_.SetInsertPoint(meeting);
  go(from, block.next, full);
}

/// The lanes of `dying` return; the others go on to the next block.
void Translator::leave(int from, bool full, Value* dying) {
  const Block& block = flow_.block(from);
  const int component = shapes_.component(from);
  llvm::BasicBlock* some = e_.new_block("leave");
  if (full) {
    llvm::BasicBlock* none = e_.new_block("stay");
    ir_.CreateCondBr(ir_.CreateIsNull(dying), none, some);
    ir_.SetInsertPoint(none);
    go(from, block.next, true);
  } else {
    ir_.CreateBr(some);
  }
  ir_.SetInsertPoint(some);
  Value* alive = ir_.CreateNot(dying);
  Value* mask = full ? alive : ir_.CreateAnd(e_.mask_bits, alive);
  ir_.CreateStore(ir_.CreateAnd(e_.live_lanes(), alive), e_.register_file(e_.live_slot));
  ir_.CreateStore(mask, e_.register_file(mask_slot_));
  llvm::BasicBlock* gone = e_.new_block("gone");
  llvm::BasicBlock* rest = e_.new_block("rest");
  ir_.CreateCondBr(ir_.CreateIsNull(mask), gone, rest);
  ir_.SetInsertPoint(gone);
  if (component >= 0 && !full) {
    ir_.CreateBr(dispatcher(component));
  } else {
    ir_.CreateRet(ir_.getInt32(0));
  }
  ir_.SetInsertPoint(rest);
  go(from, block.next, false);
}

void Translator::emit_end(int index, bool full) {
  const Block& block = flow_.block(index);
  const int component = shapes_.component(index);
  e_.line = block.line;
  Value* predicate = nullptr;
  if (block.predicate >= 0) {
    predicate = predicate_of_end(block);
    check_defined(e_, Operand::of_register(block.predicate), e_.mask_bits, "branch on");
  }
  const bool alike = block.end == BlockEnd::kBranch && !predicate->getType()->isVectorTy();
  if (full && (block.end == BlockEnd::kJump || alike) &&
      (keeps_values(index, block.next) || (alike && keeps_values(index, block.taken)) ||
       !carried_.empty())) {
    if (!alike) {
      leave_for(index, block.next);
      return;
    }
    llvm::BasicBlock* taken = e_.new_block("taken");
    llvm::BasicBlock* next = e_.new_block("next");
    ir_.CreateCondBr(predicate, taken, next);
    const auto values = e_.cache;
    ir_.SetInsertPoint(taken);
    leave_for(index, block.taken);
    e_.cache = values;
    ir_.SetInsertPoint(next);
    leave_for(index, block.next);
    return;
  }
  // Registers that only a directly executed block reads need not be in memory.
  const bool parts = block.end == BlockEnd::kBranch && predicate->getType()->isVectorTy();
  const int inside = parts ? conditional_block(block) : -1;
  write_back(inside < 0 ? block.live_out : flow_.block(flow_.block(inside).next).live_in);
  switch (block.end) {
    case BlockEnd::kJump:
      if (block.parks) {
        park();
        emit_common_work(block.next);
      }
      go(index, block.next, full);
      return;
    case BlockEnd::kExit:
      if (full || component < 0) {
        ir_.CreateRet(ir_.getInt32(0));
      } else {
        ir_.CreateStore(ir_.CreateAnd(e_.live_lanes(), ir_.CreateNot(e_.mask_bits)),
                        e_.register_file(e_.live_slot));
        ir_.CreateBr(dispatcher(component));
      }
      return;
    case BlockEnd::kGuardedExit:
      if (predicate->getType()->isVectorTy()) {
        Value* dying = e_.lane_bits(predicate);
        if (e_.instrumentation.counts) count_parting(e_, index, dying);
        leave(index, full, full ? dying : ir_.CreateAnd(dying, e_.mask_bits));
      } else {
        if (full || component < 0) {
          // All live lanes return, or none: a full warp stays full.
          llvm::BasicBlock* gone = e_.new_block("gone");
          llvm::BasicBlock* stay = e_.new_block("stay");
          ir_.CreateCondBr(predicate, gone, stay);
          ir_.SetInsertPoint(gone);
          ir_.CreateRet(ir_.getInt32(0));
          ir_.SetInsertPoint(stay);
          go(index, block.next, full);
          return;
        }
        leave(index, full, ir_.CreateSelect(predicate, e_.mask_bits, ir_.getInt32(0)));
      }
      return;
    case BlockEnd::kBranch:
      break;
  }
  if (!predicate->getType()->isVectorTy()) {
    // All lanes go the same way.
    llvm::BasicBlock* taken = e_.new_block("taken");
    llvm::BasicBlock* next = e_.new_block("next");
    ir_.CreateCondBr(predicate, taken, next);
    ir_.SetInsertPoint(taken);
    go(index, block.taken, full);
    ir_.SetInsertPoint(next);
    go(index, block.next, full);
    return;
  }
  Value* taken_mask = e_.lane_bits(predicate);
  if (e_.instrumentation.counts) count_parting(e_, index, taken_mask);
  if (!full) taken_mask = ir_.CreateAnd(taken_mask, e_.mask_bits);
  if (inside >= 0) {
    emit_conditional(index, inside, full,
                     inside == block.taken ? taken_mask : ir_.CreateXor(e_.mask_bits, taken_mask));
    return;
  }
  llvm::BasicBlock* taken = e_.new_block("taken");
  llvm::BasicBlock* next = e_.new_block("next");
  llvm::BasicBlock* other = e_.new_block("some");
  llvm::BasicBlock* parted = e_.new_block("parted");
  ir_.CreateCondBr(ir_.CreateICmpEQ(taken_mask, e_.mask_bits), taken, other);
  ir_.SetInsertPoint(taken);
  go(index, block.taken, full);
  ir_.SetInsertPoint(other);
  ir_.CreateCondBr(ir_.CreateIsNull(taken_mask), next, parted);
  ir_.SetInsertPoint(next);
  go(index, block.next, full);
  ir_.SetInsertPoint(parted);
  spread(index, taken_mask, ir_.CreateXor(e_.mask_bits, taken_mask));
}

/// Whether any block of a component may be waited for.
bool Translator::may_pend(int component) const {
  for (int b = 0; b < flow_.size(); ++b) {
    if (shapes_.component(b) == component && may_pend_[b]) return true;
  }
  return false;
}

/// Runs the lowest pending block of a component (after a back edge: the next higher one first), of
/// those that need all lanes only where no other is pending, and goes on behind the component when
/// none is: then all live lanes are there.
void Translator::emit_dispatcher(int component) {
  const auto c = static_cast<std::size_t>(component);
  ir_.SetInsertPoint(dispatchers_[c]);
  llvm::Type* type = ir_.getIntNTy(64 * bits_words_[c]);
  Value* zero = llvm::ConstantInt::get(type, 0);
  Value* bits = nullptr;
  llvm::BasicBlock* pick = nullptr;
  if (may_pend(component)) {
    bits = ir_.CreateAlignedLoad(type, e_.register_file(bits_slots_[c]), llvm::Align(8));
    pick = e_.new_block("pick");
    llvm::BasicBlock* done = e_.new_block("done");
    ir_.CreateCondBr(ir_.CreateICmpEQ(bits, zero), done, pick);
    ir_.SetInsertPoint(done);
  }
  const int exit = shapes_.component_exit(component);
  if (exit < 0) {
    ir_.CreateRet(ir_.getInt32(0));
  } else if (e_.aligned && !may_be_partial_[exit]) {
    ir_.CreateStore(ir_.getInt32(~0U), e_.register_file(mask_slot_));
    ir_.CreateBr(copies_[1][exit]);
  } else {
    Value* live = e_.live_lanes();
    ir_.CreateStore(live, e_.register_file(mask_slot_));
    llvm::BasicBlock* dead = e_.new_block("dead");
    llvm::BasicBlock* masked = copies_[0][exit];
    llvm::SwitchInst* choose = ir_.CreateSwitch(live, masked);
    choose->addCase(ir_.getInt32(0), dead);
    if (e_.aligned) choose->addCase(ir_.getInt32(~0U), copies_[1][exit]);
    ir_.SetInsertPoint(dead);
    ir_.CreateRet(ir_.getInt32(0));
  }
  if (pick == nullptr) return;

  ir_.SetInsertPoint(pick);
  Value* rotate =
      ir_.CreateZExt(ir_.CreateLoad(ir_.getInt32Ty(), e_.register_file(rotate_slots_[c])), type);
  ir_.CreateStore(ir_.getInt32(0), e_.register_file(rotate_slots_[c]));
  llvm::APInt meets(64 * bits_words_[c], 0);
  for (int block = 0; block < flow_.size(); ++block) {
    if (shapes_.component(block) == component && meets_[block]) {
      meets.setBit(static_cast<unsigned>(component_order_[block]));
    }
  }
  Value* ready = bits;
  Value* met = nullptr;
  if (!meets.isZero()) {
    met = ir_.CreateAlignedLoad(type, e_.register_file(met_slots_[c]), llvm::Align(8));
    ready = ir_.CreateAnd(bits, ir_.CreateOr(met, llvm::ConstantInt::get(type, ~meets)));
    Value* all_met = ir_.CreateICmpEQ(ready, zero);
    ready = ir_.CreateSelect(all_met, bits, ready);
    met = ir_.CreateSelect(all_met, bits, met);
  }
  Value* high = ir_.CreateAnd(ready, ir_.CreateShl(llvm::Constant::getAllOnesValue(type), rotate));
  Value* from = ir_.CreateSelect(ir_.CreateICmpEQ(high, zero), ready, high);
  Value* index = ir_.CreateIntrinsic(type, llvm::Intrinsic::cttz, {from, ir_.getTrue()});
  Value* bit = ir_.CreateShl(llvm::ConstantInt::get(type, 1), index);
  if (met != nullptr) {
    ir_.CreateAlignedStore(ir_.CreateAnd(met, ir_.CreateNot(bit)), e_.register_file(met_slots_[c]),
                           llvm::Align(8));
  }
  ir_.CreateAlignedStore(ir_.CreateXor(bits, bit), e_.register_file(bits_slots_[c]),
                         llvm::Align(8));
  llvm::BasicBlock* never = e_.new_block("never");
  llvm::SwitchInst* choose = ir_.CreateSwitch(ir_.CreateTrunc(index, ir_.getInt32Ty()), never);
  ir_.SetInsertPoint(never);
  ir_.CreateUnreachable();
  for (int block = 0; block < flow_.size(); ++block) {
    const auto index_of = static_cast<std::size_t>(block);
    if (shapes_.component(block) != component || !may_pend_[index_of]) continue;
    llvm::BasicBlock* resume = e_.new_block("resume");
    choose->addCase(ir_.getInt32(static_cast<unsigned>(component_order_[index_of])), resume);
    ir_.SetInsertPoint(resume);
    Value* pointer = e_.register_file(pending_slots_[index_of]);
    Value* mask = ir_.CreateLoad(ir_.getInt32Ty(), pointer);
    ir_.CreateStore(ir_.getInt32(0), pointer);
    ir_.CreateStore(mask, e_.register_file(mask_slot_));
    if (e_.aligned) {
      ir_.CreateCondBr(ir_.CreateICmpEQ(mask, ir_.getInt32(~0U)), copies_[1][index_of],
                       copies_[0][index_of]);
    } else {
      ir_.CreateBr(copies_[0][index_of]);
    }
  }
}

}  // namespace braid::cpu
