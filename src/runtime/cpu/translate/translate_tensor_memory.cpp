#include <algorithm>
#include <cstdlib>

#include "runtime/cpu/translate/translator.h"

// Tensor memory: tcgen05. Whole warps allocate it, load from it and store to it; single lanes issue
// products and copies.

namespace braid::cpu {

using ptx::Space;

namespace {

/// The place of an operand of tcgen05.mma in scratch memory, in units of 128 bytes.
constexpr unsigned place_of(std::size_t offset) { return static_cast<unsigned>(offset / 128); }
static_assert(sizeof(TensorMmaOperands) % 128 == 0);

bool in_brackets(const ptx::Operand& operand) {
  return operand.form == ptx::Operand::Form::kMemory;
}

}  // namespace

/// An address in tensor memory, by lane.
llvm::Value* Translator::tensor_address(const Operand& operand) {
  Value* base = read_lanes(operand.elements[0], 32);
  return b_.CreateAdd(base, number_like(base, operand.bits));
}

void Translator::op_tensor_alloc(const Instruction& i) {
  const Choices mods(i);
  Address to =
      address(i, i.operands[0], mods.has("shared::cta") ? Space::kShared : Space::kGeneric);
  Value* first = b_.CreateExtractElement(address_lanes(to), std::uint64_t{0});
  call("tensor_alloc", {context_, first, first_lane(i.operands[1], 32), execution_bits(), line_});
}

void Translator::op_tensor_dealloc(const Instruction& i) {
  call("tensor_dealloc", {context_, first_lane(i.operands[0], 32), first_lane(i.operands[1], 32),
                          execution_bits(), line_});
}

void Translator::op_tensor_relinquish(const Instruction& /*i*/) {
  call("tensor_relinquish", {context_, execution_bits(), line_});
}

/// `registers`: of its vector.
TensorMoveCode Translator::tensor_move_code(const Instruction& i, std::size_t registers) const {
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

void Translator::op_tensor_load(const Instruction& i) {
  std::vector<Operand> results = i.operands[0].elements;
  if (i.operands[0].form != Operand::Form::kVector) results = {i.operands[0]};
  const TensorMoveCode code = tensor_move_code(i, results.size());
  Value* from = b_.CreateExtractElement(tensor_address(i.operands[1]), std::uint64_t{0});
  call("tensor_move", {context_, scratch(0), from, code, execution_bits(), line_});
  for (unsigned r = 0; r < results.size(); ++r) {
    write(results[r], from_scratch(r, integer(32, false)));
  }
}

void Translator::op_tensor_store(const Instruction& i) {
  const Operand& vector = i.operands.back();
  std::vector<Operand> sources = vector.elements;
  if (vector.form != Operand::Form::kVector) sources = {vector};
  const TensorMoveCode code = tensor_move_code(i, sources.size());
  Value* to = b_.CreateExtractElement(tensor_address(i.operands[0]), std::uint64_t{0});
  for (unsigned r = 0; r < sources.size(); ++r) to_scratch(r, read_lanes(sources[r], 32));
  call("tensor_move", {context_, scratch(0), to, code, execution_bits(), line_});
}

void Translator::op_tensor_wait(const Instruction& i) {
  if (!instrumentation_.checks) return;
  call("check_tensor_wait", {context_, Choices(i).name() == 1});
}

void Translator::op_tensor_fence(const Instruction& i) {
  if (!instrumentation_.checks || Choices(i).name() == 0) return;
  call("check_tensor_fence", {context_});
}

void Translator::op_tensor_commit(const Instruction& i) {
  const Choices mods(i);
  const bool everywhere = mods.has("multicast::cluster");
  need(i, everywhere ? 2 : 1);
  Address where = barrier_address(i, i.operands[0]);
  Value* blocks = llvm::ConstantPointerNull::get(b_.getPtrTy());
  if (everywhere) {
    blocks = to_scratch(2, b_.CreateAnd(read_lanes(i.operands[1], 32), splat(b_.getInt32(0xffff))));
  }
  call("tensor_commit",
       {context_, to_scratch(0, address_lanes(where)), blocks, execution_bits(), line_});
}

void Translator::op_tensor_copy(const Instruction& i) {
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
  to_scratch(0, tensor_address(i.operands[0]));
  call("tensor_copy", {context_, scratch(0), to_scratch(2, read_lanes(i.operands[1], 64)),
                       execution_bits(), code, line_, count_place()});
}

TensorMmaCode Translator::tensor_mma_code(const Instruction& i) const {
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

void Translator::op_tensor_multiply(const Instruction& i) {
  const TensorMmaCode code = tensor_mma_code(i);
  const auto put = [&](std::size_t offset, Value* lanes) { to_scratch(place_of(offset), lanes); };
  put(offsetof(TensorMmaOperands, d), tensor_address(i.operands[0]));
  put(offsetof(TensorMmaOperands, a),
      code.a_in_tensor ? b_.CreateZExt(tensor_address(i.operands[1]), integer(64, false))
                       : read_lanes(i.operands[1], 64));
  put(offsetof(TensorMmaOperands, b), read_lanes(i.operands[2], 64));
  put(offsetof(TensorMmaOperands, types), read_lanes(i.operands[3], 32));
  if (code.scaled) {
    put(offsetof(TensorMmaOperands, scales_a), tensor_address(i.operands[4]));
    put(offsetof(TensorMmaOperands, scales_b), tensor_address(i.operands[5]));
  }
  if (code.masked) {
    const std::vector<Operand>& kept = i.operands[4].elements;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      put(offsetof(TensorMmaOperands, kept) + 128 * k, read_lanes(kept[k], 32));
    }
  }
  const Operand& adds = i.operands[code.scaled ? 6 : code.masked ? 5 : 4];
  Value* added = read_lanes(adds, 1);
  if (adds.negated) added = b_.CreateNot(added);
  put(offsetof(TensorMmaOperands, adds), b_.CreateZExt(added, integer(32, false)));
  call("tensor_multiply", {context_, scratch(0), execution_bits(), code, line_, count_place()});
}

}  // namespace braid::cpu
