#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"
#include "runtime/cpu/translate/matrices.h"

namespace braid::cpu {
namespace {

using ptx::Type;

/// Operands of ldmatrix and stmatrix.
struct Matrices {
  bool exchanged = false;  ///< .trans
  std::vector<Operand> registers;
  Address where;
  Value* lanes = nullptr;  ///< lanes that have the addresses of rows
};

/// The source lane of shfl, or the own lane when it is out of range (then `valid` is false).
struct ShuffleSource {
  int lane;
  bool valid;
};

ShuffleSource shuffle_source(int mode, int lane, unsigned b, unsigned c) {
  const int segment = static_cast<int>((c >> 8) & 31);
  const int clamp = static_cast<int>(c & 31);
  const int distance = static_cast<int>(b & 31);
  const int high = (lane & segment) | (clamp & ~segment & 31);
  const int low = lane & segment;
  const int source = mode == 0   ? lane - distance
                     : mode == 1 ? lane + distance
                     : mode == 2 ? lane ^ distance
                                 : low | (distance & ~segment & 31);
  const bool valid = mode == 0 ? source >= high : source <= high;
  return {valid ? source : lane, valid};
}

/// Tells the sanitizer which lanes an operation over lanes names. Of these all that live must be
/// here, or those of `awaited`.
void check_members(Emitter& e, const Operand& members, Value* awaited = nullptr) {
  if (!e.instrumentation.checks) return;
  if (awaited == nullptr) awaited = e.live_lanes();
  e.call("check_members", {e.context, e.to_scratch(0, e.read_lanes(members, 32)),
                           e.execution_bits(), awaited, e.line});
}

/// `op` of "add|min|max|and|or|xor" over the lanes that operand 2 names.
Value* reduce_lanes(Emitter& e, const Instruction& i, unsigned op, bool is_signed, Value* a) {
  using llvm::Intrinsic::ID;
  struct Reduction {
    ID id;
    std::uint32_t neutral;
  };
  const Reduction reductions[] = {
      {llvm::Intrinsic::vector_reduce_add, 0},
      {is_signed ? llvm::Intrinsic::vector_reduce_smin : llvm::Intrinsic::vector_reduce_umin,
       is_signed ? 0x7fffffffU : ~0U},
      {is_signed ? llvm::Intrinsic::vector_reduce_smax : llvm::Intrinsic::vector_reduce_umax,
       is_signed ? 0x80000000U : 0},
      {llvm::Intrinsic::vector_reduce_and, ~0U},
      {llvm::Intrinsic::vector_reduce_or, 0},
      {llvm::Intrinsic::vector_reduce_xor, 0}};
  const Operand& members = i.operands[2];
  check_members(e, members);
  if (!e.shapes.operand_shape(members).is_uniform()) {
    e.to_scratch(0, a);
    e.to_scratch(2, e.read_lanes(members, 32));
    e.call("reduce", {e.scratch(4), e.scratch(0), e.scratch(2), e.execution_bits(),
                      op | (is_signed ? 8U : 0U)});
    return e.from_scratch(4, e.integer(32, false));
  }
  Value* mask = e.execution_mask();
  if (!(members.form == Operand::Form::kInteger && (members.bits & 0xffffffff) == 0xffffffff)) {
    Value* given = e.ir.CreateBitCast(e.read_scalar(members, 32), e.integer(1, false));
    mask = mask == nullptr ? given : e.ir.CreateAnd(mask, given);
  }
  if (mask != nullptr)
    a = e.ir.CreateSelect(mask, a, e.splat(e.ir.getInt32(reductions[op].neutral)));
  return e.uniform(e.ir.CreateIntrinsic(reductions[op].id, {a->getType()}, {a}));
}

/// Registers hold no memory, so only the scheduler needs to know. A part of a warp may not wait:
/// the rest could not come.
Value* barrier(Emitter& e, Value* id, Value* threads, Value* votes, BarrierKind how) {
  if (e.instrumentation.counts) count_barrier(e);
  votes = votes == nullptr ? e.ir.getInt32(0) : e.ir.CreateAnd(votes, e.mask_bits);
  return e.parked = e.call(
             "barrier", {e.context, id, threads, e.mask_bits, e.live_lanes(), votes, how, e.line},
             e.ir.getInt32Ty());
}

/// An 8x8 matrix of 16-bit elements, two to a lane, with rows and columns exchanged.
Value* transposed(Emitter& e, Value* matrix) {
  Value* halves = e.ir.CreateBitCast(matrix, llvm::FixedVectorType::get(e.ir.getInt16Ty(), 64));
  std::vector<int> order;
  for (int lane = 0; lane < 32; ++lane) {
    for (int k = 0; k < 2; ++k) order.push_back((2 * (lane % 4) + k) * 8 + lane / 4);
  }
  return e.ir.CreateBitCast(e.ir.CreateShuffleVector(halves, order), e.integer(32, false));
}

/// The way back of exchange_bytes() for 8 columns: lane l has, of rows l / 4 and 8 below it, two
/// neighbours each, which go to row 2 (l % 4) and the next.
Value* transposed_bytes(Emitter& e, Value* matrix) {
  Value* bytes = e.ir.CreateBitCast(matrix, llvm::FixedVectorType::get(e.ir.getInt8Ty(), 128));
  std::vector<int> order;
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 16; ++column) {
      order.push_back(4 * (column % 8 * 4 + row / 2) + row % 2 + column / 8 * 2);
    }
  }
  return e.ir.CreateBitCast(e.ir.CreateShuffleVector(bytes, order), e.integer(32, false));
}

