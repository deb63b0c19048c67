#include "runtime/cpu/translate/shape_analysis.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace braid::cpu {
namespace {

using ptx::has_modifier;
using ptx::Instruction;
using ptx::Operand;
using ptx::ShapeRule;
using ptx::Space;
using ptx::Special;

constexpr std::int64_t kMaxTable = 1 << 24;

std::optional<std::int64_t> immediate(const Operand& operand) {
  if (operand.form != Operand::Form::kInteger) return std::nullopt;
  return static_cast<std::int64_t>(operand.bits);
}

unsigned alignment_of(std::int64_t value) {
  return value == 0
             ? 63
             : std::min(62U,
                        static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(value))));
}

/// Alignment of a product. Only a factor of zero makes it zero for sure.
unsigned product_alignment(unsigned a, unsigned b) {
  return a == 63 || b == 63 ? 63 : std::min(62U, a + b);
}

template <class Function>
Shape make_table(unsigned align, bool negative, Function&& element) {
  Shape shape;
  shape.form = Shape::Form::kTable;
  shape.align = static_cast<std::uint8_t>(std::min(align, 63U));
  shape.may_be_negative = negative;
  for (std::size_t l = 0; l < 32; ++l) {
    const std::int64_t value = element(l);
    if (value > kMaxTable || value < -kMaxTable) return Shape::vector();
    shape.table[l] = static_cast<std::int32_t>(value);
  }
  return shape;
}

}  // namespace

bool Shape::is_uniform() const {
  return is_table() && std::ranges::all_of(table, [](int t) { return t == 0; });
}
std::int32_t Shape::min() const { return *std::ranges::min_element(table); }
std::int32_t Shape::max() const { return *std::ranges::max_element(table); }
bool Shape::is_disjoint() const {
  return min() >= 0 && (align >= 31 || max() < (std::int64_t{1} << align));
}
Shape Shape::uniform(unsigned align) {
  Shape shape;
  shape.form = Form::kTable;
  shape.align = static_cast<std::uint8_t>(align);
  return shape;
}
Shape Shape::lanes(unsigned align) {
  return make_table(align, false, [](std::size_t l) { return static_cast<std::int64_t>(l); });
}
Shape Shape::vector() {
  Shape shape;
  shape.form = Form::kVector;
  return shape;
}

ShapeAnalysis::ShapeAnalysis(const ptx::Module& module, const ptx::Function& function,
                             const ControlFlow& flow, bool aligned)
    : module_(module),
      function_(function),
      flow_(flow),
      aligned_(aligned),
      shapes_(function.registers.size()),
      constant_(function.registers.size()),
      values_(function.registers.size()),
      local_(function.registers.size()),
      divergent_(flow.blocks().size()) {
  find_constants();
  find_local_registers();
  const auto solve = [&] {
    do {
      while (update_shapes()) {
      }
    } while (update_divergence());
  };
  solve();
  // A register that nothing writes may hold anything, and so may what is computed from it.
  bool any = false;
  for (Shape& shape : shapes_) {
    if (shape.form != Shape::Form::kUnknown) continue;
    shape = Shape::vector();
    any = true;
  }
  if (any) solve();
  find_components();
}

bool ShapeAnalysis::is_constant(const Operand& operand) const {
  switch (operand.form) {
    case Operand::Form::kRegister:
      return constant_[operand.index];
    case Operand::Form::kSpecial: {
      const auto special = static_cast<Special>(operand.index);
      return special < Special::kClock || special > Special::kGlobalTimerHi;
    }
    case Operand::Form::kMemory:
    case Operand::Form::kVector:
      return std::ranges::all_of(operand.elements,
                                 [&](const Operand& e) { return is_constant(e); });
    default:
      return true;
  }
}

