#include <llvm/IR/Constants.h>

#include <algorithm>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

Translator::Handler Translator::handler(Op op) {
  static constexpr Handler kHandlers[] = {
#define PTX(op, names, modifiers, operands, handler, ...) &Translator::handler,
#include "runtime/cpu/ptx/opcodes.inc"
#undef PTX
  };
  return kHandlers[static_cast<std::size_t>(op)];
}

/// The matrix products that emit_mma() takes, several at once.
bool Translator::is_grouped(const Instruction& instruction) {
  return ptx::traits(instruction).unit == ptx::Unit::kMatrix &&
         handler(instruction.entry->op).handle == &Translator::op_elsewhere;
}

namespace {

llvm::Function* declare_round(llvm::Module& out) {
  llvm::LLVMContext& context = out.getContext();
  auto* type = llvm::FunctionType::get(
      llvm::FixedVectorType::get(llvm::Type::getInt16Ty(context), 32),
      {llvm::FixedVectorType::get(llvm::Type::getFloatTy(context), 32)}, false);
  auto* function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "ptx.round_by_host", out);
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return function;
}

/// Whether a guard is known to hold in all lanes.
bool is_all(const llvm::Value* guard) {
  const auto* known = llvm::dyn_cast<llvm::Constant>(guard);
  return known != nullptr && known->isAllOnesValue();
}

}  // namespace

Translator::Translator(llvm::Module& out, const ptx::Module& module, const ptx::Function& function,
                       const Layout& layout, bool aligned, Instrumentation instrumentation,
                       HostCode host, MatrixSums sums)
    : out_(out),
      llvm_(out.getContext()),
      module_(module),
      function_(function),
      layout_(layout),
      aligned_(aligned),
      instrumentation_(instrumentation),
      host_(host),
      sums_(sums),
      flow_(function),
      sites_(function, flow_),
      shapes_(module, function, flow_, aligned),
      b_(out.getContext(), llvm::TargetFolder(out.getDataLayout())),
      round_(host.rounds_to_bfloat ? declare_round(out) : nullptr),
      wide_(b_, round_) {
  if (instrumentation.counts) find_joined_loads();
}

void Translator::bad(const Instruction& instruction, const std::string& why) const {
  ptx::fail(instruction.line, "'" + instruction.full_name() + "': " + why);
}

void Translator::bad_combination(const Instruction& instruction) const {
  bad(instruction, "an unsupported combination of modifiers");
}

void Translator::need(const Instruction& instruction, std::size_t operands) const {
  if (instruction.operands.size() != operands) {
    bad(instruction, "expected " + std::to_string(operands) + " operands, found " +
                         std::to_string(instruction.operands.size()));
  }
}

/// Gives a place in the register file to every register that lives across blocks.
void Translator::assign_slots() {
  slots_.assign(function_.registers.size(), -1);
  std::uint32_t at = 0;
  const auto place = [&](std::uint32_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const std::uint32_t result = at;
    at += bytes;
    return result;
  };
  // Registers that a run-time helper accesses in place also need slots.
  in_place_.assign(slots_.size(), false);
  for (const Instruction& instruction : function_.body) {
    const bool all = is_grouped(instruction);
    if (!all && !ptx::is_wgmma(instruction) &&
        handler(instruction.entry->op).handle != &Translator::op_ldmatrix) {
      continue;
    }
    const RegisterUse use = register_use(instruction);
    for (const int r : use.writes) in_place_[r] = true;
    if (!all) continue;
    for (const int r : use.reads) in_place_[r] = true;
  }
  find_common_work();
  find_recomputed();
  for (std::size_t r = 0; r < slots_.size(); ++r) {
    const int reg = static_cast<int>(r);
    const bool crosses = std::ranges::any_of(flow_.blocks(), [&](const Block& block) {
      return block.live_in.has(reg) || block.live_out.has(reg);
    });
    if (recomputed_[r] >= 0) continue;
    if (!crosses && !in_place_[r] && !is_common_result_[r]) continue;
    const unsigned bits = register_bits(reg);
    std::uint32_t bytes = 8;
    if (shapes_.shape(reg).is_vector()) bytes = bits == 1 ? 4 : std::max(64U, bits * 4);
    slots_[r] = static_cast<std::int32_t>(place(bytes));
  }
  find_undefined(place);
  for (int b = 0; b < flow_.size(); ++b) pending_slots_.push_back(place(4));
  live_slot_ = place(4);
  mask_slot_ = place(4);
  component_order_.assign(flow_.blocks().size(), -1);
  bits_words_.assign(static_cast<std::size_t>(shapes_.components()), 0);
  std::vector<int> sizes(bits_words_.size());
  for (int b = 0; b < flow_.size(); ++b) {
    const int c = shapes_.component(b);
    if (c < 0) continue;
    component_order_[b] = sizes[c]++;
  }
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    bits_words_[c] = static_cast<unsigned>(sizes[c]) / 64 + 1;
    rotate_slots_.push_back(place(4));
    bits_slots_.push_back(place(8));
    for (unsigned word = 1; word < bits_words_[c]; ++word) place(8);
  }
  find_streams(place);
  register_bytes_ = (at + 63) / 64 * 64 + kScratchBytes;
}

