#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <vector>

namespace braid::cpu {

/// Words that lie together in memory, n of each lane. A wide load takes them apart, one vector for
/// each of its registers, and a wide store puts such vectors together: a dozen shuffles each. What
/// a program computes alike from all registers of wide loads, and stores by a wide store, is
/// computed on the words as they lie instead, without a shuffle; a sum over a lane's registers is
/// not. (As LLVM's VectorCombine folds shuffles that come to nothing, but by what the translator
/// knows, before there is code for them.)
class WideValues {
 public:
  /// `round`: a function of 32 f32 to the bits of 32 bf16, or null. It may be called with others.
  WideValues(llvm::IRBuilderBase& b, llvm::Function* round) : b_(b), round_(round) {}

  /// As deinterleave().
  std::vector<llvm::Value*> take_apart(llvm::Value* all, unsigned n);
  /// As interleave(). Values that only served to compute these are dead afterwards.
  llvm::Value* put_together(std::span<llvm::Value* const> values);

 private:
  struct Part {
    llvm::Value* all = nullptr;
    unsigned index = 0;
    unsigned count = 0;
  };

  llvm::IRBuilderBase& b_;
  llvm::Function* round_;
  llvm::DenseMap<llvm::Value*, Part> parts_;
};

}  // namespace braid::cpu
