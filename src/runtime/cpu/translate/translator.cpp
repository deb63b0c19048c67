#include "runtime/cpu/translate/translator.h"

#include <algorithm>

#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/defined.h"
#include "runtime/cpu/translate/floats.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"
#include "runtime/cpu/translate/plans.h"

namespace braid::cpu {

KernelInfo Translator::run(const std::string& name) {
  assign_slots();
  number_accumulators(e_);
  find_partial_warps();
  auto* pointer = llvm::PointerType::getUnqual(ir_.getContext());
  auto* type = llvm::FunctionType::get(ir_.getInt32Ty(), {pointer, pointer}, false);
  e_.kernel = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, e_.out);
  e_.kernel->addFnAttr(llvm::Attribute::NoUnwind);
  e_.kernel->addFnAttr("prefer-vector-width", "512");
  e_.kernel->addFnAttr("min-legal-vector-width", "512");
  e_.context = e_.kernel->getArg(0);
  e_.registers = e_.kernel->getArg(1);
  e_.kernel->addParamAttr(0, llvm::Attribute::getWithAlignment(ir_.getContext(), llvm::Align(64)));
  e_.kernel->addParamAttr(1, llvm::Attribute::NoAlias);
  e_.kernel->addParamAttr(1, llvm::Attribute::getWithAlignment(ir_.getContext(), llvm::Align(64)));

  llvm::BasicBlock* entry = e_.new_block("entry");
  llvm::BasicBlock* begin = e_.new_block("begin");
  dispatchers_.assign(bits_words_.size(), nullptr);
  may_pend_.assign(flow_.blocks().size(), false);
  for (auto& copies : copies_) copies.assign(flow_.blocks().size(), nullptr);
  llvm::BasicBlock* first = copy_of(0, e_.aligned);
  while (!work_.empty()) {
    const auto [block, full] = work_.back();
    work_.pop_back();
    emit_block(block, full);
  }
  for (int c = 0; c < shapes_.components(); ++c) {
    if (dispatchers_[c] != nullptr) emit_dispatcher(c);
  }
  ir_.SetInsertPoint(begin);
  for (int c = 0; c < shapes_.components(); ++c) {
    if (!may_pend(c)) continue;
    const auto at = static_cast<std::size_t>(c);
    ir_.CreateAlignedStore(ir_.getIntN(64 * bits_words_[at], 0), e_.register_file(bits_slots_[at]),
                           llvm::Align(8));
    ir_.CreateStore(ir_.getInt32(0), e_.register_file(rotate_slots_[at]));
    ir_.CreateAlignedStore(ir_.getIntN(64 * bits_words_[at], 0), e_.register_file(met_slots_[at]),
                           llvm::Align(8));
  }
  for (int b = 0; b < flow_.size(); ++b) {
    if (!may_pend_[b]) continue;
    ir_.CreateStore(ir_.getInt32(0), e_.register_file(pending_slots_[b]));
  }
  for (const std::int32_t slot : e_.defined_slots) {
    if (slot < 0) continue;
    ir_.CreateStore(ir_.getInt32(0), e_.register_file(static_cast<std::uint32_t>(slot)));
  }
  if (e_.instrumentation.checks)
    ir_.CreateMemSet(e_.registers, ir_.getInt8(0), block_entries_bytes(), llvm::Align(64));
  Value* live = e_.aligned ? ir_.getInt32(~0U) : e_.field(offsetof(WarpContext, live), 32);
  ir_.CreateStore(live, e_.register_file(e_.live_slot));
  ir_.CreateStore(live, e_.register_file(mask_slot_));
  ir_.CreateBr(first);
  ir_.SetInsertPoint(entry);
  Value* resume = ir_.CreateLoad(ir_.getInt32Ty(), resume_pointer());
  llvm::SwitchInst* choose = ir_.CreateSwitch(resume, begin);
  for (std::size_t r = 0; r < resumes_.size(); ++r) {
    choose->addCase(ir_.getInt32(static_cast<std::uint32_t>(r) + 1), resumes_[r]);
  }
  expand_roundings(e_);
  const Waits waits = e_.tricks.shared_fibers ? flow_.waits() : Waits::kAnywhere;
  return KernelInfo{e_.register_bytes, e_.layout.local_bytes, e_.layout.shared_bytes,
                    static_cast<std::uint32_t>(waits)};
}

void Translator::make_plans() {
  e_.recomputed.assign(e_.function.registers.size(), -1);
  if (!is_unobserved()) return;
  if (e_.tricks.common_work) common_ = find_common_work(analysis());
  if (e_.tricks.recomputed_values) e_.recomputed = find_recomputed(analysis(), in_place_, common_);
}