void ShapeAnalysis::find_constants() {
  std::vector<int> writes(function_.registers.size());
  for (const Instruction& instruction : function_.body) {
    for (const int r : register_use(instruction).writes) ++writes[r];
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Block& block : flow_.blocks()) {
      for (std::uint32_t i = block.first; i < block.last; ++i) {
        const Instruction& instruction = function_.body[i];
        const ptx::Traits& traits = ptx::traits(instruction);
        const bool parameter_load =
            traits.shape == ShapeRule::kLoad && has_modifier(instruction, "param");
        if (instruction.guard >= 0 || (!traits.is_pure() && !parameter_load)) continue;
        if (instruction.operands.size() < 2 ||
            !std::all_of(instruction.operands.begin() + 1, instruction.operands.end(),
                         [&](const Operand& o) { return is_constant(o); })) {
          continue;
        }
        if (parameter_load && !operand_shape(instruction.operands[1]).is_table()) continue;
        for (const int r : register_use(instruction).writes) {
          const auto reg = static_cast<std::size_t>(r);
          if (writes[reg] != 1 || constant_[reg]) continue;
          changed = constant_[reg] = true;
          const Operand& source = instruction.operands[1];
          if (traits.shape == ShapeRule::kMove && source.form == Operand::Form::kInteger) {
            values_[reg] = source.bits;
          }
        }
      }
    }
  }
}

std::optional<std::uint64_t> ShapeAnalysis::known_value(const Operand& operand) const {
  if (operand.form == Operand::Form::kInteger) return operand.bits;
  if (!operand.is_register()) return std::nullopt;
  return values_[operand.index];
}

void ShapeAnalysis::find_local_registers() {
  std::vector<int> home(function_.registers.size(), -1);
  const auto visit = [&](int r, int block) {
    int& h = home[r];
    h = h == -1 || h == block ? block : -2;
  };
  for (int b = 0; b < flow_.size(); ++b) {
    for (std::uint32_t i = flow_.block(b).first; i < flow_.block(b).last; ++i) {
      const RegisterUse use = register_use(function_.body[i]);
      for (const int r : use.reads) visit(r, b);
      for (const int r : use.writes) visit(r, b);
    }
    if (flow_.block(b).predicate >= 0) visit(flow_.block(b).predicate, b);
  }
  for (std::size_t r = 0; r < home.size(); ++r) {
    local_[r] = home[r] >= 0 && !flow_.block(home[r]).live_in.has(static_cast<int>(r));
  }
}

bool ShapeAnalysis::update_shapes() {
  bool changed = false;
  for (int b = 0; b < flow_.size(); ++b) {
    for (std::uint32_t i = flow_.block(b).first; i < flow_.block(b).last; ++i) {
      const Instruction& instruction = function_.body[i];
      const RegisterUse use = register_use(instruction);
      if (use.writes.empty()) continue;
      Shape result = result_shape(instruction);
      if (result.form == Shape::Form::kUnknown) continue;
      if (instruction.guard >= 0 && !shape(instruction.guard).is_uniform()) {
        if (shape(instruction.guard).form == Shape::Form::kUnknown) continue;
        result = Shape::vector();
      }
      for (const int r : use.writes) {
        const auto reg = static_cast<std::size_t>(r);
        Shape merged = result;
        if (divergent_[b] && !local_[reg] && !constant_[reg]) {
          merged = Shape::vector();
        }
        Shape& old = shapes_[reg];
        if (old.is_vector()) continue;
        if (old.is_table() && merged.is_table()) {
          if (old.table != merged.table) {
            merged = Shape::vector();
          } else {
            merged.align = std::min(merged.align, old.align);
            merged.may_be_negative = merged.may_be_negative || old.may_be_negative;
          }
        }
        if (!(merged == old)) {
          old = merged;
          changed = true;
        }
      }
    }
  }
  return changed;
}

bool ShapeAnalysis::update_divergence() {
  bool changed = false;
  for (int b = 0; b < flow_.size(); ++b) {
    const Block& block = flow_.block(b);
    if (block.end != BlockEnd::kBranch || shape(block.predicate).is_uniform()) continue;
    std::vector<int> region;
    flow_.divergent_region(b, region);
    for (const int inside : region) {
      if (!divergent_[inside]) {
        divergent_[inside] = true;
        changed = true;
      }
    }
  }
  return changed;
}

/// Components in which lanes of another one reconverge are merged, since they do not continue
/// together.
void ShapeAnalysis::join_touching_components() {
  for (bool changed = true; std::exchange(changed, false);) {
    for (int b = 0; b < flow_.size(); ++b) {
      const Block& block = flow_.block(b);
      if (block.end != BlockEnd::kBranch || shape(block.predicate).is_uniform()) continue;
      std::vector<int> region;
      const int exit = flow_.divergent_region(b, region);
      if (exit < 0 || region.empty()) continue;
      const int mine = component_[region[0]];
      const int other = component_[exit];
      if (other < 0 || other == mine) continue;
      std::replace(component_.begin(), component_.end(), other, mine);
      changed = true;
    }
  }
}