/// Parses what ldmatrix and stmatrix have in common.
Matrices parse_matrices(Emitter& e, const Instruction& i, std::size_t memory) {
  const Choices mods(i);
  Matrices matrices;
  matrices.exchanged = mods.has("trans");
  // Each is 8 rows of 16 bytes, or two such.
  const std::size_t count = std::size_t{mods.has("m16n16") ? 2U : 1U} << mods.of("x1");
  matrices.registers = elements_of(i, i.operands[1 - memory], count);
  const bool shared = mods.of("shared::cta") >= 0;
  matrices.where =
      address(e, i, i.operands[memory], shared ? ptx::Space::kShared : ptx::Space::kGeneric);
  matrices.where.space = ptx::Space::kShared;
  if (!shared && !matrices.where.table) {
    // Generic addresses, of the window.
    matrices.where.base = e.field(offsetof(WarpContext, shared), 64);
    matrices.where.offsets =
        e.resize(e.ir.CreateSub(matrices.where.lanes, e.splat(matrices.where.base)), 32, false);
  }
  matrices.lanes = e.ir.getInt32(static_cast<std::uint32_t>((std::uint64_t{1} << (8 * count)) - 1));
  return matrices;
}

}  // namespace

Value* op_shuffle(Emitter& e, const Instruction& i) {
  const int mode = Choices(i).of("up");
  if (i.is(Op::kShflSync)) check_members(e, i.operands[4]);
  Value* a = e.read_lanes(i.operands[1], 32);
  const Operand& b = i.operands[2];
  const Operand& c = i.operands[3];
  Value* result = nullptr;
  Value* valid = nullptr;
  const auto distance = e.shapes.known_value(b);
  const auto bounds = e.shapes.known_value(c);
  if (distance && bounds) {
    std::vector<int> order;
    std::vector<llvm::Constant*> inside;
    for (int lane = 0; lane < 32; ++lane) {
      const ShuffleSource source = shuffle_source(mode, lane, static_cast<unsigned>(*distance),
                                                  static_cast<unsigned>(*bounds));
      order.push_back(source.lane);
      inside.push_back(e.ir.getInt1(source.valid));
    }
    result = e.ir.CreateShuffleVector(a, order);
    valid = llvm::ConstantVector::get(inside);
  } else {
    e.to_scratch(0, a);
    e.to_scratch(2, e.read_lanes(b, 32));
    e.to_scratch(4, e.read_lanes(c, 32));
    Value* bits = e.call("shuffle", {e.scratch(6), e.scratch(0), e.scratch(2), e.scratch(4), mode},
                         e.ir.getInt32Ty());
    result = e.from_scratch(6, e.integer(32, false));
    valid = e.ir.CreateBitCast(bits, e.integer(1, false));
  }
  return e.with_predicate(i, result, valid);
}

