
#include "runtime/cpu/run/tensor_memory.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"

// Tensor memory: tcgen05. Whole warps allocate it, load from it and store to it; single lanes issue
// products and copies.

namespace braid::cpu {
namespace {

using ptx::Space;

/// The place of an operand of tcgen05.mma in scratch memory, in units of 128 bytes.
constexpr unsigned place_of(std::size_t offset) { return static_cast<unsigned>(offset / 128); }
static_assert(sizeof(TensorMmaOperands) % 128 == 0);

bool in_brackets(const ptx::Operand& operand) {
  return operand.form == ptx::Operand::Form::kMemory;
}

/// An address in tensor memory, by lane.
Value* tensor_address(Emitter& e, const Operand& operand) {
  Value* base = e.read_lanes(operand.elements[0], 32);
  return e.ir.CreateAdd(base, number_like(base, operand.bits));
}

/// `registers`: of its vector.
TensorMoveCode tensor_move_code(const Instruction& i, std::size_t registers) {
  const Choices mods(i);
  TensorMoveCode code;
  code.shape = static_cast<TensorMoveCode::Shape>(mods.of("32x32b"));
  code.stores = i.is(Op::kTensorStore);
  code.halves = mods.has("pack::16b") || mods.has("unpack::16b");
  const auto times = std::ranges::find_if(i.modifiers, [](const std::string& modifier) {
    return modifier.starts_with('x') && modifier.size() > 1;
  });
  const unsigned long count = std::strtoul(times->c_str() + 1, nullptr, 10);
  const unsigned long each = code.shape == TensorMoveCode::k16x128b   ? 2
                             : code.shape == TensorMoveCode::k16x256b ? 4
                                                                      : 1;
  if (count == 0 || (count & (count - 1)) != 0 || count * each > 128) {
    bad(i, "there is no ." + *times + " of this shape");
  }
  if (registers != count * each) {
    bad(i, "expected " + std::to_string(count * each) + " registers, found " +
               std::to_string(registers));
  }
  code.registers = static_cast<std::uint8_t>(count * each);
  const bool split = code.shape == TensorMoveCode::k16x32bx2;
  need(i, split ? 3 : 2);
  if (split) {
    const Operand& apart = i.operands[code.stores ? 1 : 2];
    if (apart.form != Operand::Form::kInteger || apart.bits >= TensorMemory::kColumns) {
      bad(i, "the distance of the halves must be a constant below 512");
    }
    code.apart = static_cast<std::uint16_t>(apart.bits);
  }
  return code;
}

TensorMmaCode tensor_mma_code(const Instruction& i) {
  const Choices mods(i);
  TensorMmaCode code;
  code.scaled = i.is(Op::kTensorMmaScaled);
  code.kind = static_cast<TensorMmaCode::Kind>(
      code.scaled ? TensorMmaCode::kScaledF8 + mods.of("kind::mxf8f6f4") : mods.of("kind::f16"));
  code.a_in_tensor = in_brackets(i.operands[1]);
  code.pair = mods.has("cta_group::2");
  if (code.scaled) {
    // A scale is for 32 of k, or for 16.
    const int given = mods.of("scale_vec::1X");
    const bool bytes = code.kind == TensorMmaCode::kScaledF8;
    const int fine = code.kind == TensorMmaCode::kScaledFineF4 ? 4 : bytes ? 1 : 2;
    constexpr int kGiven[] = {1, 2, 4, 0, 4};
    const int coarse = bytes ? 1 : 2;
    const int scales = given < 0 || given == 3 ? coarse : kGiven[given];
    if ((scales != coarse && scales != fine) ||
        (given < 0 && code.kind == TensorMmaCode::kScaledFineF4)) {
      bad_combination(i);
    }
    code.scales = static_cast<std::uint8_t>(scales);
    return code;
  }
  code.masked = i.operands[4].form == Operand::Form::kVector;
  const std::size_t more = code.masked ? 6 : 5;
  if (i.operands.size() < more) bad(i, "expected a predicate behind the lanes of D");
  if (code.masked && i.operands[4].elements.size() != (code.pair ? 8 : 4)) {
    bad(i, "the lanes of D take 4 registers, 8 with .cta_group::2");
  }
  if (i.operands.size() == more) return code;
  const Operand& scale = i.operands[more];
  const bool floats = code.kind == TensorMmaCode::kF16 || code.kind == TensorMmaCode::kTf32;
  if (!floats || scale.form != Operand::Form::kInteger || scale.bits > 15) {
    bad(i, "the scale of D must be a constant from 0 to 15, of kind::f16 or kind::tf32");
  }
  code.scale_d = static_cast<std::uint8_t>(scale.bits);
  return code;
}

}  // namespace

Value* op_tensor_alloc(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  Address to =
      address(e, i, i.operands[0], mods.has("shared::cta") ? Space::kShared : Space::kGeneric);
  Value* first = e.ir.CreateExtractElement(address_lanes(e, to), std::uint64_t{0});
  e.call("tensor_alloc",
         {e.context, first, first_lane(e, i.operands[1], 32), e.execution_bits(), e.line});
  return nullptr;
}

Value* op_tensor_dealloc(Emitter& e, const Instruction& i) {
  e.call("tensor_dealloc", {e.context, first_lane(e, i.operands[0], 32),
                            first_lane(e, i.operands[1], 32), e.execution_bits(), e.line});
  return nullptr;
}

Value* op_tensor_relinquish(Emitter& e, const Instruction& /*i*/) {
  e.call("tensor_relinquish", {e.context, e.execution_bits(), e.line});
  return nullptr;
}

Value* op_tensor_load(Emitter& e, const Instruction& i) {
  std::vector<Operand> results = i.operands[0].elements;
  if (i.operands[0].form != Operand::Form::kVector) results = {i.operands[0]};
  const TensorMoveCode code = tensor_move_code(i, results.size());
  Value* from = e.ir.CreateExtractElement(tensor_address(e, i.operands[1]), std::uint64_t{0});
  e.call("tensor_move", {e.context, e.scratch(0), from, code, e.execution_bits(), e.line});
  for (unsigned r = 0; r < results.size(); ++r) {
    e.write(results[r], e.from_scratch(r, e.integer(32, false)));
  }
  return nullptr;
}

Value* op_tensor_store(Emitter& e, const Instruction& i) {
  const Operand& vector = i.operands.back();
  std::vector<Operand> sources = vector.elements;
  if (vector.form != Operand::Form::kVector) sources = {vector};
  const TensorMoveCode code = tensor_move_code(i, sources.size());
  Value* to = e.ir.CreateExtractElement(tensor_address(e, i.operands[0]), std::uint64_t{0});
  for (unsigned r = 0; r < sources.size(); ++r) e.to_scratch(r, e.read_lanes(sources[r], 32));
  e.call("tensor_move", {e.context, e.scratch(0), to, code, e.execution_bits(), e.line});
  return nullptr;
}

Value* op_tensor_wait(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.checks) return nullptr;
  e.call("check_tensor_wait", {e.context, Choices(i).name() == 1});
  return nullptr;
}