void ShapeAnalysis::find_components() {
  component_.assign(flow_.blocks().size(), -1);
  for (int b = 0; b < flow_.size(); ++b) {
    const Block& block = flow_.block(b);
    if (block.end != BlockEnd::kBranch || shape(block.predicate).is_uniform()) continue;
    std::vector<int> region;
    flow_.divergent_region(b, region);
    int id = static_cast<int>(exits_.size());
    for (const int inside : region) {
      const int old = component_[inside];
      if (old >= 0) id = std::min(id, old);
    }
    if (id == static_cast<int>(exits_.size())) exits_.push_back(-1);
    std::set<int> merged;
    for (const int inside : region) {
      int& c = component_[inside];
      if (c >= 0) merged.insert(c);
      c = id;
    }
    for (int& c : component_) {
      if (merged.contains(c)) c = id;
    }
  }
  join_touching_components();
  for (int b = 0; b < flow_.size(); ++b) {
    const Block& block = flow_.block(b);
    if (block.end != BlockEnd::kBranch || shape(block.predicate).is_uniform()) continue;
    std::vector<int> region;
    const int exit = flow_.divergent_region(b, region);
    if (exit < 0 || region.empty() || component_[exit] >= 0) continue;
    exits_[component_[region[0]]] = exit;
  }
}

Shape ShapeAnalysis::special_shape(Special special) const {
  const bool of_lanes = special >= Special::kLaneMaskEq && special <= Special::kLaneMaskGt;
  if (of_lanes || (special < Special::kNtid && !aligned_)) return Shape::vector();
  if (special == Special::kLaneId) return Shape::lanes(63);
  if (special == Special::kTid) return Shape::lanes(5);
  return Shape::uniform(special == Special::kNtid && aligned_ ? 5 : 0);
}

Shape ShapeAnalysis::operand_shape(const Operand& operand) const {
  switch (operand.form) {
    case Operand::Form::kRegister:
      return shapes_[operand.index];
    case Operand::Form::kInteger:
      return Shape::uniform(alignment_of(static_cast<std::int64_t>(operand.bits)));
    case Operand::Form::kVariable: {
      const auto& variable = module_.variables[operand.index];
      const bool entry_parameter =
          variable.space == Space::kParam &&
          std::ranges::find(function_.params, operand.index) != function_.params.end();
      if (variable.space == Space::kLocal ||
          (variable.space == Space::kParam && !entry_parameter)) {
        return Shape::vector();
      }
      if (variable.space != Space::kShared || operand.bits != 0) return Shape::uniform();
      return Shape::uniform(alignment_of(variable.align));
    }
    case Operand::Form::kSpecial:
      return special_shape(static_cast<Special>(operand.index));
    case Operand::Form::kMemory:
      return operand_shape(operand.elements[0]);
    case Operand::Form::kVector:
    case Operand::Form::kPair: {
      bool unknown = false;
      for (const Operand& element : operand.elements) {
        const Shape shape = operand_shape(element);
        unknown = unknown || shape.form == Shape::Form::kUnknown;
        if (shape.form != Shape::Form::kUnknown && !shape.is_uniform()) return Shape::vector();
      }
      return unknown ? Shape{} : Shape::uniform();
    }
    default:
      return Shape::uniform();
  }
}