Value* op_vote(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool sync = i.is(Op::kVoteSync);
  const int mode = mods.of("all");
  if (sync) check_members(e, i.operands[2]);
  if ((mode == 3) != mods.has("b32")) bad_combination(i);
  Value* lanes = e.read_lanes(i.operands[1], 1);
  if (i.operands[1].negated) lanes = e.ir.CreateNot(lanes);
  Value* active = e.execution_bits();
  Value* bits = e.lane_bits(lanes);
  const bool per_lane = sync && !e.shapes.operand_shape(i.operands[2]).is_uniform();
  if (per_lane) {
    active = e.ir.CreateAnd(e.splat(active), e.read_lanes(i.operands[2], 32));
    bits = e.splat(bits);
  } else if (sync) {
    active = e.ir.CreateAnd(active, e.read_scalar(i.operands[2], 32));
  }
  bits = e.ir.CreateAnd(bits, active);
  Value* all = e.ir.CreateICmpEQ(bits, active);
  Value* none = e.ir.CreateIsNull(bits);
  Value* result = mode == 3   ? bits
                  : mode == 0 ? all
                  : mode == 1 ? e.ir.CreateNot(none)
                              : e.ir.CreateOr(all, none);
  return per_lane ? result : e.uniform(result);
}

Value* op_active_mask(Emitter& e, const Instruction& /*i*/) {
  return e.uniform(e.execution_bits());
}

Value* op_match(Emitter& e, const Instruction& i) {
  const bool all = i.is(Op::kMatchAll);
  const Type type = Choices(i).type();
  check_members(e, i.operands[2]);
  e.to_scratch(0, e.resize(e.read_lanes(i.operands[1], type.bits), 64, false));
  e.to_scratch(4, e.read_lanes(i.operands[2], 32));
  e.call("match", {e.scratch(6), e.scratch(0), e.scratch(4), e.execution_bits(), all});
  Value* lanes = e.from_scratch(6, e.integer(32, false));
  if (!all) return lanes;
  Value* result = lanes;
  if (e.shapes.operand_shape(i.operands[2]).is_uniform()) result = call_first_active(e, lanes);
  if (i.operands[0].form != Operand::Form::kPair) return result;
  e.write(i.operands[0].elements[0], result);
  e.write(i.operands[0].elements[1], e.ir.CreateIsNotNull(result));
  return nullptr;
}

Value* op_reduce(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  if (type.bits != 32) bad_combination(i);
  return reduce_lanes(e, i, static_cast<unsigned>(mods.of("add")), type.is_signed(),
                      e.read_lanes(i.operands[1], 32));
}

/// Integers in the order of the floats, -0 below +0: NaN goes to the end where it loses, or with
/// .NaN to the one where it wins.
Value* op_reduce_float(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const bool minimum = mods.of("min") == 0;
  const bool nan_is_least = minimum == mods.has("NaN");
  Value* bits = e.read_lanes(i.operands[1], 32);
  const auto word = [&](Value* like, std::uint32_t value) { return number_like(like, value); };
  const auto size_of = [&](Value* value) { return e.ir.CreateAnd(value, word(value, 0x7fffffff)); };
  const auto is_nan = [&](Value* value) {
    return e.ir.CreateICmpUGT(size_of(value), word(value, 0x7f800000));
  };
  // This function is its own inverse.
  const auto reorder = [&](Value* value) {
    return e.ir.CreateXor(value, size_of(e.ir.CreateAShr(value, 31)));
  };
  if (mods.has("abs")) bits = size_of(bits);
  Value* keys = e.ir.CreateSelect(is_nan(bits), word(bits, nan_is_least ? 0x80000000 : 0x7fffffff),
                                  reorder(bits));
  Value* result = reorder(reduce_lanes(e, i, minimum ? 1 : 2, true, keys));
  return e.ir.CreateSelect(is_nan(result), word(result, 0x7fffffff), result);
}