KernelInfo Translator::run(const std::string& name) {
  assign_slots();
  number_accumulators();
  find_partial_warps();
  auto* pointer = llvm::PointerType::getUnqual(llvm_);
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer}, false);
  kernel_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, out_);
  kernel_->addFnAttr(llvm::Attribute::NoUnwind);
  kernel_->addFnAttr("prefer-vector-width", "512");
  kernel_->addFnAttr("min-legal-vector-width", "512");
  context_ = kernel_->getArg(0);
  registers_ = kernel_->getArg(1);
  kernel_->addParamAttr(0, llvm::Attribute::getWithAlignment(llvm_, llvm::Align(64)));
  kernel_->addParamAttr(1, llvm::Attribute::NoAlias);
  kernel_->addParamAttr(1, llvm::Attribute::getWithAlignment(llvm_, llvm::Align(64)));

  llvm::BasicBlock* entry = new_block("entry");
  llvm::BasicBlock* begin = new_block("begin");
  dispatchers_.assign(bits_words_.size(), nullptr);
  may_pend_.assign(flow_.blocks().size(), false);
  for (auto& copies : copies_) copies.assign(flow_.blocks().size(), nullptr);
  llvm::BasicBlock* first = copy_of(0, aligned_);
  while (!work_.empty()) {
    const auto [block, full] = work_.back();
    work_.pop_back();
    emit_block(block, full);
  }
  for (int c = 0; c < shapes_.components(); ++c) {
    if (dispatchers_[c] != nullptr) emit_dispatcher(c);
  }
  b_.SetInsertPoint(begin);
  for (int c = 0; c < shapes_.components(); ++c) {
    if (!may_pend(c)) continue;
    const auto at = static_cast<std::size_t>(c);
    b_.CreateAlignedStore(b_.getIntN(64 * bits_words_[at], 0), register_file(bits_slots_[at]),
                          llvm::Align(8));
    b_.CreateStore(b_.getInt32(0), register_file(rotate_slots_[at]));
  }
  for (int b = 0; b < flow_.size(); ++b) {
    if (!may_pend_[b]) continue;
    b_.CreateStore(b_.getInt32(0), register_file(pending_slots_[b]));
  }
  for (const std::int32_t slot : defined_slots_) {
    if (slot < 0) continue;
    b_.CreateStore(b_.getInt32(0), register_file(static_cast<std::uint32_t>(slot)));
  }
  Value* live = aligned_ ? b_.getInt32(~0U) : field(offsetof(WarpContext, live), 32);
  b_.CreateStore(live, register_file(live_slot_));
  b_.CreateStore(live, register_file(mask_slot_));
  b_.CreateBr(first);
  b_.SetInsertPoint(entry);
  Value* resume = b_.CreateLoad(b_.getInt32Ty(), resume_pointer());
  llvm::SwitchInst* choose = b_.CreateSwitch(resume, begin);
  for (std::size_t r = 0; r < resumes_.size(); ++r) {
    choose->addCase(b_.getInt32(static_cast<std::uint32_t>(r) + 1), resumes_[r]);
  }
  expand_roundings();
  return KernelInfo{register_bytes_, layout_.local_bytes, layout_.shared_bytes,
                    static_cast<std::uint32_t>(flow_.waits())};
}