/// Gives a place in the register file to every register that lives across blocks.
void Translator::assign_slots() {
  e_.slots.assign(e_.function.registers.size(), -1);
  std::uint32_t at = e_.instrumentation.checks ? block_entries_bytes() : 0;
  const auto place = [&](std::uint32_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const std::uint32_t result = at;
    at += bytes;
    return result;
  };
  // Registers that a run-time helper accesses in place also need slots.
  in_place_.assign(e_.slots.size(), false);
  for (const Instruction& instruction : e_.function.body) {
    const bool all = is_grouped(instruction);
    if (!all && !ptx::is_wgmma(instruction) && handler(instruction.entry->op) != &op_ldmatrix) {
      continue;
    }
    const RegisterUse use = register_use(instruction);
    for (const int r : use.writes) in_place_[r] = true;
    if (!all) continue;
    for (const int r : use.reads) in_place_[r] = true;
  }
  make_plans();
  for (std::size_t r = 0; r < e_.slots.size(); ++r) {
    const int reg = static_cast<int>(r);
    const bool crosses = std::ranges::any_of(flow_.blocks(), [&](const Block& block) {
      return block.live_in.has(reg) || block.live_out.has(reg);
    });
    if (e_.recomputed[r] >= 0) continue;
    if (!crosses && !in_place_[r] && !common_.results[r]) continue;
    const unsigned bits = e_.register_bits(reg);
    std::uint32_t bytes = 8;
    if (shapes_.shape(reg).is_vector()) bytes = bits == 1 ? 4 : std::max(64U, bits * 4);
    e_.slots[r] = static_cast<std::int32_t>(place(bytes));
  }
  find_undefined(e_, place);
  for (int b = 0; b < flow_.size(); ++b) pending_slots_.push_back(place(4));
  e_.live_slot = place(4);
  mask_slot_ = place(4);
  component_order_.assign(flow_.blocks().size(), -1);
  bits_words_.assign(static_cast<std::size_t>(shapes_.components()), 0);
  std::vector<int> sizes(bits_words_.size());
  for (int b = 0; b < flow_.size(); ++b) {
    const int c = shapes_.component(b);
    if (c < 0) continue;
    component_order_[b] = sizes[c]++;
  }
  for (const Block& block : flow_.blocks()) meets_.push_back(needs_all_lanes(block));
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    bits_words_[c] = static_cast<unsigned>(sizes[c]) / 64 + 1;
    rotate_slots_.push_back(place(4));
    bits_slots_.push_back(place(8));
    for (unsigned word = 1; word < bits_words_[c]; ++word) place(8);
    met_slots_.push_back(place(8));
    for (unsigned word = 1; word < bits_words_[c]; ++word) place(8);
  }
  e_.stream_slots.assign(e_.function.body.size(), -1);
  if (e_.tricks.prefetches && is_unobserved()) {
    const std::vector<bool> streams = find_streams(e_.function);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i]) e_.stream_slots[i] = static_cast<std::int32_t>(place(8));
    }
  }
  e_.register_bytes = (at + 63) / 64 * 64 + kScratchBytes;
}

/// Stores the registers of `live`, which later blocks read. Under a partial mask the other lanes,
/// which may be anywhere, keep theirs.
void Translator::write_back(const BitSet& live) {
  for (auto& [reg, cached] : e_.cache) {
    if (!cached.dirty || !live.has(reg)) continue;
    if (e_.recomputed[reg] >= 0) continue;
    cached.dirty = false;
    e_.store_register(reg, cached.value);
  }
}

void Translator::emit_block(int index, bool full) {
  ir_.SetInsertPoint(copy_of(index, full));
  e_.cache.clear();
  carried_.clear();
  if (full) take_over(index);
  e_.divergent = shapes_.component(index) >= 0;
  run_under(full ? nullptr : ir_.CreateLoad(ir_.getInt32Ty(), e_.register_file(mask_slot_)));
  emit_body(index);
  emit_end(index, full);
}

/// What follows is run by those lanes, null for all.
void Translator::run_under(Value* lanes) {
  e_.mask_bits = lanes == nullptr ? ir_.getInt32(~0U) : lanes;
  e_.mask = lanes == nullptr ? nullptr : ir_.CreateBitCast(lanes, e_.integer(1, false));
}

/// The instructions of a block under the present mask.
void Translator::emit_body(int index) {
  const Block& block = flow_.block(index);
  if (e_.instrumentation.counts) count_block(e_, index);
  if (e_.instrumentation.checks) {
    Value* reads =
        ir_.CreateLoad(ir_.getInt32Ty(), e_.context_field(offsetof(WarpContext, unwritten_reads)));
    ir_.CreateStore(reads, e_.register_file(4U * static_cast<std::uint32_t>(index)));
  }
  e_.looks = block.looks;
  e_.tell_action();
  for (std::uint32_t i = block.first; i < block.last; ++i) {
    // Behind a barrier there is nothing, and who waits there is known by one value.
    const std::uint32_t last = block.parks ? block.last - 1 : block.last;
    if (i < last && emit_for_all_lanes(index, i, last)) i = last;
    i = emit_instruction(i, block.last);
  }
}

/// Emits instruction `i` or, of matrix products, as many as go together; returns the last one.
std::uint32_t Translator::emit_instruction(std::uint32_t i, std::uint32_t last) {
  if (i == last || common_.instructions[i]) return i;
  const Instruction& instruction = e_.function.body[i];
  if (is_grouped(instruction)) {
    const std::uint32_t count = emit_mma(e_, i, last);
    for (std::uint32_t k = 0; k < count; ++k) {
      track(e_, e_.function.body[i + k]);
      track_accumulators(e_, e_.function.body[i + k]);
    }
    return i + count - 1;
  }
  track(e_, instruction);
  track_choice(e_, instruction);
  track_accumulators(e_, instruction);
  if (e_.instrumentation.counts) e_.joined_now = e_.joined_loads[i];
  e_.emit(instruction);
  return i;
}

}  // namespace braid::cpu