/// The first of the members that run it.
Value* op_elect(Emitter& e, const Instruction& i) {
  if (i.operands[0].form != Operand::Form::kPair) bad(i, "expected a register and a predicate");
  check_members(e, i.operands[1]);
  Value* members = e.ir.CreateAnd(e.read_lanes(i.operands[1], 32), e.splat(e.execution_bits()));
  Value* first =
      e.ir.CreateIntrinsic(members->getType(), llvm::Intrinsic::cttz, {members, e.ir.getFalse()});
  e.write(i.operands[0].elements[0], first);
  e.write(i.operands[0].elements[1],
          e.ir.CreateICmpEQ(first, e.table_vector(Shape::lanes(63), 32)));
  return nullptr;
}

Value* op_warp_barrier(Emitter& e, const Instruction& i) {
  // Lanes that the mask names may come to another one.
  check_members(e, i.operands[0], e.execution_bits());
  e.ir.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
  return nullptr;
}

Value* uniform_operand(Emitter& e, const Instruction& i, std::size_t n) {
  if (n >= i.operands.size()) return e.ir.getInt32(0);
  if (e.shapes.operand_shape(i.operands[n]).is_uniform()) return e.read_scalar(i.operands[n], 32);
  // It is the same for all lanes, as they may not come to different barriers at once.
  Value* first = e.ir.CreateIntrinsic(e.ir.getInt32Ty(), llvm::Intrinsic::cttz,
                                      {e.execution_bits(), e.ir.getFalse()});
  return e.ir.CreateExtractElement(e.read_lanes(i.operands[n], 32), e.ir.CreateAnd(first, 31));
}

Value* op_barrier(Emitter& e, const Instruction& i) {
  BarrierKind how = i.guard < 0 ? BarrierKind::kPark : BarrierKind::kSync;
  if (i.is(Op::kBarrierArrive)) how = BarrierKind::kArrive;
  Value* id = uniform_operand(e, i, 0);
  Value* threads = uniform_operand(e, i, 1);
  if (how == BarrierKind::kPark && i.operands.size() == 1 &&
      e.shapes.known_value(i.operands[0]) == 0U && e.mask == nullptr && e.aligned &&
      !e.instrumentation.checks) {
    if (e.instrumentation.counts) count_barrier(e);
    e.parked = e.ir.getInt32(kArrives);
    return nullptr;
  }
  barrier(e, id, threads, nullptr, how);
  return nullptr;
}

Value* op_barrier_reduce(Emitter& e, const Instruction& i) {
  const int reduction = Choices(i).of("popc");
  const Operand& predicate = i.operands.back();
  Value* id = uniform_operand(e, i, 1);
  Value* threads = i.operands.size() == 4 ? uniform_operand(e, i, 2) : e.ir.getInt32(0);
  Value* lanes = e.read_lanes(predicate, 1);
  if (predicate.negated) lanes = e.ir.CreateNot(lanes);
  Value* result = barrier(e, id, threads, e.lane_bits(lanes), static_cast<BarrierKind>(reduction));
  return e.uniform(reduction == 0 ? result : e.ir.CreateIsNotNull(result));
}

Value* op_sleep(Emitter& e, const Instruction& /*i*/) {
  e.call("yield", {e.context, 0});
  e.tell_action();
  return nullptr;
}

Value* op_set_registers(Emitter& e, const Instruction& i) {
  e.call("set_registers", {e.context, e.read_scalar(i.operands[0], 32), e.line});
  return nullptr;
}

Value* op_trap(Emitter& e, const Instruction& /*i*/) {
  Value* any = e.guard_lanes == nullptr ? e.ir.getTrue() : e.ir.CreateIsNotNull(e.execution_bits());
  e.split_unlikely(any, [&] { e.call("stop", {e.context, Stop::kTrap, e.line}); });
  return nullptr;
}

Value* row_pointer(Emitter& e, Address& address, unsigned lane) {
  Value* at = address.table
                  ? e.ir.CreateAdd(address.base, e.ir.getInt64(static_cast<std::uint64_t>(
                                                     std::int64_t{address.shape.table[lane]})))
                  : e.ir.CreateExtractElement(address_lanes(e, address), std::uint64_t{lane});
  return e.pointer_to(at);
}

bool passes_in_slot(Emitter& e, const Operand& operand) {
  return operand.is_register() && e.slots[operand.index] >= 0 &&
         e.shapes.shape(operand.index).is_vector() && e.register_bits(operand.index) == 32;
}

