#include <algorithm>
#include <utility>

#include "runtime/cpu/translate/translator.h"

// Wide accesses behind guards, as compilers emit for rows that may end anywhere: mostly all lanes
// do them. What follows the first of them in its block is emitted twice, for warps where the guards
// hold in all lanes, where it is straight code, and for others.

namespace braid::cpu {
namespace {

using ptx::Space;

/// Instructions to emit twice at most.
constexpr std::uint32_t kMost = 256;

}  // namespace

/// Whether the lanes of a warp, where a vector says which, access a row of memory, some words each.
bool Translator::is_guarded_row(std::uint32_t k) const {
  const Instruction& i = function_.body[k];
  if ((!i.is(Op::kLd) && !i.is(Op::kSt)) || i.guard < 0 || i.guard_negated) return false;
  if (!shapes_.shape(i.guard).is_vector()) return false;
  const Access access = parse_access(i);
  if (access.count == 1 || (access.space != Space::kGlobal && access.space != Space::kGeneric)) {
    return false;
  }
  const Operand& base = i.operands[i.is(Op::kLd) ? 1 : 0].elements[0];
  return is_consecutive(shapes_.operand_shape(base), access.count * access.type.total_bits() / 8);
}

/// The guards of such accesses that stay the same in these instructions.
std::vector<int> Translator::guards_of_rows(std::uint32_t first, std::uint32_t last) const {
  std::vector<int> guards;
  for (std::uint32_t k = first; k < last; ++k) {
    if (is_guarded_row(k)) guards.push_back(function_.body[k].guard);
  }
  std::ranges::sort(guards);
  guards.erase(std::unique(guards.begin(), guards.end()), guards.end());
  for (std::uint32_t k = first; k < last; ++k) {
    for (const int r : register_use(function_.body[k]).writes) std::erase(guards, r);
  }
  return guards;
}

/// These instructions of a block with those moved up that keep no more vectors at a time than their
/// operands do, as sums over what is loaded: nothing else would, and where all lanes load, the next
/// rows come at once.
std::vector<std::uint32_t> Translator::in_order_of_use(const Block& block, std::uint32_t first,
                                                       std::uint32_t last) const {
  std::vector<RegisterUse> uses;
  std::unordered_map<int, std::uint32_t> last_reader;
  for (std::uint32_t i = first; i < last; ++i) {
    uses.push_back(register_use(function_.body[i]));
    for (const int r : uses.back().reads) last_reader[r] = i;
  }
  const auto keeps_less = [&](std::uint32_t i) {
    const RegisterUse& use = uses[i - first];
    const auto is_vector = [&](int r) { return shapes_.shape(r).is_vector(); };
    const auto has = [](const std::vector<int>& registers, int r) {
      return std::ranges::find(registers, r) != registers.end();
    };
    const auto ends = std::ranges::count_if(use.reads, [&](int r) {
      const bool read_later = last_reader[r] != i || block.live_out.has(r);
      return is_vector(r) && (has(use.writes, r) || !read_later);
    });
    return ends > 0 && ends >= std::ranges::count_if(use.writes, is_vector);
  };
  const auto depends = [&](std::uint32_t i, std::uint32_t on) {
    const RegisterUse& later = uses[i - first];
    const RegisterUse& before = uses[on - first];
    const auto meet = [](const std::vector<int>& a, const std::vector<int>& b) {
      return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
    };
    return meet(later.reads, before.writes) || meet(later.writes, before.reads) ||
           meet(later.writes, before.writes);
  };
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = first; i < last; ++i) {
    const Instruction& instruction = function_.body[i];
    auto at = order.end();
    if (ptx::traits(instruction).is_pure() && instruction.guard < 0 && keeps_less(i)) {
      while (at != order.begin() && !depends(i, at[-1])) --at;
    }
    order.insert(at, i);
  }
  return order;
}

/// Emits these instructions of a block, of which the first is a guarded row, for warps where all
/// lanes do such accesses and for others; false where they are too many.
bool Translator::emit_for_all_lanes(int index, std::uint32_t first, std::uint32_t last) {
  if (instrumentation_.checks || instrumentation_.counts || mask_ != nullptr) return false;
  if (last - first > kMost) return false;
  const auto begin = function_.body.begin();
  if (std::any_of(begin + first, begin + last, is_grouped)) return false;
  const std::vector<int> guards = guards_of_rows(first, last);
  if (guards.empty()) return false;
  Value* hold = nullptr;
  for (const int guard : guards) {
    Value* lanes = load_register(guard).value;
    hold = hold == nullptr ? lanes : b_.CreateAnd(hold, lanes);
  }
  llvm::BasicBlock* all = new_block("all");
  llvm::BasicBlock* some = new_block("some");
  b_.CreateCondBr(b_.CreateICmpEQ(lane_bits(hold), b_.getInt32(~0U)), all, some);
  const auto before = cache_;
  const std::vector<std::uint32_t> order = in_order_of_use(flow_.block(index), first, last);
  const auto emit_all = [&](llvm::BasicBlock* start) {
    b_.SetInsertPoint(start);
    for (const std::uint32_t i : order) emit_instruction(i, last);
    return b_.GetInsertBlock();
  };
  for (const int guard : guards) {
    cache_[guard].value = cache_[guard].lanes = llvm::Constant::getAllOnesValue(integer(1, false));
  }
  llvm::BasicBlock* all_end = emit_all(all);
  for (const int guard : guards) cache_[guard] = before.at(guard);
  const auto values = std::exchange(cache_, before);
  llvm::BasicBlock* some_end = emit_all(some);
  join(flow_.block(index), values, all_end, some_end);
  return true;
}

/// Goes on behind both ways with what the end of the block reads, or others behind it.
void Translator::join(const Block& block, const std::unordered_map<int, Cached>& all,
                      llvm::BasicBlock* all_end, llvm::BasicBlock* some_end) {
  llvm::BasicBlock* next = new_block("next");
  b_.CreateBr(next);
  b_.SetInsertPoint(all_end);
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
  const auto some = std::exchange(cache_, {});
  for (const auto& [reg, one] : all) {
    const auto found = some.find(reg);
    if (one.value == nullptr || found == some.end() || found->second.value == nullptr) continue;
    const Cached& other = found->second;
    if (one.value == other.value) {
      cache_[reg] = one;
      continue;
    }
    if (!one.dirty || recomputed_[reg] >= 0) continue;
    if (!block.live_out.has(reg) && reg != block.predicate) continue;
    llvm::PHINode* phi = b_.CreatePHI(one.value->getType(), 2);
    phi->addIncoming(one.value, all_end);
    phi->addIncoming(other.value, some_end);
    cache_[reg] = Cached{phi, nullptr, true};
  }
}

}  // namespace braid::cpu
