// A tuple has the values of a wide access's registers, in order: lane l of value k is element n * l
// + k of memory. It is available in memory order if its values are the parts of one load, or one
// scalar in all lanes, or are computed by the same operation from such tuples. Two bf16 in a word
// are two tuples that are rounded together.

#include "runtime/cpu/translate/wide_values.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "runtime/cpu/translate/interleave.h"

namespace braid::cpu {
namespace {

using llvm::Value;
using Tuple = std::vector<Value*>;
using Pieces = std::vector<Value*>;

/// The scalar that all elements of all vectors equal, or null.
Value* common_scalar(const Tuple& tuple) {
  Value* scalar = llvm::getSplatValue(tuple[0]);
  const bool all = std::all_of(tuple.begin() + 1, tuple.end(),
                               [&](Value* v) { return llvm::getSplatValue(v) == scalar; });
  return all ? scalar : nullptr;
}

bool is_by_element(const llvm::Instruction& i) {
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) {
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::fma:
      case llvm::Intrinsic::sqrt:
      case llvm::Intrinsic::fabs:
      case llvm::Intrinsic::copysign:
        return true;
      default:
        return false;
    }
  }
  if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&i)) {
    const auto elements = [](llvm::Type* type) {
      const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
      return vector == nullptr ? 0U : vector->getNumElements();
    };
    return elements(cast->getSrcTy()) == elements(cast->getDestTy());
  }
  return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CmpInst, llvm::SelectInst>(i);
}

}  // namespace

std::vector<Value*> WideValues::take_apart(Value* all, unsigned n) {
  std::vector<Value*> values = deinterleave(b_, all, n);
  for (unsigned k = 0; k < n && n > 1; ++k) parts_[values[k]] = {all, k, n};
  return values;
}

namespace {

/// The values of one wide store.
class Whole {
 public:
  Whole(llvm::IRBuilderBase& b, llvm::Function* round, unsigned width,
        std::function<Value*(const Tuple&)> loaded)
      : b_(b), round_(round), width_(width), loaded_(std::move(loaded)) {}

  std::optional<Pieces> find(const Tuple& tuple) {
    if (!is_alike(tuple)) return {};
    // A value that others read too would be computed twice.
    for (const Value* value : inside_) {
      for (const llvm::User* user : value->users()) {
        if (!inside_.contains(user)) return {};
      }
    }
    return pieces_of(tuple);
  }

 private:
  /// The f32 that are rounded to the lower (or upper) halves of a tuple's words; empty for other
  /// tuples.
  std::array<Tuple, 2> halves(const Tuple& tuple) {
    using namespace llvm::PatternMatch;  // NOLINT(google-build-using-namespace): as LLVM's do
    std::array<Tuple, 2> result;
    if (width_ != 16 || round_ == nullptr) return result;
    for (Value* value : tuple) {
      Value* bits[2] = {};
      constexpr unsigned kHalf = 16;
      if (!match(value, m_c_Or(m_ZExt(m_Value(bits[0])),
                               m_Shl(m_ZExt(m_Value(bits[1])), m_SpecificInt(kHalf))))) {
        return {};
      }
      for (std::size_t half = 0; half < 2; ++half) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(bits[half]);
        if (call == nullptr || call->getCalledFunction() != round_) return {};
        result[half].push_back(call->getArgOperand(0));
      }
    }
    return result;
  }