std::uint32_t place_of_input(Emitter& e, const Operand& operand, unsigned scratch_index) {
  const bool partial = e.mask != nullptr && e.divergent;
  if (passes_in_slot(e, operand)) {
    const auto cached = e.cache.find(operand.index);
    const bool dirty = cached != e.cache.end() && cached->second.dirty;
    if (!dirty || !partial) {
      if (dirty) {
        e.store_register(operand.index, cached->second.value);
        cached->second.dirty = false;
      }
      return static_cast<std::uint32_t>(e.slots[operand.index]);
    }
  }
  e.to_scratch(scratch_index, e.read_lanes(operand, 32));
  return e.scratch_place(scratch_index);
}

std::uint32_t place_of_result(Emitter& e, const Operand& operand, unsigned scratch_index) {
  const bool partial = e.mask != nullptr && e.divergent;
  if (partial || e.guard_lanes != nullptr || e.guard_scalar != nullptr ||
      !passes_in_slot(e, operand)) {
    return e.scratch_place(scratch_index);
  }
  return static_cast<std::uint32_t>(e.slots[operand.index]);
}

void take_result(Emitter& e, const Operand& operand, unsigned scratch_index) {
  if (place_of_result(e, operand, scratch_index) == e.scratch_place(scratch_index)) {
    e.write(operand, e.from_scratch(scratch_index, e.integer(32, false)));
  } else {
    e.cache.erase(operand.index);
  }
}

Value* op_ldmatrix(Emitter& e, const Instruction& i) {
  auto [exchanged, results, where, lanes] = parse_matrices(e, i, 1);
  check(e, where, {.kind = AccessCode::kLoad, .bytes = 16}, lanes);
  const Choices mods(i);
  const unsigned bits = mods.has("b4x16_p64") ? 4 : mods.has("b6x16_p32") ? 6 : 8;
  std::vector<std::uint32_t> places;
  for (unsigned m = 0; m < results.size(); ++m)
    places.push_back(place_of_result(e, results[m], 2 + m));
  Value* offsets = address_offsets(e, where, 0);
  const bool bytes = mods.has("m16n16") || bits != 8;
  llvm::SmallVector<Argument, 7> arguments{
      e.registers, e.constant_words(places), e.pointer_to(where.base), offsets, places.size(),
      exchanged};
  if (bytes) arguments.push_back(bits);
  e.call(bytes ? "ldmatrix_bytes" : "ldmatrix", arguments);
  for (unsigned m = 0; m < results.size(); ++m) take_result(e, results[m], 2 + m);
  return nullptr;
}

/// The way back of ldmatrix.
Value* op_stmatrix(Emitter& e, const Instruction& i) {
  auto [exchanged, sources, where, lanes] = parse_matrices(e, i, 0);
  std::vector<Value*> matrices;
  for (const Operand& source : sources) {
    Value* value = e.read_lanes(source, 32);
    if (i.is(Op::kStmatrixBytes)) {
      value = transposed_bytes(e, value);
    } else if (exchanged) {
      value = transposed(e, value);
    }
    matrices.push_back(value);
  }
  Stored values;
  if (e.instrumentation.checks) {
    // Side by side they are the rows, by the lanes that have their addresses.
    for (unsigned m = 0; m < matrices.size(); ++m) e.to_scratch(8 + m, matrices[m]);
    values = {e.scratch(8), 16, 1};
  }
  check(e, where, {.kind = AccessCode::kStore, .bytes = 16}, lanes, values);
  for (unsigned m = 0; m < matrices.size(); ++m) {
    for (unsigned r = 0; r < 8; ++r) {
      const int first = static_cast<int>(4 * r);
      Value* row = e.ir.CreateShuffleVector(matrices[m], {first, first + 1, first + 2, first + 3});
      e.ir.CreateAlignedStore(row, row_pointer(e, where, 8 * m + r), llvm::Align(16));
    }
  }
  return nullptr;
}

Value* op_movmatrix(Emitter& e, const Instruction& i) {
  return transposed(e, e.read_lanes(i.operands[1], 32));
}

}  // namespace braid::cpu
