#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/plans.h"

namespace braid::cpu {

/// Turns one PTX kernel into one LLVM function that runs one warp: control flow, and the plans of
/// tricks. What single instructions become is in handlers/.
///
/// Every block may exist twice: for a full warp, and under a mask. Divergent components have a
/// dispatcher that runs the lowest pending block first; a single block that some lanes skip runs in
/// place. Blocks that need all lanes (`shfl.sync` with all in its mask) run when none of these is
/// elsewhere: lanes that wait for another warp would be passed otherwise.
class Translator {
 public:
  Translator(llvm::Module& out, const Task& task) : e_(out, task) {}

  /// Emits the function under `name` and returns what its launcher must know.
  KernelInfo run(const std::string& name);

 private:
  /// What a block hands on to another one, which only it leads to.
  struct Inheritance {
    RegisterCache values;
    llvm::BasicBlock* from = nullptr;
  };

  // A kernel: translator.cpp
  void make_plans();
  void assign_slots();
  /// What a checked kernel's register file begins with: see KernelInfo.
  [[nodiscard]] std::uint32_t block_entries_bytes() const {
    return 4U * static_cast<std::uint32_t>(flow_.size());
  }
  void emit_block(int block, bool full);
  void run_under(Value* lanes);
  void emit_body(int block);
  std::uint32_t emit_instruction(std::uint32_t i, std::uint32_t last);
  void write_back(const BitSet& live);
  /// Whether accesses are not reported: then some may be left out, or be done twice.
  [[nodiscard]] bool is_unobserved() const {
    return !e_.instrumentation.checks && !e_.instrumentation.counts;
  }

  // Control flow: translator_control.cpp
  llvm::BasicBlock* copy_of(int block, bool full);
  void emit_end(int block, bool full);
  void go(int from, int to, bool full);
  void spread(int from, Value* taken_mask, Value* next_mask);
  int conditional_block(const Block& block) const;
  bool gains_from_full_mask(const Block& block) const;
  void emit_conditional(int from, int block, bool full, Value* lanes);
  void add_pending(int component, int block, Value* mask);
  void leave(int from, bool full, Value* dying);
  void find_partial_warps();
  [[nodiscard]] bool needs_all_lanes(const Block& block) const;
  llvm::BasicBlock* dispatcher(int component);
  bool may_pend(int component) const;
  void emit_dispatcher(int component);
  void back_edge(int from, int to);
  Value* resume_pointer();
  void park();
  Value* predicate_of_end(const Block& block);

  // What plans say: translator_plans.cpp
  [[nodiscard]] Analysis analysis() const { return {e_.ptx_module, e_.function, flow_, shapes_}; }
  bool emit_for_all_lanes(int block, std::uint32_t first, std::uint32_t last);
  void join(const Block& block, const RegisterCache& all, llvm::BasicBlock* all_end,
            llvm::BasicBlock* some_end);
  [[nodiscard]] bool keeps_values(int from, int to) const;
  void leave_for(int from, int to);
  void take_over(int block);
  void emit_common_work(int block);

  Emitter e_;
  llvm::IRBuilder<llvm::TargetFolder>& ir_ = e_.ir;
  const ControlFlow& flow_ = e_.flow;
  const ShapeAnalysis& shapes_ = e_.shapes;

  std::vector<bool> in_place_;  ///< by register: helpers access it in its slot
  CommonWork common_{e_.function};

  // Slots of the control flow's state in the register file. It is in memory, because its values
  // would meet in a phi at every join, which costs the code generator more than everything else.
  std::vector<std::uint32_t> pending_slots_;  ///< by block: lanes waiting to run it
  std::uint32_t mask_slot_ = 0;
  std::vector<std::uint32_t> bits_slots_;  ///< by component: its pending blocks
  std::vector<unsigned> bits_words_;       ///< by component: size of that in 64-bit words
  std::vector<std::uint32_t> rotate_slots_;
  std::vector<std::uint32_t> met_slots_;  ///< by component: blocks whose lanes have met all others
  std::vector<bool> meets_;  ///< by block: its lanes wait for all others of the component
  std::vector<llvm::BasicBlock*> dispatchers_;
  std::vector<llvm::BasicBlock*> copies_[2];
  std::vector<std::pair<int, bool>> work_;
  std::unordered_map<int, Inheritance> inherited_;  ///< by block
  std::vector<llvm::BasicBlock*> resumes_;          ///< where a parked warp goes on
  std::vector<bool> may_pend_;
  std::vector<bool> may_be_partial_;
  std::vector<int> component_order_;                 ///< position of a block in its component
  std::unordered_map<int, llvm::PHINode*> carried_;  ///< values carried by a one-block loop
};

}  // namespace braid::cpu