  /// Marks everything between a word and the two values that are rounded to it.
  void enter_halves(Value* value) {
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr || !inside_.insert(value).second) return;
    const auto* call = llvm::dyn_cast<llvm::CallInst>(instruction);
    if (call != nullptr && call->getCalledFunction() == round_) return;
    for (Value* operand : instruction->operands()) enter_halves(operand);
  }

  bool is_alike(const Tuple& tuple) {
    if (const auto known = alike_.find(tuple); known != alike_.end()) return known->second;
    return alike_[tuple] = look(tuple);
  }

  bool look(const Tuple& tuple) {
    if (common_scalar(tuple) != nullptr || loaded_(tuple) != nullptr) return true;
    const auto* first = llvm::dyn_cast<llvm::Instruction>(tuple[0]);
    if (first == nullptr) return false;
    if (const auto rounded = halves(tuple); !rounded[0].empty()) {
      for (Value* value : tuple) enter_halves(value);
      return is_alike(rounded[0]) && is_alike(rounded[1]);
    }
    if (!is_by_element(*first)) return false;
    for (Value* value : tuple) {
      const auto* other = llvm::dyn_cast<llvm::Instruction>(value);
      if (other == nullptr || !other->isSameOperationAs(first)) return false;
      inside_.insert(value);
    }
    const unsigned operands = number_of_operands(*first);
    for (unsigned n = 0; n < operands; ++n) {
      if (!is_alike(operand(tuple, n))) return false;
    }
    return true;
  }

  static unsigned number_of_operands(const llvm::Instruction& i) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
    return call == nullptr ? i.getNumOperands() : call->arg_size();
  }

  static Tuple operand(const Tuple& tuple, unsigned n) {
    Tuple result;
    for (Value* value : tuple) result.push_back(llvm::cast<llvm::User>(value)->getOperand(n));
    return result;
  }

  /// The tuple must be is_alike().
  const Pieces& pieces_of(const Tuple& tuple) {
    if (const auto known = pieces_.find(tuple); known != pieces_.end()) return known->second;
    return pieces_[tuple] = compute(tuple);
  }

  Pieces compute(const Tuple& tuple) {
    const std::size_t count = 32 * tuple.size() / width_;
    if (Value* scalar = common_scalar(tuple)) {
      return Pieces(count, b_.CreateVectorSplat(width_, scalar));
    }
    Pieces result;
    if (Value* all = loaded_(tuple)) {
      for (std::size_t p = 0; p < count; ++p) {
        std::vector<int> order(width_);
        std::iota(order.begin(), order.end(), static_cast<int>(p * width_));
        result.push_back(b_.CreateShuffleVector(all, order));
      }
      return result;
    }
    if (const auto rounded = halves(tuple); !rounded[0].empty()) {
      const Pieces low = pieces_of(rounded[0]);
      const Pieces high = pieces_of(rounded[1]);
      for (std::size_t p = 0; p < count; ++p) result.push_back(round_pairs(low[p], high[p]));
      return result;
    }
    const auto& like = *llvm::cast<llvm::Instruction>(tuple[0]);
    std::vector<Pieces> operands;
    for (unsigned n = 0; n < number_of_operands(like); ++n) {
      operands.push_back(pieces_of(operand(tuple, n)));
    }
    for (std::size_t p = 0; p < count; ++p) {
      std::vector<Value*> of;
      for (const Pieces& pieces : operands) of.push_back(pieces[p]);
      result.push_back(compute_like(like, of));
    }
    return result;
  }

  Value* compute_like(const llvm::Instruction& like, const std::vector<Value*>& of) {
    llvm::Type* type = llvm::FixedVectorType::get(like.getType()->getScalarType(), width_);
    Value* result = nullptr;
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&like)) {
      result = b_.CreateIntrinsic(type, call->getIntrinsicID(), of);
    } else if (const auto* compare = llvm::dyn_cast<llvm::CmpInst>(&like)) {
      result = b_.CreateCmp(compare->getPredicate(), of[0], of[1]);
    } else if (llvm::isa<llvm::SelectInst>(like)) {
      result = b_.CreateSelect(of[0], of[1], of[2]);
    } else if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&like)) {
      result = b_.CreateCast(cast->getOpcode(), of[0], type);
    } else if (const auto* unary = llvm::dyn_cast<llvm::UnaryOperator>(&like)) {
      result = b_.CreateUnOp(unary->getOpcode(), of[0]);
    } else {
      result = b_.CreateBinOp(llvm::cast<llvm::BinaryOperator>(like).getOpcode(), of[0], of[1]);
    }
    if (auto* made = llvm::dyn_cast<llvm::Instruction>(result)) made->copyIRFlags(&like);
    return result;
  }

  Value* round_pairs(Value* low, Value* high) {
    std::vector<int> all(32), in_turns(32);
    std::iota(all.begin(), all.end(), 0);
    for (int e = 0; e < 32; ++e) in_turns[e] = e / 2 + e % 2 * 16;
    Value* rounded = b_.CreateCall(round_, b_.CreateShuffleVector(low, high, all));
    return b_.CreateBitCast(b_.CreateShuffleVector(rounded, in_turns),
                            llvm::FixedVectorType::get(b_.getInt32Ty(), width_));
  }

  llvm::IRBuilderBase& b_;
  llvm::Function* round_;
  unsigned width_;  ///< elements per piece
  std::function<Value*(const Tuple&)> loaded_;
  std::map<Tuple, bool> alike_;
  std::map<Tuple, Pieces> pieces_;
  llvm::DenseSet<const Value*> inside_;  ///< values used by the tuple alone
};

}  // namespace

Value* WideValues::put_together(std::span<Value* const> values) {
  if (in_memory_order_ && values.size() > 1 && !parts_.empty()) {
    const auto loaded = [&](const Tuple& tuple) -> Value* {
      const Part first = parts_.lookup(tuple[0]);
      if (first.all == nullptr || first.count != tuple.size()) return nullptr;
      for (unsigned k = 0; k < tuple.size(); ++k) {
        const Part part = parts_.lookup(tuple[k]);
        if (part.all != first.all || part.index != k) return nullptr;
      }
      return first.all;
    };
    constexpr unsigned kPieceBits = 512;
    const unsigned bits = values[0]->getType()->getScalarSizeInBits();
    const unsigned width = std::min(32U, kPieceBits / bits);
    Whole whole(b_, round_, width, loaded);
    if (auto pieces = whole.find(Tuple(values.begin(), values.end()))) {
      return join(b_, std::move(*pieces));
    }
  }
  return interleave(b_, values);
}

}  // namespace braid::cpu