Shape ShapeAnalysis::bitwise(const Instruction& instruction, const Shape& a, const Shape& b) const {
  // An immediate is a base and a constant in the low bits that the other table may fill.
  const auto low_of = [](const Operand& operand, const Shape& other) -> std::int64_t {
    const auto value = immediate(operand);
    if (!value) return 0;
    const unsigned bits = std::min<unsigned>(other.align, 31);
    return *value & ((std::int64_t{1} << bits) - 1);
  };
  const bool immediate_b = immediate(instruction.operands[2]).has_value();
  if (!a.is_disjoint() || !(b.is_disjoint() || immediate_b)) return Shape::vector();
  const std::int64_t reach = std::max(a.max(), b.max());
  const unsigned common = immediate_b ? a.align : std::min(a.align, b.align);
  if (common < 31 && reach >= (std::int64_t{1} << common)) return Shape::vector();
  const std::int64_t low = low_of(instruction.operands[2], a);
  const ShapeRule rule = ptx::traits(instruction).shape;
  const auto apply = [&](std::int64_t x, std::int64_t y) {
    return rule == ShapeRule::kAnd ? x & y : rule == ShapeRule::kOr ? x | y : x ^ y;
  };
  unsigned align = std::min(a.align, b.align);
  if (rule == ShapeRule::kAnd) {
    align = std::max(a.align, b.align);
    // The base of the lane number within a row of 32 is known.
    const auto value = static_cast<std::uint64_t>(immediate(instruction.operands[2]).value_or(-1));
    if (a.align < 63 && value >> a.align == 0) align = 63;
  }
  return make_table(align, false, [&](std::size_t l) {
    return apply(a.table[l], b.table[l] + low) - apply(0, low);
  });
}

/// The shape of x * y + c.
Shape ShapeAnalysis::product(const Instruction& instruction, ptx::Type type) const {
  const auto& operands = instruction.operands;
  const Shape a = operand_shape(operands[1]);
  const Shape b = operand_shape(operands[2]);
  const Shape c = operands.size() > 3 ? operand_shape(operands[3]) : Shape::uniform(63);
  const auto x = immediate(operands[1]);
  const auto y = immediate(operands[2]);
  const bool negative = a.may_be_negative || b.may_be_negative;
  const bool wide = has_modifier(instruction, "wide");
  if (wide && !type.is_signed() && negative && !(a.is_uniform() && b.is_uniform())) {
    return Shape::vector();
  }
  if ((!a.is_uniform() && !y) || (!b.is_uniform() && !x)) return Shape::vector();
  const std::int64_t factor = !a.is_uniform() ? *y : !b.is_uniform() ? *x : 0;
  if (factor > kMaxTable || factor < -kMaxTable) return Shape::vector();
  const Shape& scaled = a.is_uniform() ? b : a;
  return make_table(std::min<unsigned>(product_alignment(a.align, b.align), c.align),
                    negative || c.may_be_negative || factor < 0,
                    [&](std::size_t l) { return scaled.table[l] * factor + c.table[l]; });
}

Shape ShapeAnalysis::sum(const Instruction& instruction, ptx::Type type) const {
  const Shape a = operand_shape(instruction.operands[1]);
  const Shape b = operand_shape(instruction.operands[2]);
  const bool subtract = ptx::traits(instruction).shape == ShapeRule::kDifference;
  const auto constant = immediate(instruction.operands[2]);
  const bool below = subtract || (constant && *constant < 0) ||
                     (constant && type.bits == 32 && *constant > 0x7fffffff);
  return make_table(std::min(a.align, b.align), a.may_be_negative || b.may_be_negative || below,
                    [&](std::size_t l) {
                      return std::int64_t{a.table[l]} +
                             (subtract ? -1 : 1) * std::int64_t{b.table[l]};
                    });
}

/// A shift by a constant; nothing if the amount or the value has no table.
std::optional<Shape> ShapeAnalysis::shift(const Instruction& instruction) const {
  const Shape a = operand_shape(instruction.operands[1]);
  const std::int64_t by = *immediate(instruction.operands[2]);
  if (ptx::traits(instruction).shape == ShapeRule::kShiftLeft) {
    if (by < 0 || by > 24) return std::nullopt;
    return make_table(product_alignment(a.align, static_cast<unsigned>(by)), a.may_be_negative,
                      [&](std::size_t l) { return std::int64_t{a.table[l]} << by; });
  }
  if (by < 0 || by > 31 || !a.is_disjoint()) return std::nullopt;
  const unsigned align = a.align == 63  ? 63U
                         : a.align > by ? a.align - static_cast<unsigned>(by)
                                        : 0U;
  return make_table(align, false, [&](std::size_t l) { return a.table[l] >> by; });
}

