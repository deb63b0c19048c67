#include <algorithm>

#include "runtime/cpu/translate/translator.h"

// Values across blocks. If a block has a single predecessor, the values that a full warp computed
// there stay in SSA form, as within a block. The same holds through a loop of one block: registers
// that it changes are phis at its head, and are written to memory only behind it, if needed there.

namespace braid::cpu {
namespace {

/// Vectors that are changed in a loop: as many take half of the widest hosts' registers.
constexpr int kMostCarried = 8;

}  // namespace

/// The registers that a block's next round reads from this one.
std::vector<int> Translator::carried(int index) const {
  const Block& block = flow_.block(index);
  std::vector<int> result;
  for (std::uint32_t k = block.first; k < block.last; ++k) {
    for (const int r : register_use(function_.body[k]).writes) {
      if (block.live_in.has(r) && !in_place_[r]) result.push_back(r);
    }
  }
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// Whether values stay what they are on the way of a full warp.
bool Translator::inherits(int from, int to) const {
  const Block& block = flow_.block(to);
  if (to == 0 || from == to || flow_.block(from).parks || shapes_.component(from) >= 0 ||
      shapes_.component(to) >= 0) {
    return false;
  }
  const auto ways = [&](int b) { return std::ranges::count(block.predecessors, b); };
  if (ways(from) != 1 || ways(from) + ways(to) != std::ssize(block.predecessors)) return false;
  if (ways(to) == 0) return true;
  if (ways(to) != 1 || block.end != BlockEnd::kBranch || block.spins ||
      shapes_.shape(block.predicate).is_vector()) {
    return false;
  }
  const std::vector<int> changed = carried(to);
  return std::ranges::count_if(changed, [&](int r) { return shapes_.shape(r).is_vector(); }) <=
         kMostCarried;
}

/// Ends the current LLVM block of a full warp: it goes to `to`, all of it.
void Translator::leave_for(int from, int to) {
  const BitSet& live = flow_.block(to).live_in;
  if (from == to && !carried_.empty()) {
    for (const auto& [r, phi] : carried_) {
      phi->addIncoming(load_register(r).value, b_.GetInsertBlock());
    }
  } else if (inherits(from, to)) {
    Inheritance& next = inherited_[to];
    for (const int r : flow_.block(to).predecessors.size() > 1 ? carried(to) : std::vector<int>()) {
      load_register(r);
    }
    next.from = b_.GetInsertBlock();
    for (auto& [r, cached] : cache_) {
      if (cached.value == nullptr || !live.has(r)) continue;
      if (!in_place_[r]) {
        next.values.emplace(r, cached);
      } else if (cached.dirty) {
        store_register(r, cached.value);
      }
    }
  } else {
    write_back(live);
  }
  go(from, to, true);
}

/// Called at the head of a block.
void Translator::take_over(int block) {
  const auto found = inherited_.find(block);
  if (found == inherited_.end()) return;
  cache_ = std::move(found->second.values);
  if (flow_.block(block).predecessors.size() == 1) return;
  for (const int r : carried(block)) {
    Value* first = cache_[r].value;
    llvm::PHINode* phi = b_.CreatePHI(first->getType(), 2);
    phi->addIncoming(first, found->second.from);
    carried_[r] = phi;
    cache_[r] = Cached{phi, nullptr, true};
  }
}

}  // namespace braid::cpu
