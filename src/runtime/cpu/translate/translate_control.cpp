#include <llvm/IR/MDBuilder.h>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

llvm::BasicBlock* Translator::new_block(const char* name) {
  return llvm::BasicBlock::Create(llvm_, name, kernel_);
}

/// Emits `if (condition) body()` with the body out of the way.
void Translator::split(Value* condition, const char* name, llvm::function_ref<void()> body,
                       llvm::MDNode* weights) {
  llvm::BasicBlock* some = new_block(name);
  llvm::BasicBlock* next = new_block("next");
  b_.CreateCondBr(condition, some, next, weights);
  b_.SetInsertPoint(some);
  body();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

void Translator::split_unlikely(Value* condition, llvm::function_ref<void()> body) {
  split(condition, "cold", body, llvm::MDBuilder(llvm_).createBranchWeights(1, 1 << 20));
}

/// The LLVM block of one of the two copies of a block; it is emitted later.
llvm::BasicBlock* Translator::copy_of(int block, bool full) {
  llvm::BasicBlock*& copy = copies_[full ? 1 : 0][block];
  if (copy == nullptr) {
    copy = new_block(full ? "full" : "masked");
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

llvm::BasicBlock* Translator::dispatcher(int component) {
  llvm::BasicBlock*& block = dispatchers_[component];
  if (block == nullptr) {
    block = new_block("dispatch");
    const int exit = shapes_.component_exit(component);
    if (exit >= 0) {
      if (!aligned_ || may_be_partial_[exit]) copy_of(exit, false);
      if (aligned_) copy_of(exit, true);
    }
  }
  return block;
}

/// Stores the registers of `live`, which later blocks read. Under a partial mask the other lanes,
/// which may be anywhere, keep theirs.
void Translator::write_back(const BitSet& live) {
  for (auto& [reg, cached] : cache_) {
    if (!cached.dirty || !live.has(reg)) continue;
    if (recomputed_[reg] >= 0) continue;
    cached.dirty = false;
    store_register(reg, cached.value);
  }
}

void Translator::store_register(int reg, Value* value) {
  const unsigned bits = register_bits(reg);
  const bool vector = shapes_.shape(reg).is_vector();
  if (bits == 1) {
    if (vector) {
      value = lane_bits(value);
      if (mask_ != nullptr && divergent_) {
        Value* old = b_.CreateLoad(b_.getInt32Ty(), slot_pointer(reg));
        value = b_.CreateOr(b_.CreateAnd(value, mask_bits_),
                            b_.CreateAnd(old, b_.CreateNot(mask_bits_)));
      }
    } else {
      value = b_.CreateZExt(value, b_.getInt8Ty());
    }
    b_.CreateStore(value, slot_pointer(reg));
    return;
  }
  const llvm::Align align(vector ? 64 : 8);
  if (vector && mask_ != nullptr && divergent_) {
    Value* old = b_.CreateAlignedLoad(value->getType(), slot_pointer(reg), align);
    value = b_.CreateSelect(mask_, value, old);
  }
  b_.CreateAlignedStore(value, slot_pointer(reg), align);
}

llvm::Value* Translator::predicate_of_end(const Block& block) {
  Value* value = load_register(block.predicate).value;
  return block.negated ? b_.CreateNot(value) : value;
}

/// Loops that may wait let others run on their way back; those that cannot end are an error.
void Translator::back_edge(int from, int to) {
  if (to > from) return;
  if (flow_.block(from).endless) {
    call("stop", {context_, Stop::kEndless, line_});
  }
  if (!flow_.block(from).spins) return;
  // A loop that reads a clock, for example, ends by itself; this also holds for kernels without
  // read-only loops.
  if (!flow_.block(from).looks) store_action();
  call("yield", {context_, flow_.block(from).poll_line});
  const int component = shapes_.component(from);
  if (component < 0) return;
  b_.CreateStore(b_.getInt32(static_cast<unsigned>(component_order_[from]) + 1),
                 register_file(rotate_slots_[component]));
}

/// Tells that the warp runs code which does more than look at memory, where some does no more.
void Translator::tell_action() {
  if (flow_.looks() && !looks_) store_action();
}

void Translator::store_action() {
  if (instrumentation_.checks) return;
  b_.CreateStore(b_.getInt32(1), context_field(offsetof(WarpContext, acted)));
}

void Translator::add_pending(int component, int block, Value* mask) {
  may_pend_[block] = true;
  copy_of(block, false);
  if (aligned_) copy_of(block, true);
  Value* pointer = register_file(pending_slots_[block]);
  Value* old = b_.CreateLoad(b_.getInt32Ty(), pointer);
  b_.CreateStore(b_.CreateOr(old, mask), pointer);
  const auto order = static_cast<unsigned>(component_order_[block]);
  Value* word = register_file(bits_slots_[component] + order / 64 * 8);
  Value* any = b_.CreateZExt(b_.CreateIsNotNull(mask), b_.getInt64Ty());
  // Volatile, so that it stays whole: a byte store before the dispatcher's load stalls it.
  Value* others = b_.CreateLoad(b_.getInt64Ty(), word, /*isVolatile=*/true);
  b_.CreateStore(b_.CreateOr(others, b_.CreateShl(any, order % 64)), word, /*isVolatile=*/true);
}

llvm::Value* Translator::resume_pointer() { return context_field(offsetof(WarpContext, resume)); }

/// Behind a barrier: the warp leaves if it has to wait. What follows may use no value from before.
void Translator::park() {
  llvm::BasicBlock* parked = new_block("parked");
  llvm::BasicBlock* after = new_block("after");
  b_.CreateCondBr(b_.CreateICmpNE(parked_, b_.getInt32(kEnds)), parked, after);
  resumes_.push_back(after);
  b_.SetInsertPoint(parked);
  b_.CreateStore(b_.getInt32(static_cast<std::uint32_t>(resumes_.size())), resume_pointer());
  b_.CreateRet(parked_);
  b_.SetInsertPoint(after);
}

/// Ends the current LLVM block: all its lanes go to `to`.
void Translator::go(int from, int to, bool full) {
  back_edge(from, to);
  const int component = shapes_.component(from);
  if (full) {
    b_.CreateBr(copy_of(to, true));
  } else if (component < 0) {
    b_.CreateBr(copy_of(to, false));
  } else if (shapes_.component(to) != component) {
    b_.CreateBr(dispatcher(component));
  } else if (flow_.block(to).predecessors.size() == 1) {
    b_.CreateBr(copy_of(to, false));
  } else {
    add_pending(component, to, b_.CreateLoad(b_.getInt32Ty(), register_file(mask_slot_)));
    b_.CreateBr(dispatcher(component));
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
      b_.CreateStore(takes ? taken_mask : next_mask, register_file(mask_slot_));
      b_.CreateBr(copy_of(inside, false));
      return;
    }
  }
  if (takes) {
    add_pending(component, block.taken, taken_mask);
  }
  if (skips) add_pending(component, block.next, next_mask);
  b_.CreateBr(dispatcher(component));
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
    for (const Operand& operand : function_.body[i].operands) {
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
  llvm::BasicBlock* meeting = new_block("meeting");
  const auto before = cache_;
  const auto run = [&](llvm::BasicBlock* start, Value* mask) {
    b_.SetInsertPoint(start);
    cache_ = before;
    divergent_ = true;
    run_under(mask);
    emit_body(index);
    line_ = block.line;
    write_back(block.live_out);
    b_.CreateBr(meeting);
  };
  llvm::BasicBlock* some = new_block("some");
  if (full && gains_from_full_mask(block)) {
    llvm::BasicBlock* all = new_block("all");
    llvm::SwitchInst* choose = b_.CreateSwitch(lanes, some);
    choose->addCase(b_.getInt32(0), meeting);
    choose->addCase(b_.getInt32(~0U), all);
    run(all, nullptr);
  } else {
    b_.CreateCondBr(b_.CreateIsNull(lanes), meeting, some);
  }
  run(some, lanes);
  b_.SetInsertPoint(meeting);
  go(from, block.next, full);
}

/// The lanes of `dying` return; the others go on to the next block.
void Translator::leave(int from, bool full, Value* dying) {
  const Block& block = flow_.block(from);
  const int component = shapes_.component(from);
  llvm::BasicBlock* some = new_block("leave");
  if (full) {
    llvm::BasicBlock* none = new_block("stay");
    b_.CreateCondBr(b_.CreateIsNull(dying), none, some);
    b_.SetInsertPoint(none);
    go(from, block.next, true);
  } else {
    b_.CreateBr(some);
  }
  b_.SetInsertPoint(some);
  Value* alive = b_.CreateNot(dying);
  Value* mask = full ? alive : b_.CreateAnd(mask_bits_, alive);
  b_.CreateStore(b_.CreateAnd(live_lanes(), alive), register_file(live_slot_));
  b_.CreateStore(mask, register_file(mask_slot_));
  llvm::BasicBlock* gone = new_block("gone");
  llvm::BasicBlock* rest = new_block("rest");
  b_.CreateCondBr(b_.CreateIsNull(mask), gone, rest);
  b_.SetInsertPoint(gone);
  if (component >= 0 && !full) {
    b_.CreateBr(dispatcher(component));
  } else {
    b_.CreateRet(b_.getInt32(0));
  }
  b_.SetInsertPoint(rest);
  go(from, block.next, false);
}

void Translator::emit_end(int index, bool full) {
  const Block& block = flow_.block(index);
  const int component = shapes_.component(index);
  line_ = block.line;
  Value* predicate = nullptr;
  if (block.predicate >= 0) {
    predicate = predicate_of_end(block);
    check_defined(Operand::of_register(block.predicate), mask_bits_, "branch on");
  }
  const bool alike = block.end == BlockEnd::kBranch && !predicate->getType()->isVectorTy();
  if (full && (block.end == BlockEnd::kJump || alike) &&
      (inherits(index, block.next) || (alike && inherits(index, block.taken)) ||
       !carried_.empty())) {
    if (!alike) {
      leave_for(index, block.next);
      return;
    }
    llvm::BasicBlock* taken = new_block("taken");
    llvm::BasicBlock* next = new_block("next");
    b_.CreateCondBr(predicate, taken, next);
    const auto values = cache_;
    b_.SetInsertPoint(taken);
    leave_for(index, block.taken);
    cache_ = values;
    b_.SetInsertPoint(next);
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
        b_.CreateRet(b_.getInt32(0));
      } else {
        b_.CreateStore(b_.CreateAnd(live_lanes(), b_.CreateNot(mask_bits_)),
                       register_file(live_slot_));
        b_.CreateBr(dispatcher(component));
      }
      return;
    case BlockEnd::kGuardedExit:
      if (predicate->getType()->isVectorTy()) {
        Value* dying = lane_bits(predicate);
        if (instrumentation_.counts) count_parting(index, dying);
        leave(index, full, full ? dying : b_.CreateAnd(dying, mask_bits_));
      } else {
        if (full || component < 0) {
          // All live lanes return, or none: a full warp stays full.
          llvm::BasicBlock* gone = new_block("gone");
          llvm::BasicBlock* stay = new_block("stay");
          b_.CreateCondBr(predicate, gone, stay);
          b_.SetInsertPoint(gone);
          b_.CreateRet(b_.getInt32(0));
          b_.SetInsertPoint(stay);
          go(index, block.next, full);
          return;
        }
        leave(index, full, b_.CreateSelect(predicate, mask_bits_, b_.getInt32(0)));
      }
      return;
    case BlockEnd::kBranch:
      break;
  }
  if (!predicate->getType()->isVectorTy()) {
    // All lanes go the same way.
    llvm::BasicBlock* taken = new_block("taken");
    llvm::BasicBlock* next = new_block("next");
    b_.CreateCondBr(predicate, taken, next);
    b_.SetInsertPoint(taken);
    go(index, block.taken, full);
    b_.SetInsertPoint(next);
    go(index, block.next, full);
    return;
  }
  Value* taken_mask = lane_bits(predicate);
  if (instrumentation_.counts) count_parting(index, taken_mask);
  if (!full) taken_mask = b_.CreateAnd(taken_mask, mask_bits_);
  if (inside >= 0) {
    emit_conditional(index, inside, full,
                     inside == block.taken ? taken_mask : b_.CreateXor(mask_bits_, taken_mask));
    return;
  }
  llvm::BasicBlock* taken = new_block("taken");
  llvm::BasicBlock* next = new_block("next");
  llvm::BasicBlock* other = new_block("some");
  llvm::BasicBlock* parted = new_block("parted");
  b_.CreateCondBr(b_.CreateICmpEQ(taken_mask, mask_bits_), taken, other);
  b_.SetInsertPoint(taken);
  go(index, block.taken, full);
  b_.SetInsertPoint(other);
  b_.CreateCondBr(b_.CreateIsNull(taken_mask), next, parted);
  b_.SetInsertPoint(next);
  go(index, block.next, full);
  b_.SetInsertPoint(parted);
  spread(index, taken_mask, b_.CreateXor(mask_bits_, taken_mask));
}

/// Whether any block of a component may be waited for.
bool Translator::may_pend(int component) const {
  for (int b = 0; b < flow_.size(); ++b) {
    if (shapes_.component(b) == component && may_pend_[b]) return true;
  }
  return false;
}

/// Runs the lowest pending block of a component (after a back edge: the next higher one first), and
/// goes on behind the component when none is pending: then all live lanes are there.
void Translator::emit_dispatcher(int component) {
  const auto c = static_cast<std::size_t>(component);
  b_.SetInsertPoint(dispatchers_[c]);
  llvm::Type* type = b_.getIntNTy(64 * bits_words_[c]);
  Value* zero = llvm::ConstantInt::get(type, 0);
  Value* bits = nullptr;
  llvm::BasicBlock* pick = nullptr;
  if (may_pend(component)) {
    bits = b_.CreateAlignedLoad(type, register_file(bits_slots_[c]), llvm::Align(8));
    pick = new_block("pick");
    llvm::BasicBlock* done = new_block("done");
    b_.CreateCondBr(b_.CreateICmpEQ(bits, zero), done, pick);
    b_.SetInsertPoint(done);
  }
  const int exit = shapes_.component_exit(component);
  if (exit < 0) {
    b_.CreateRet(b_.getInt32(0));
  } else if (aligned_ && !may_be_partial_[exit]) {
    b_.CreateStore(b_.getInt32(~0U), register_file(mask_slot_));
    b_.CreateBr(copies_[1][exit]);
  } else {
    Value* live = live_lanes();
    b_.CreateStore(live, register_file(mask_slot_));
    llvm::BasicBlock* dead = new_block("dead");
    llvm::BasicBlock* masked = copies_[0][exit];
    llvm::SwitchInst* choose = b_.CreateSwitch(live, masked);
    choose->addCase(b_.getInt32(0), dead);
    if (aligned_) choose->addCase(b_.getInt32(~0U), copies_[1][exit]);
    b_.SetInsertPoint(dead);
    b_.CreateRet(b_.getInt32(0));
  }
  if (pick == nullptr) return;

  b_.SetInsertPoint(pick);
  Value* rotate =
      b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), register_file(rotate_slots_[c])), type);
  b_.CreateStore(b_.getInt32(0), register_file(rotate_slots_[c]));
  Value* high = b_.CreateAnd(bits, b_.CreateShl(llvm::Constant::getAllOnesValue(type), rotate));
  Value* from = b_.CreateSelect(b_.CreateICmpEQ(high, zero), bits, high);
  Value* index = b_.CreateIntrinsic(type, llvm::Intrinsic::cttz, {from, b_.getTrue()});
  Value* bit = b_.CreateShl(llvm::ConstantInt::get(type, 1), index);
  b_.CreateAlignedStore(b_.CreateXor(bits, bit), register_file(bits_slots_[c]), llvm::Align(8));
  llvm::BasicBlock* never = new_block("never");
  llvm::SwitchInst* choose = b_.CreateSwitch(b_.CreateTrunc(index, b_.getInt32Ty()), never);
  b_.SetInsertPoint(never);
  b_.CreateUnreachable();
  for (int block = 0; block < flow_.size(); ++block) {
    const auto index_of = static_cast<std::size_t>(block);
    if (shapes_.component(block) != component || !may_pend_[index_of]) continue;
    llvm::BasicBlock* resume = new_block("resume");
    choose->addCase(b_.getInt32(static_cast<unsigned>(component_order_[index_of])), resume);
    b_.SetInsertPoint(resume);
    Value* pointer = register_file(pending_slots_[index_of]);
    Value* mask = b_.CreateLoad(b_.getInt32Ty(), pointer);
    b_.CreateStore(b_.getInt32(0), pointer);
    b_.CreateStore(mask, register_file(mask_slot_));
    if (aligned_) {
      b_.CreateCondBr(b_.CreateICmpEQ(mask, b_.getInt32(~0U)), copies_[1][index_of],
                      copies_[0][index_of]);
    } else {
      b_.CreateBr(copies_[0][index_of]);
    }
  }
}

}  // namespace braid::cpu
