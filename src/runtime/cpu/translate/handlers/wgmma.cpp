#include "runtime/cpu/run/wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/defined.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"
#include "runtime/cpu/translate/mma_plan.h"

// Matrix products of warp groups: wgmma.

namespace braid::cpu {
namespace {

/// Whether it copies a register to another one.
bool moves(const ptx::Instruction& i) {
  return i.is(ptx::Op::kMov) && i.operands[0].is_register() && i.operands[1].is_register();
}

/// The code of its products for multiply_fragments.
std::uint32_t wgmma_type(const Instruction& i) {
  const Choices mods(i);
  if (i.is(Op::kWgmmaTf32) || i.is(Op::kWgmmaSparseTf32)) return kMmaTf32;
  if (i.is(Op::kWgmmaBits)) return 0;
  if (i.is(Op::kWgmmaInt8) || i.is(Op::kWgmmaSparseInt8)) {
    return kMmaInt8 | (mods.of("s8", 0) == 0 ? kMmaSignedA : 0U) |
           (mods.of("s8", 1) == 0 ? kMmaSignedB : 0U) | (mods.has("satfinite") ? kMmaSaturate : 0U);
  }
  const bool half_sum = mods.of("f16", 0) == 0;
  if (i.is(Op::kWgmmaFloat8) || i.is(Op::kWgmmaSparseFloat8)) {
    return kMmaFloat8 | (mods.of("e4m3", 0) == 1 ? kMmaE5m2A : 0U) |
           (mods.of("e4m3", 1) == 1 ? kMmaE5m2B : 0U) | (half_sum ? kMmaHalfSum : 0U);
  }
  const bool bfloat = mods.of("f16", 1) == 1;
  if (bfloat != (mods.of("f16", 2) == 1) || (half_sum && bfloat)) bad(i, "unsupported types");
  return (bfloat ? kMmaBfloat : 0U) | (half_sum ? kMmaHalfSum : 0U);
}

WgmmaCode wgmma_code(const Instruction& i) {
  WgmmaCode code;
  const auto shape = std::ranges::find_if(
      i.modifiers, [](const std::string& modifier) { return modifier.starts_with("m64n"); });
  const unsigned long columns = std::strtoul(shape->c_str() + 4, nullptr, 10);
  // Integers have fewer shapes.
  code.bits = i.is(Op::kWgmmaBits);
  const bool integers = i.is(Op::kWgmmaInt8) || i.is(Op::kWgmmaSparseInt8);
  const bool whole = (code.bits || integers) && columns > 32 && columns % 16 != 0;
  if (columns == 0 || columns > 256 || columns % 8 != 0 || whole) {
    bad(i, "there is no shape ." + *shape);
  }
  code.columns = static_cast<std::uint16_t>(columns);
  code.a_in_registers = i.operands[1].form == Operand::Form::kVector;
  const auto constant = [&](std::size_t operand, std::int64_t low, std::int64_t high) {
    const auto value = static_cast<std::int64_t>(i.operands[operand].bits);
    if (value != low && value != high) {
      bad(i, "operand " + std::to_string(operand + 1) + " must be " + std::to_string(low) + " or " +
                 std::to_string(high));
    }
    return value == high;
  };
  // A sparse A has two more operands.
  const std::size_t more = ptx::is_sparse(i) ? 2 : 0;
  if (i.operands.size() > 4 + more) {
    code.negated = constant(4 + more, -1, 1) != constant(5 + more, -1, 1);
  }
  if (!i.is(Op::kWgmma) && !i.is(Op::kWgmmaSparse)) return code;
  // The flag for a transposed A exists only if A is in memory.
  if ((i.operands.size() == 7 + more) != code.a_in_registers) {
    bad(i,
        fmt::format("expected {} operands, with A in {}", 7 + more + (code.a_in_registers ? 0 : 1),
                    code.a_in_registers ? "registers" : "memory"));
  }
  code.exchanged_a = !code.a_in_registers && constant(6 + more, 0, 1);
  code.exchanged_b = constant(i.operands.size() - 1, 0, 1);
  return code;
}

/// A warp's products of 8 columns each where A is sparse: those of mma.sp.
MatrixCode sparse_code(const Instruction& i) {
  const Choices mods(i);
  MatrixCode code;
  code.fragments = Fragments::kSparse;
  code.m = 16;
  code.n = 8;
  if (i.is(Op::kWgmmaSparseTf32)) {
    code.a = code.b = Element::kTf32;
  } else if (i.is(Op::kWgmmaSparseInt8)) {
    code.a = mods.of("s8", 0) == 0 ? Element::kS8 : Element::kU8;
    code.b = mods.of("s8", 1) == 0 ? Element::kS8 : Element::kU8;
    code.c = code.d = Element::kS32;
    code.saturate = mods.has("satfinite");
  } else if (i.is(Op::kWgmmaSparseFloat8)) {
    code.a = mods.of("e4m3", 0) == 0 ? Element::kE4m3 : Element::kE5m2;
    code.b = mods.of("e4m3", 1) == 0 ? Element::kE4m3 : Element::kE5m2;
  } else {
    code.a = code.b = mods.of("f16", 1) == 0 ? Element::kF16 : Element::kBf16;
  }
  if (mods.of("f16", 0) == 0) code.c = code.d = Element::kF16;
  code.k = static_cast<std::uint8_t>(512 / element_bits(code.a));
  code.selector = choice_of(i, 4, i.operands[4], element_bits(code.a) >= 16 ? 2 : 1, 1);
  return code;
}

/// The offset in the register file of a sum. All lanes take part, or the helper ends the kernel.
std::uint32_t place_of_accumulator(Emitter& e, const Instruction& i, const Operand& operand) {
  if (!passes_in_slot(e, operand)) bad(i, "the registers of D must have 32 bits");
  const auto cached = e.cache.find(operand.index);
  if (cached != e.cache.end() && cached->second.dirty) {
    e.store_register(operand.index, cached->second.value);
    cached->second.dirty = false;
  }
  return static_cast<std::uint32_t>(e.slots[operand.index]);
}

Value* lanes_here(Emitter& e) { return e.ir.CreateAnd(e.live_lanes(), e.mask_bits); }

void order_wgmma(Emitter& e, bool fences) {
  if (!e.instrumentation.checks) return;
  e.call("check_wgmma_order", {e.context, lanes_here(e), fences, e.line});
}

std::uint32_t number_of(Emitter& e, const Operand& reg) {
  return static_cast<std::uint32_t>(e.accumulators[reg.index]);
}

}  // namespace

Value* first_lane(Emitter& e, const Operand& operand, unsigned bits) {
  if (e.shapes.operand_shape(operand).is_uniform()) return e.read_scalar(operand, bits);
  return e.ir.CreateExtractElement(e.read_lanes(operand, bits), std::uint64_t{0});
}

Value* op_wgmma(Emitter& e, const Instruction& i) {
  if (i.guard >= 0) bad(i, "a predicate is not supported");
  std::uint32_t type = wgmma_type(i);
  if (adds_as_hopper(e, type)) type |= kMmaHopper | kMmaOfGroup;
  const WgmmaCode code = wgmma_code(i);
  const unsigned count = code.columns / 8;
  const unsigned sums = (type & kMmaHalfSum) != 0 ? 2 : 4;
  const auto& d = i.operands[0].elements;
  const auto& a = i.operands[1].elements;
  if (d.size() != std::size_t{count} * sums) {
    bad(i, "expected " + std::to_string(count * sums) + " registers of D, found " +
               std::to_string(d.size()));
  }
  if (code.a_in_registers && a.size() != 4) bad(i, "expected 4 registers of A");
  MmaPlanBuilder plan;
  MmaPlanBuilder::Places of_a{};
  for (unsigned k = 0; k < 4; ++k) {
    of_a[k] = code.a_in_registers ? place_of_input(e, a[k], k) : e.scratch_place(k);
  }
  const bool sparse = ptx::is_sparse(i);
  const unsigned halves = sparse ? 2 : 1;  // of B along k
  for (unsigned n = 0; n < count; ++n) {
    // They are added to where they lie.
    MmaPlanBuilder::Places of_sums{};
    for (unsigned k = 0; k < sums; ++k) of_sums[k] = place_of_accumulator(e, i, d[sums * n + k]);
    std::vector<std::uint32_t> bs;
    for (unsigned half = halves * n; half < halves * (n + 1); ++half) {
      bs.push_back(plan.add_b({e.scratch_place(4 + 2 * half), e.scratch_place(5 + 2 * half)}));
    }
    plan.add_product(std::vector<std::uint32_t>(halves, plan.add_a(of_a)), bs, of_sums, of_sums);
  }
  Value* matrix = llvm::ConstantPointerNull::get(e.ir.getPtrTy());
  const unsigned behind = 4 + 2 * halves * count;
  if (sparse) {
    const Operand metadata = elements_of(i, i.operands[3], 1).front();
    if (!metadata.is_register() || e.register_bits(metadata.index) != 32) {
      bad(i, "operand 4 must be a register of 32 bits");
    }
    e.to_scratch(behind, e.read_lanes(metadata, 32));
    matrix = constant_code(e, sparse_code(i));
  }
  const Operand& scale_d = i.operands[sparse ? 5 : 3];
  Value* kept = first_lane(e, scale_d, 1);
  if (scale_d.negated) kept = e.ir.CreateNot(kept);
  kept = e.ir.CreateZExt(kept, e.ir.getInt32Ty());
  Value* matrix_a = code.a_in_registers ? e.ir.getInt64(0) : first_lane(e, i.operands[1], 64);
  Value* matrix_b = first_lane(e, i.operands[2], 64);
  if (e.instrumentation.checks) {
    std::vector<std::uint32_t> registers;
    for (const Operand& sum : d) registers.push_back(number_of(e, sum));
    const auto inputs = static_cast<std::uint32_t>(code.a_in_registers ? 4 : 0);
    for (std::uint32_t k = 0; k < inputs; ++k) {
      if (a[k].is_register()) registers.push_back(number_of(e, a[k]));
    }
    if (sparse) registers.push_back(number_of(e, elements_of(i, i.operands[3], 1).front()));
    // A number for all that has to be the same.
    Value* what =
        e.ir.CreateAdd(e.ir.CreateMul(matrix_a, e.ir.getInt64(0x9e3779b97f4a7c15U)),
                       e.ir.CreateAdd(matrix_b, e.ir.CreateZExt(kept, e.ir.getInt64Ty())));
    e.call("check_wgmma", {e.context, e.constant_words(registers), d.size(),
                           registers.size() - d.size(), what, e.line});
  }
  e.call("wgmma",
         {e.context, e.registers, e.constant_words(plan.words()), matrix_a, matrix_b, code, type,
          kept, lanes_here(e), e.line, count_place(e), matrix, e.scratch_place(behind)});
  for (const Operand& sum : d) e.cache.erase(sum.index);
  return nullptr;
}

Value* op_wgmma_fence(Emitter& e, const Instruction& /*i*/) {
  order_wgmma(e, true);
  return nullptr;
}

Value* op_wgmma_commit(Emitter& e, const Instruction& /*i*/) {
  order_wgmma(e, false);
  return nullptr;
}

Value* op_wgmma_wait(Emitter& e, const Instruction& i) {
  const BarrierKind how = i.guard < 0 ? BarrierKind::kPark : BarrierKind::kSync;
  e.parked = e.call("wgmma_wait",
                    {e.context, lanes_here(e), e.read_scalar(i.operands[0], 32), how, e.line},
                    e.ir.getInt32Ty());
  return nullptr;
}

void number_accumulators(Emitter& e) {
  e.accumulators.assign(e.function.registers.size(), -1);
  if (!e.instrumentation.checks) return;
  std::int32_t next = 0;
  const auto add = [&](int reg) {
    std::int32_t& number = e.accumulators[reg];
    if (number >= 0) return false;
    number = next++;
    return true;
  };
  for (const Instruction& i : e.function.body) {
    if (!ptx::is_wgmma(i)) continue;
    for (std::size_t o = 0; o < 2; ++o) {
      for (const Operand& element : i.operands[o].elements) {
        if (element.is_register()) add(element.index);
      }
    }
  }
  bool grew = next > 0;
  while (std::exchange(grew, false)) {
    for (const Instruction& i : e.function.body) {
      if (!moves(i)) continue;
      const int to = i.operands[0].index, from = i.operands[1].index;
      if (e.accumulators[to] >= 0) grew = add(from) || grew;
      if (e.accumulators[from] >= 0) grew = add(to) || grew;
    }
  }
}

void track_accumulators(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.checks || ptx::is_wgmma(i)) return;
  const RegisterUse use = register_use(i);
  std::vector<std::uint32_t> registers;
  const auto collect = [&](const std::vector<int>& used) {
    for (const int reg : used) {
      const std::int32_t number = e.accumulators[reg];
      if (number >= 0) registers.push_back(static_cast<std::uint32_t>(number));
    }
  };
  collect(use.writes);
  const std::size_t writes = registers.size();
  collect(use.reads);
  if (registers.empty()) return;
  e.line = i.line;
  Value* lanes = lanes_of_guard(e, i);
  if (moves(i) && i.guard < 0) {
    e.call("check_wgmma_move", {e.context, registers[0], registers[1], lanes});
    return;
  }
  e.call("check_wgmma_use",
         {e.context, e.constant_words(registers), writes, registers.size() - writes,
          i.is(Op::kMov) && use.reads.empty(), lanes, e.line});
}

}  // namespace braid::cpu