Shape ShapeAnalysis::result_shape(const Instruction& instruction) const {
  const auto& operands = instruction.operands;
  const ShapeRule rule = ptx::traits(instruction).shape;
  if (rule == ShapeRule::kUniform) return Shape::uniform();
  bool uniform = true;
  bool tables = true;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Shape shape = operand_shape(operands[i]);
    if (shape.form == Shape::Form::kUnknown) return shape;
    uniform = uniform && shape.is_uniform();
    tables = tables && shape.is_table();
  }
  if (rule == ShapeRule::kGroup) {
    // Groups of lanes may each have their own member mask and result.
    const bool masked = operands.size() == 3;
    return !masked || operand_shape(operands[2]).is_uniform() ? Shape::uniform() : Shape::vector();
  }
  if (rule == ShapeRule::kLoad) {
    const bool private_space = has_modifier(instruction, "local");
    return uniform && !private_space ? Shape::uniform() : Shape::vector();
  }
  if (rule == ShapeRule::kLanes || !tables) return Shape::vector();
  return table_shape(instruction, rule, uniform);
}

/// The shape of an instruction whose operands all have tables.
Shape ShapeAnalysis::table_shape(const Instruction& instruction, ptx::ShapeRule rule,
                                 bool uniform) const {
  const auto& operands = instruction.operands;
  const Shape same = uniform ? Shape::uniform() : Shape::vector();
  const auto parsed = instruction.type();
  const ptx::Type type = parsed.value_or(ptx::Type{});
  const bool integer = parsed && !type.is_float() && type.bits >= 32 && type.lanes == 1 &&
                       !has_modifier(instruction, "sat") && !has_modifier(instruction, "cc");
  switch (rule) {
    case ShapeRule::kSum:
    case ShapeRule::kDifference:
      return integer ? sum(instruction, type) : same;
    case ShapeRule::kProduct:
      return integer && !has_modifier(instruction, "hi") ? product(instruction, type) : same;
    case ShapeRule::kShiftLeft:
    case ShapeRule::kShiftRight:
      return integer && immediate(operands[2]) ? shift(instruction).value_or(same) : same;
    case ShapeRule::kAnd:
    case ShapeRule::kOr:
    case ShapeRule::kXor: {
      if (!integer) return same;
      const Shape a = operand_shape(operands[1]);
      if (!uniform) return bitwise(instruction, a, operand_shape(operands[2]));
      const auto constant = immediate(operands[2]);
      if (!constant) return same;
      const unsigned other = alignment_of(*constant);
      return Shape::uniform(rule == ShapeRule::kAnd ? std::max<unsigned>(a.align, other)
                                                    : std::min<unsigned>(a.align, other));
    }
    case ShapeRule::kMove:
      return type.bits >= 32 && operands[1].form != Operand::Form::kVector &&
                     operands[0].form != Operand::Form::kVector
                 ? operand_shape(operands[1])
                 : same;
    case ShapeRule::kSame:
      return operand_shape(operands[1]);
    case ShapeRule::kConvert: {
      if (instruction.modifiers.size() != 2 || !integer) return same;
      const auto to = ptx::parse_type(instruction.modifiers[0]);
      if (!to || to->is_float() || to->bits < 32) return same;
      const Shape a = operand_shape(operands[1]);
      const bool wraps = to->bits > type.bits && !type.is_signed() && a.may_be_negative;
      return wraps && !uniform ? Shape::vector() : a;
    }
    default:
      return compares_alike(instruction) ? Shape::uniform() : same;
  }
}

/// Whether all lanes compare alike with a constant, which their run of values does not meet: thread
/// numbers with a multiple of 32, where warps have roles.
bool ShapeAnalysis::compares_alike(const Instruction& instruction) const {
  const auto type = instruction.type();
  if (!instruction.is(ptx::Op::kSetp) || !type || type->is_float() || type->lanes != 1)
    return false;
  const Shape a = operand_shape(instruction.operands[1]);
  const auto constant = known_value(instruction.operands[2]);
  if (!constant || a.min() < 0 || !a.is_disjoint()) return false;
  const std::uint64_t run = std::bit_ceil(static_cast<std::uint64_t>(a.max()) + 1);
  const auto is_any = [&](std::initializer_list<const char*> comparisons) {
    return std::ranges::any_of(comparisons,
                               [&](const char* name) { return has_modifier(instruction, name); });
  };
  return (is_any({"lt", "ge", "lo", "hs"}) && *constant % run == 0) ||
         (is_any({"gt", "le", "hi", "ls"}) && (*constant + 1) % run == 0);
}

}  // namespace braid::cpu
