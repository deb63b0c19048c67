
#include "runtime/cpu/run/mma.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"
#include "runtime/cpu/translate/mma_plan.h"

// mma over registers: as many products as come together are done in one call.

namespace braid::cpu {
namespace {

/// How many registers the operands D, A, B and C of a matrix product have.
struct MmaCounts {
  explicit MmaCounts(std::uint32_t code)
      : a((code & kMmaShort) != 0 ? 2 : 4), b(a / 2), c((code & kMmaHalfSum) != 0 ? 2 : 4) {}
  unsigned a, b, c;
};

/// The registers of an operand; empty unless all its elements are registers.
using Registers = std::vector<int>;

Registers registers_of(const ptx::Operand& operand) {
  Registers registers;
  for (const ptx::Operand& element : operand.elements) {
    if (!element.is_register()) return {};
    registers.push_back(element.index);
  }
  return registers;
}

void collect(const ptx::Operand& operand, std::set<int>& into) {
  for (const ptx::Operand& element : operand.elements) {
    if (element.is_register()) into.insert(element.index);
  }
}

bool has_any(const std::set<int>& registers, const ptx::Operand& of) {
  return std::ranges::any_of(of.elements, [&](const ptx::Operand& element) {
    return element.is_register() && registers.count(element.index) != 0;
  });
}

/// Products that may be done in any order: each is one instruction, or several that add to the same
/// registers.
class MmaGroup {
 public:
  using Product = std::vector<const ptx::Instruction*>;

  /// `adds_up`: whether several may be one. `scratch(operand)`: how many of its registers a helper
  /// does not find in their places.
  MmaGroup(bool adds_up, std::function<unsigned(const ptx::Operand&)> scratch)
      : adds_up_(adds_up), scratch_(std::move(scratch)) {}

  /// Whether it was taken.
  bool add(const ptx::Instruction& i) {
    const ptx::Operand &d = i.operands[0], &a = i.operands[1], &b = i.operands[2],
                       &c = i.operands[3];
    if (has_any(written_, a) || has_any(written_, b)) return false;
    const Registers sums = registers_of(d);
    const auto product = products_of_.find(sums);
    const bool goes_on =
        adds_up_ && registers_of(c) == sums && !sums.empty() && product != products_of_.end();
    if (!goes_on && (has_any(written_, c) || has_any(written_, d) || has_any(added_to_, d))) {
      return false;
    }
    const bool new_a = is_new(as_, a), new_b = is_new(bs_, b);
    const unsigned more =
        (new_a ? scratch_(a) : 0) + (new_b ? scratch_(b) : 0) + scratch_(c) + scratch_(d);
    const bool fits = a_count_ + (new_a ? 1 : 0) <= kMaxMmaA &&
                      b_count_ + (new_b ? 1 : 0) <= kMaxMmaB &&
                      used_scratch_ + more <= kScratchBytes / 128;
    if (!fits && size_ > 0) return false;
    a_count_ += new_a ? 1 : 0;
    b_count_ += new_b ? 1 : 0;
    used_scratch_ += more;
    as_.insert(registers_of(a));
    bs_.insert(registers_of(b));
    collect(d, written_);
    collect(c, added_to_);
    ++size_;
    if (goes_on) {
      products_[product->second].push_back(&i);
    } else {
      if (!sums.empty()) products_of_[sums] = products_.size();
      products_.push_back({&i});
    }
    return true;
  }

  [[nodiscard]] const std::vector<Product>& products() const { return products_; }
  /// In instructions.
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  static bool is_new(const std::set<Registers>& seen, const ptx::Operand& operand) {
    const Registers registers = registers_of(operand);
    return registers.empty() || seen.count(registers) == 0;
  }

