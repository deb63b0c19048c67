#include <algorithm>
#include <unordered_map>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/plans.h"

// Wide accesses behind guards, as compilers emit for rows that may end anywhere: mostly all lanes
// do them. What follows the first of them in its block is emitted twice, for warps where the guards
// hold in all lanes, where it is straight code, and for others.

namespace braid::cpu {

using ptx::Space;

bool is_guarded_row(const Analysis& a, std::uint32_t k) {
  const Instruction& i = a.function.body[k];
  if ((!i.is(Op::kLd) && !i.is(Op::kSt)) || i.guard < 0 || i.guard_negated) return false;
  if (!a.shapes.shape(i.guard).is_vector()) return false;
  const MemoryAccess access = parse_access(i);
  if (access.count == 1 || (access.space != Space::kGlobal && access.space != Space::kGeneric)) {
    return false;
  }
  const Operand& base = i.operands[i.is(Op::kLd) ? 1 : 0].elements[0];
  return is_consecutive(a.shapes.operand_shape(base), access.count * access.type.total_bits() / 8);
}

std::vector<int> guards_of_rows(const Analysis& a, std::uint32_t first, std::uint32_t last) {
  std::vector<int> guards;
  for (std::uint32_t k = first; k < last; ++k) {
    if (is_guarded_row(a, k)) guards.push_back(a.function.body[k].guard);
  }
  std::ranges::sort(guards);
  guards.erase(std::unique(guards.begin(), guards.end()), guards.end());
  for (std::uint32_t k = first; k < last; ++k) {
    for (const int r : register_use(a.function.body[k]).writes) std::erase(guards, r);
  }
  return guards;
}

std::vector<std::uint32_t> in_order_of_use(const Analysis& a, const Block& block,
                                           std::uint32_t first, std::uint32_t last) {
  std::vector<RegisterUse> uses;
  std::unordered_map<int, std::uint32_t> last_reader;
  for (std::uint32_t i = first; i < last; ++i) {
    uses.push_back(register_use(a.function.body[i]));
    for (const int r : uses.back().reads) last_reader[r] = i;
  }
  const auto keeps_less = [&](std::uint32_t i) {
    const RegisterUse& use = uses[i - first];
    const auto is_vector = [&](int r) { return a.shapes.shape(r).is_vector(); };
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
    const Instruction& instruction = a.function.body[i];
    auto at = order.end();
    if (ptx::traits(instruction).is_pure() && instruction.guard < 0 && keeps_less(i)) {
      while (at != order.begin() && !depends(i, at[-1])) --at;
    }
    order.insert(at, i);
  }
  return order;
}

}  // namespace braid::cpu
