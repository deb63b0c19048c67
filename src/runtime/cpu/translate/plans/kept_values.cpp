#include <algorithm>

#include "runtime/cpu/translate/plans.h"

// Values across blocks. If a block has a single predecessor, the values that a full warp computed
// there stay in SSA form, as within a block. The same holds through a loop of one block: registers
// that it changes are phis at its head, and are written to memory only behind it, if needed there.

namespace braid::cpu {
namespace {

/// Vectors that are changed in a loop: as many take half of the widest hosts' registers.
constexpr int kMostCarried = 8;

}  // namespace

std::vector<int> carried(const Analysis& a, const std::vector<bool>& in_place, int index) {
  const Block& block = a.flow.block(index);
  std::vector<int> result;
  for (std::uint32_t k = block.first; k < block.last; ++k) {
    for (const int r : register_use(a.function.body[k]).writes) {
      if (block.live_in.has(r) && !in_place[r]) result.push_back(r);
    }
  }
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool inherits(const Analysis& a, const std::vector<bool>& in_place, int from, int to) {
  const Block& block = a.flow.block(to);
  if (to == 0 || from == to || a.flow.block(from).parks || a.shapes.component(from) >= 0 ||
      a.shapes.component(to) >= 0) {
    return false;
  }
  const auto ways = [&](int b) { return std::ranges::count(block.predecessors, b); };
  if (ways(from) != 1 || ways(from) + ways(to) != std::ssize(block.predecessors)) return false;
  if (ways(to) == 0) return true;
  if (ways(to) != 1 || block.end != BlockEnd::kBranch || block.spins ||
      a.shapes.shape(block.predicate).is_vector()) {
    return false;
  }
  const std::vector<int> changed = carried(a, in_place, to);
  return std::ranges::count_if(changed, [&](int r) { return a.shapes.shape(r).is_vector(); }) <=
         kMostCarried;
}

}  // namespace braid::cpu