  bool adds_up_;
  std::function<unsigned(const ptx::Operand&)> scratch_;
  std::vector<Product> products_;
  std::map<Registers, std::size_t> products_of_;  ///< by D
  std::set<Registers> as_, bs_;
  std::set<int> written_, added_to_;
  unsigned a_count_ = 0, b_count_ = 0, used_scratch_ = 0;
  std::uint32_t size_ = 0;
};

/// The code of a matrix product for the run-time helper.
std::uint32_t mma_code(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  // Decided by the table entry: the depth of k that fills four registers of A.
  std::uint32_t code = 0;
  bool is_short = mods.has("m16n8k8");
  if (i.is(Op::kMmaFloat8)) {
    code = kMmaFloat8 | (mods.of("e4m3", 0) == 1 ? kMmaE5m2A : 0U) |
           (mods.of("e4m3", 1) == 1 ? kMmaE5m2B : 0U);
  } else if (i.is(Op::kMmaInt8)) {
    code = kMmaInt8 | (mods.of("s8", 0) == 0 ? kMmaSignedA : 0U) |
           (mods.of("s8", 1) == 0 ? kMmaSignedB : 0U) | (mods.has("satfinite") ? kMmaSaturate : 0U);
    is_short = mods.has("m16n8k16");
  } else if (i.is(Op::kMmaTf32)) {
    code = kMmaTf32;
    is_short = mods.has("m16n8k4");
  } else {
    // The groups of D, A, B and C name the half first.
    const bool half_sum = mods.of("f16", 0) == 0;
    const bool bfloat = mods.of("f16", 1) == 1;
    const bool half_addend = mods.of("f16", 3) == 0;
    if (bfloat != (mods.of("f16", 2) == 1) || half_sum != half_addend || (half_sum && bfloat)) {
      bad(i, "unsupported types");
    }
    code = (bfloat ? kMmaBfloat : 0U) | (half_sum ? kMmaHalfSum : 0U);
  }
  if (adds_as_hopper(e, code)) code |= kMmaHopper;
  return code | (is_short ? kMmaShort : 0U);
}

}  // namespace

bool adds_as_hopper(Emitter& e, std::uint32_t code) {
  return e.sums == MatrixSums::kHopper && (code & (kMmaHalfSum | kMmaInt8)) == 0;
}

std::uint32_t emit_mma(Emitter& e, std::uint32_t first, std::uint32_t last) {
  const Instruction& head = e.function.body[first];
  e.line = head.line;
  e.guard_lanes = e.guard_scalar = nullptr;
  e.on_bases = false;
  e.result_shape = Shape::vector();
  if (head.guard >= 0) bad(head, "a predicate is not supported");
  const std::uint32_t code = mma_code(e, head);
  const MmaCounts counts(code);
  const bool partial = e.mask != nullptr && e.divergent;
  MmaGroup group((code & (kMmaHalfSum | kMmaSaturate)) == 0, [&](const Operand& operand) {
    return static_cast<unsigned>(std::ranges::count_if(
        operand.elements,
        [&](const Operand& element) { return partial || !passes_in_slot(e, element); }));
  });
  for (std::uint32_t k = first; k < last; ++k) {
    const Instruction& i = e.function.body[k];
    if (i.entry != head.entry || i.guard >= 0 || i.modifiers != head.modifiers) break;
    const std::size_t sizes[] = {counts.c, counts.a, counts.b, counts.c};
    for (std::size_t o = 0; o < 4; ++o) {
      if (i.operands[o].elements.size() != sizes[o]) bad(i, "wrong number of registers");
    }
    if (!group.add(i) || !e.tricks.joined_products) break;
  }
  unsigned used = 0;  // of scratch memory
  const auto take_place = [&](std::uint32_t place) {
    if (place == e.scratch_place(used)) ++used;
    return place;
  };
  const auto places_of = [&](const Operand& operand) {
    MmaPlanBuilder::Places places{};
    for (std::size_t k = 0; k < operand.elements.size(); ++k) {
      places[k] = take_place(place_of_input(e, operand.elements[k], used));
    }
    return places;
  };
  MmaPlanBuilder plan;
  std::map<Registers, MmaPlanBuilder::Places> known;
  const auto places_once = [&](const Operand& operand) {
    const Registers registers = registers_of(operand);
    if (registers.empty()) return places_of(operand);
    const auto found = known.find(registers);
    if (found != known.end()) return found->second;
    return known[registers] = places_of(operand);
  };
  std::vector<std::pair<const Operand*, unsigned>> results;  // and where, if in scratch memory
  for (const MmaGroup::Product& product : group.products()) {
    std::vector<std::uint32_t> as, bs;
    for (const Instruction* i : product) {
      as.push_back(plan.add_a(places_once(i->operands[1])));
      bs.push_back(plan.add_b(places_once(i->operands[2])));
    }
    const MmaPlanBuilder::Places c = places_of(product.front()->operands[3]);
    MmaPlanBuilder::Places d{};
    for (unsigned k = 0; k < counts.c; ++k) {
      const Operand& element = product.back()->operands[0].elements[k];
      results.emplace_back(&element, used);
      d[k] = take_place(place_of_result(e, element, used));
    }
    plan.add_product(as, bs, c, d);
  }
  e.call("mma", {e.registers, e.constant_words(plan.words()), code});
  for (const auto& [element, at] : results) take_result(e, *element, at);
  return group.size();
}

}  // namespace braid::cpu