void Translator::emit_block(int index, bool full) {
  b_.SetInsertPoint(copy_of(index, full));
  cache_.clear();
  carried_.clear();
  if (full) take_over(index);
  divergent_ = shapes_.component(index) >= 0;
  run_under(full ? nullptr : b_.CreateLoad(b_.getInt32Ty(), register_file(mask_slot_)));
  emit_body(index);
  emit_end(index, full);
}

/// What follows is run by those lanes, null for all.
void Translator::run_under(Value* lanes) {
  mask_bits_ = lanes == nullptr ? b_.getInt32(~0U) : lanes;
  mask_ = lanes == nullptr ? nullptr : b_.CreateBitCast(lanes, integer(1, false));
}

/// The instructions of a block under the present mask.
void Translator::emit_body(int index) {
  const Block& block = flow_.block(index);
  if (instrumentation_.counts) count_block(index);
  looks_ = block.looks;
  tell_action();
  for (std::uint32_t i = block.first; i < block.last; ++i) {
    // Behind a barrier there is nothing, and who waits there is known by one value.
    const std::uint32_t last = block.parks ? block.last - 1 : block.last;
    if (i < last && is_guarded_row(i) && emit_for_all_lanes(index, i, last)) i = last;
    i = emit_instruction(i, block.last);
  }
}

/// Emits instruction `i` or, of matrix products, as many as go together; returns the last one.
std::uint32_t Translator::emit_instruction(std::uint32_t i, std::uint32_t last) {
  if (i == last || is_common_[i]) return i;
  const Instruction& instruction = function_.body[i];
  if (is_grouped(instruction)) {
    const std::uint32_t count = emit_mma(i, last);
    for (std::uint32_t k = 0; k < count; ++k) {
      track(function_.body[i + k]);
      track_accumulators(function_.body[i + k]);
    }
    return i + count - 1;
  }
  track(instruction);
  track_choice(instruction);
  track_accumulators(instruction);
  if (instrumentation_.counts) joined_now_ = joined_[i];
  emit(instruction);
  return i;
}

/// Without the guard.
void Translator::emit_plain(const Instruction& instruction) {
  const auto [compute, handle] = handler(instruction.entry->op);
  if (handle != nullptr) return (this->*handle)(instruction);
  if (Value* result = (this->*compute)(instruction)) write(instruction.operands[0], result);
}

void Translator::emit(const Instruction& instruction) {
  line_ = instruction.line;
  result_shape_ = has_result(instruction) ? shapes_.result_shape(instruction) : Shape::vector();
  if (result_shape_.form == Shape::Form::kUnknown) result_shape_ = Shape::vector();
  scalar_ = result_shape_.is_table();
  guard_lanes_ = guard_scalar_ = nullptr;
  if (instruction.guard < 0) return emit_plain(instruction);
  const bool effects = ptx::traits(instruction).has_effects();
  const bool uniform = !shapes_.shape(instruction.guard).is_vector();
  Value* guard = load_register(instruction.guard).value;
  if (instruction.guard_negated) guard = b_.CreateNot(guard);
  if (uniform && effects) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    const RegisterUse use = register_use(instruction);
    std::vector<Value*> old;
    for (const int r : use.writes) old.push_back(load_register(r).value);
    auto saved = cache_;
    llvm::BasicBlock* then = new_block("then");
    llvm::BasicBlock* after = new_block("after");
    b_.CreateCondBr(guard, then, after);
    b_.SetInsertPoint(then);
    emit_plain(instruction);
    std::vector<Value*> fresh;
    for (const int r : use.writes) fresh.push_back(load_register(r).value);
    llvm::BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    cache_ = std::move(saved);
    for (std::size_t i = 0; i < use.writes.size(); ++i) {
      llvm::PHINode* phi = b_.CreatePHI(old[i]->getType(), 2);
      phi->addIncoming(old[i], before);
      phi->addIncoming(fresh[i], end);
      cache_[use.writes[i]] = Cached{phi, nullptr, true};
    }
    return;
  }
  if (uniform) {
    guard_scalar_ = guard;
  } else if (!is_all(guard)) {
    guard_lanes_ = guard;
  }
  emit_plain(instruction);
  guard_lanes_ = guard_scalar_ = nullptr;
}

}  // namespace braid::cpu
