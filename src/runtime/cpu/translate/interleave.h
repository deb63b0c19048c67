#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>
#include <vector>

namespace braid::cpu {

/// Lane l of `values` k becomes element n * l + k of one vector, with n (a power of two) values.
llvm::Value* interleave(llvm::IRBuilderBase& b, std::span<llvm::Value* const> values);
/// Vectors of one length, one behind the other; as many as a power of two.
llvm::Value* join(llvm::IRBuilderBase& b, std::vector<llvm::Value*> pieces);
/// The inverse of interleave: n vectors of every n-th element.
std::vector<llvm::Value*> deinterleave(llvm::IRBuilderBase& b, llvm::Value* all, unsigned n);

}  // namespace braid::cpu
