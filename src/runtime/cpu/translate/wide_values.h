#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <vector>

namespace braid::cpu {

/// Words that are contiguous in memory, n per lane. A wide load splits them into one vector per
/// register, and a wide store joins such vectors, with a dozen shuffles each. Computations that
/// treat all registers of wide loads alike, and end in a wide store, are done in memory order
/// instead, without a shuffle; a sum over a lane's registers is not such a computation. (LLVM's
/// VectorCombine folds redundant shuffles in the same way; this uses what the translator knows,
/// before the code exists.)
class WideValues {
 public:
  /// `round`: a function that rounds 32 f32 to bf16, or null. It may be called for other values
  /// too. Without `in_memory_order` each value is taken apart and put together for itself.
  WideValues(llvm::IRBuilderBase& b, llvm::Function* round, bool in_memory_order)
      : b_(b), round_(round), in_memory_order_(in_memory_order) {}

  /// Like deinterleave().
  std::vector<llvm::Value*> take_apart(llvm::Value* all, unsigned n);
  /// Like interleave(). Values used only for the result are dead afterwards.
  llvm::Value* put_together(std::span<llvm::Value* const> values);

 private:
  struct Part {
    llvm::Value* all = nullptr;
    unsigned index = 0;
    unsigned count = 0;
  };

  llvm::IRBuilderBase& b_;
  llvm::Function* round_;
  bool in_memory_order_;
  llvm::DenseMap<llvm::Value*, Part> parts_;
};

}  // namespace braid::cpu