Value* op_tensor_fence(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.checks || Choices(i).name() == 0) return nullptr;
  e.call("check_tensor_fence", {e.context});
  return nullptr;
}

Value* op_tensor_commit(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool everywhere = mods.has("multicast::cluster");
  need(i, everywhere ? 2 : 1);
  Address where = barrier_address(e, i, i.operands[0]);
  Value* blocks = llvm::ConstantPointerNull::get(e.ir.getPtrTy());
  if (everywhere) {
    blocks = e.to_scratch(
        2, e.ir.CreateAnd(e.read_lanes(i.operands[1], 32), e.splat(e.ir.getInt32(0xffff))));
  }
  e.call("tensor_commit",
         {e.context, e.to_scratch(0, address_lanes(e, where)), blocks, e.execution_bits(), e.line});
  return nullptr;
}

Value* op_tensor_copy(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  constexpr std::uint8_t kRows[] = {128, 4, 128, 64, 32}, kParts[] = {2, 2, 1, 1, 1};
  const int shape = mods.of("128x256b"), spread = mods.of("warpx2::02_13");
  TensorCopyCode code{.rows = kRows[shape],
                      .parts = kParts[shape],
                      .spread = static_cast<TensorCopyCode::Spread>(spread + 1),
                      .pair = mods.has("cta_group::2")};
  const bool twice =
      code.spread == TensorCopyCode::kWarps02 || code.spread == TensorCopyCode::kWarps01;
  if (twice != (code.rows == 64) || (code.spread == TensorCopyCode::kWarps4) != (code.rows == 32)) {
    bad_combination(i);
  }
  e.to_scratch(0, tensor_address(e, i.operands[0]));
  e.call("tensor_copy", {e.context, e.scratch(0), e.to_scratch(2, e.read_lanes(i.operands[1], 64)),
                         e.execution_bits(), code, e.line, count_place(e)});
  return nullptr;
}

Value* op_tensor_multiply(Emitter& e, const Instruction& i) {
  const TensorMmaCode code = tensor_mma_code(i);
  const auto put = [&](std::size_t offset, Value* lanes) { e.to_scratch(place_of(offset), lanes); };
  put(offsetof(TensorMmaOperands, d), tensor_address(e, i.operands[0]));
  put(offsetof(TensorMmaOperands, a),
      code.a_in_tensor ? e.ir.CreateZExt(tensor_address(e, i.operands[1]), e.integer(64, false))
                       : e.read_lanes(i.operands[1], 64));
  put(offsetof(TensorMmaOperands, b), e.read_lanes(i.operands[2], 64));
  put(offsetof(TensorMmaOperands, types), e.read_lanes(i.operands[3], 32));
  if (code.scaled) {
    put(offsetof(TensorMmaOperands, scales_a), tensor_address(e, i.operands[4]));
    put(offsetof(TensorMmaOperands, scales_b), tensor_address(e, i.operands[5]));
  }
  if (code.masked) {
    const std::vector<Operand>& kept = i.operands[4].elements;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      put(offsetof(TensorMmaOperands, kept) + 128 * k, e.read_lanes(kept[k], 32));
    }
  }
  const Operand& adds = i.operands[code.scaled ? 6 : code.masked ? 5 : 4];
  Value* added = e.read_lanes(adds, 1);
  if (adds.negated) added = e.ir.CreateNot(added);
  put(offsetof(TensorMmaOperands, adds), e.ir.CreateZExt(added, e.integer(32, false)));
  e.call("tensor_multiply",
         {e.context, e.scratch(0), e.execution_bits(), code, e.line, count_place(e)});
  return nullptr;
}

}  // namespace braid::cpu
