#include <llvm/IR/Intrinsics.h>

#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using ptx::Type;

namespace {

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

}  // namespace

/// Tells the sanitizer which lanes an operation over lanes names. Of these all that live must be
/// here, or those of `awaited`.
void Translator::check_members(const Operand& members, Value* awaited) {
  if (!instrumentation_.checks) return;
  if (awaited == nullptr) awaited = live_lanes();
  call("check_members",
       {context_, to_scratch(0, read_lanes(members, 32)), execution_bits(), awaited, line_});
}

llvm::Value* Translator::op_shuffle(const Instruction& i) {
  const int mode = Choices(i).of("up");
  if (i.is(Op::kShflSync)) check_members(i.operands[4]);
  Value* a = read_lanes(i.operands[1], 32);
  const Operand& b = i.operands[2];
  const Operand& c = i.operands[3];
  Value* result = nullptr;
  Value* valid = nullptr;
  const auto distance = shapes_.known_value(b);
  const auto bounds = shapes_.known_value(c);
  if (distance && bounds) {
    std::vector<int> order;
    std::vector<llvm::Constant*> inside;
    for (int lane = 0; lane < 32; ++lane) {
      const ShuffleSource source = shuffle_source(mode, lane, static_cast<unsigned>(*distance),
                                                  static_cast<unsigned>(*bounds));
      order.push_back(source.lane);
      inside.push_back(b_.getInt1(source.valid));
    }
    result = b_.CreateShuffleVector(a, order);
    valid = llvm::ConstantVector::get(inside);
  } else {
    to_scratch(0, a);
    to_scratch(2, read_lanes(b, 32));
    to_scratch(4, read_lanes(c, 32));
    Value* bits =
        call("shuffle", {scratch(6), scratch(0), scratch(2), scratch(4), mode}, b_.getInt32Ty());
    result = from_scratch(6, integer(32, false));
    valid = b_.CreateBitCast(bits, integer(1, false));
  }
  return with_predicate(i, result, valid);
}

llvm::Value* Translator::op_vote(const Instruction& i) {
  const Choices mods(i);
  const bool sync = i.is(Op::kVoteSync);
  const int mode = mods.of("all");
  if (sync) check_members(i.operands[2]);
  if ((mode == 3) != mods.has("b32")) bad_combination(i);
  Value* lanes = read_lanes(i.operands[1], 1);
  if (i.operands[1].negated) lanes = b_.CreateNot(lanes);
  Value* active = execution_bits();
  Value* bits = lane_bits(lanes);
  const bool per_lane = sync && !shapes_.operand_shape(i.operands[2]).is_uniform();
  if (per_lane) {
    active = b_.CreateAnd(splat(active), read_lanes(i.operands[2], 32));
    bits = splat(bits);
  } else if (sync) {
    active = b_.CreateAnd(active, read_scalar(i.operands[2], 32));
  }
  bits = b_.CreateAnd(bits, active);
  Value* all = b_.CreateICmpEQ(bits, active);
  Value* none = b_.CreateIsNull(bits);
  Value* result = mode == 3   ? bits
                  : mode == 0 ? all
                  : mode == 1 ? b_.CreateNot(none)
                              : b_.CreateOr(all, none);
  return per_lane ? result : uniform(result);
}

llvm::Value* Translator::op_active_mask(const Instruction& /*i*/) {
  return uniform(execution_bits());
}

llvm::Value* Translator::op_match(const Instruction& i) {
  const bool all = i.is(Op::kMatchAll);
  const Type type = Choices(i).type();
  check_members(i.operands[2]);
  to_scratch(0, resize(read_lanes(i.operands[1], type.bits), 64, false));
  to_scratch(4, read_lanes(i.operands[2], 32));
  call("match", {scratch(6), scratch(0), scratch(4), execution_bits(), all});
  Value* lanes = from_scratch(6, integer(32, false));
  if (!all) return lanes;
  Value* result = lanes;
  if (shapes_.operand_shape(i.operands[2]).is_uniform()) result = call_first_active(lanes);
  if (i.operands[0].form != Operand::Form::kPair) return result;
  write(i.operands[0].elements[0], result);
  write(i.operands[0].elements[1], b_.CreateIsNotNull(result));
  return nullptr;
}

llvm::Value* Translator::op_reduce(const Instruction& i) {
  const Choices mods(i);
  const Type type = mods.type();
  if (type.bits != 32) bad_combination(i);
  return reduce(i, static_cast<unsigned>(mods.of("add")), type.is_signed(),
                read_lanes(i.operands[1], 32));
}

/// `op` of "add|min|max|and|or|xor" over the lanes that operand 2 names.
llvm::Value* Translator::reduce(const Instruction& i, unsigned op, bool is_signed, Value* a) {
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
  check_members(members);
  if (!shapes_.operand_shape(members).is_uniform()) {
    to_scratch(0, a);
    to_scratch(2, read_lanes(members, 32));
    call("reduce",
         {scratch(4), scratch(0), scratch(2), execution_bits(), op | (is_signed ? 8U : 0U)});
    return from_scratch(4, integer(32, false));
  }
  Value* mask = execution_mask();
  if (!(members.form == Operand::Form::kInteger && (members.bits & 0xffffffff) == 0xffffffff)) {
    Value* given = b_.CreateBitCast(read_scalar(members, 32), integer(1, false));
    mask = mask == nullptr ? given : b_.CreateAnd(mask, given);
  }
  if (mask != nullptr) a = b_.CreateSelect(mask, a, splat(b_.getInt32(reductions[op].neutral)));
  return uniform(b_.CreateIntrinsic(reductions[op].id, {a->getType()}, {a}));
}

/// Integers in the order of the floats, -0 below +0: NaN goes to the end where it loses, or with
/// .NaN to the one where it wins.
llvm::Value* Translator::op_reduce_float(const Instruction& i) {
  const Choices mods(i);
  const bool minimum = mods.of("min") == 0;
  const bool nan_is_least = minimum == mods.has("NaN");
  Value* bits = read_lanes(i.operands[1], 32);
  const auto word = [&](Value* like, std::uint32_t value) { return number_like(like, value); };
  const auto size_of = [&](Value* value) { return b_.CreateAnd(value, word(value, 0x7fffffff)); };
  const auto is_nan = [&](Value* value) {
    return b_.CreateICmpUGT(size_of(value), word(value, 0x7f800000));
  };
  // This function is its own inverse.
  const auto reorder = [&](Value* value) {
    return b_.CreateXor(value, size_of(b_.CreateAShr(value, 31)));
  };
  if (mods.has("abs")) bits = size_of(bits);
  Value* keys = b_.CreateSelect(is_nan(bits), word(bits, nan_is_least ? 0x80000000 : 0x7fffffff),
                                reorder(bits));
  Value* result = reorder(reduce(i, minimum ? 1 : 2, true, keys));
  return b_.CreateSelect(is_nan(result), word(result, 0x7fffffff), result);
}

/// The first of the members that run it.
void Translator::op_elect(const Instruction& i) {
  if (i.operands[0].form != Operand::Form::kPair) bad(i, "expected a register and a predicate");
  check_members(i.operands[1]);
  Value* members = b_.CreateAnd(read_lanes(i.operands[1], 32), splat(execution_bits()));
  Value* first =
      b_.CreateIntrinsic(members->getType(), llvm::Intrinsic::cttz, {members, b_.getFalse()});
  write(i.operands[0].elements[0], first);
  write(i.operands[0].elements[1], b_.CreateICmpEQ(first, table_vector(Shape::lanes(63), 32)));
}

void Translator::op_warp_barrier(const Instruction& i) {
  // Lanes that the mask names may come to another one.
  check_members(i.operands[0], execution_bits());
  b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
}

/// The number of a barrier, or of the threads that come to it; 0 where it is not given.
llvm::Value* Translator::uniform_operand(const Instruction& i, std::size_t n) {
  if (n >= i.operands.size()) return b_.getInt32(0);
  if (shapes_.operand_shape(i.operands[n]).is_uniform()) return read_scalar(i.operands[n], 32);
  // It is the same for all lanes, as they may not come to different barriers at once.
  Value* first =
      b_.CreateIntrinsic(b_.getInt32Ty(), llvm::Intrinsic::cttz, {execution_bits(), b_.getFalse()});
  return b_.CreateExtractElement(read_lanes(i.operands[n], 32), b_.CreateAnd(first, 31));
}

/// Registers hold no memory, so only the scheduler needs to know. A part of a warp may not wait:
/// the rest could not come.
llvm::Value* Translator::barrier(Value* id, Value* threads, Value* votes, BarrierKind how) {
  if (instrumentation_.counts) count_barrier();
  votes = votes == nullptr ? b_.getInt32(0) : b_.CreateAnd(votes, mask_bits_);
  return parked_ =
             call("barrier", {context_, id, threads, mask_bits_, live_lanes(), votes, how, line_},
                  b_.getInt32Ty());
}

void Translator::op_barrier(const Instruction& i) {
  BarrierKind how = i.guard < 0 ? BarrierKind::kPark : BarrierKind::kSync;
  if (i.is(Op::kBarrierArrive)) how = BarrierKind::kArrive;
  Value* id = uniform_operand(i, 0);
  Value* threads = uniform_operand(i, 1);
  if (how == BarrierKind::kPark && i.operands.size() == 1 &&
      shapes_.known_value(i.operands[0]) == 0U && mask_ == nullptr && aligned_ &&
      !instrumentation_.checks) {
    if (instrumentation_.counts) count_barrier();
    parked_ = b_.getInt32(kArrives);
    return;
  }
  barrier(id, threads, nullptr, how);
}

llvm::Value* Translator::op_barrier_reduce(const Instruction& i) {
  const int reduction = Choices(i).of("popc");
  const Operand& predicate = i.operands.back();
  Value* id = uniform_operand(i, 1);
  Value* threads = i.operands.size() == 4 ? uniform_operand(i, 2) : b_.getInt32(0);
  Value* lanes = read_lanes(predicate, 1);
  if (predicate.negated) lanes = b_.CreateNot(lanes);
  Value* result = barrier(id, threads, lane_bits(lanes), static_cast<BarrierKind>(reduction));
  return uniform(reduction == 0 ? result : b_.CreateIsNotNull(result));
}

void Translator::op_sleep(const Instruction& /*i*/) {
  call("yield", {context_, 0});
  tell_action();
}

void Translator::op_trap(const Instruction& /*i*/) {
  Value* any = guard_lanes_ == nullptr ? b_.getTrue() : b_.CreateIsNotNull(execution_bits());
  split_unlikely(any, [&] { call("stop", {context_, Stop::kTrap, line_}); });
}

/// The host address that lane `lane` gives.
llvm::Value* Translator::row_pointer(Address& address, unsigned lane) {
  Value* at = address.table
                  ? b_.CreateAdd(address.base, b_.getInt64(static_cast<std::uint64_t>(
                                                   std::int64_t{address.shape.table[lane]})))
                  : b_.CreateExtractElement(address_lanes(address), std::uint64_t{lane});
  return pointer_to(at);
}

/// An 8x8 matrix of 16-bit elements, two to a lane, with rows and columns exchanged.
llvm::Value* Translator::transposed(Value* matrix) {
  Value* halves = b_.CreateBitCast(matrix, llvm::FixedVectorType::get(b_.getInt16Ty(), 64));
  std::vector<int> order;
  for (int lane = 0; lane < 32; ++lane) {
    for (int k = 0; k < 2; ++k) order.push_back((2 * (lane % 4) + k) * 8 + lane / 4);
  }
  return b_.CreateBitCast(b_.CreateShuffleVector(halves, order), integer(32, false));
}

/// The way back of exchange_bytes() for 8 columns: lane l has, of rows l / 4 and 8 below it, two
/// neighbours each, which go to row 2 (l % 4) and the next.
llvm::Value* Translator::transposed_bytes(Value* matrix) {
  Value* bytes = b_.CreateBitCast(matrix, llvm::FixedVectorType::get(b_.getInt8Ty(), 128));
  std::vector<int> order;
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 16; ++column) {
      order.push_back(4 * (column % 8 * 4 + row / 2) + row % 2 + column / 8 * 2);
    }
  }
  return b_.CreateBitCast(b_.CreateShuffleVector(bytes, order), integer(32, false));
}

/// Parses what ldmatrix and stmatrix have in common.
Translator::Matrices Translator::parse_matrices(const Instruction& i, std::size_t memory) {
  const Choices mods(i);
  Matrices matrices;
  matrices.exchanged = mods.has("trans");
  // Each is 8 rows of 16 bytes, or two such.
  const std::size_t count = std::size_t{mods.has("m16n16") ? 2U : 1U} << mods.of("x1");
  matrices.registers = elements_of(i, i.operands[1 - memory], count);
  const bool shared = mods.of("shared::cta") >= 0;
  matrices.where =
      address(i, i.operands[memory], shared ? ptx::Space::kShared : ptx::Space::kGeneric);
  matrices.where.space = ptx::Space::kShared;
  if (!shared && !matrices.where.table) {
    // Generic addresses, of the window.
    matrices.where.base = field(offsetof(WarpContext, shared), 64);
    matrices.where.offsets =
        resize(b_.CreateSub(matrices.where.lanes, splat(matrices.where.base)), 32, false);
  }
  matrices.lanes = b_.getInt32(static_cast<std::uint32_t>((std::uint64_t{1} << (8 * count)) - 1));
  return matrices;
}

/// Run-time helpers may read and write this register in its slot.
bool Translator::passes_in_slot(const Operand& operand) const {
  return operand.is_register() && slots_[operand.index] >= 0 &&
         shapes_.shape(operand.index).is_vector() && register_bits(operand.index) == 32;
}

/// The offset in the register file where a helper finds an operand: its slot or scratch memory.
std::uint32_t Translator::place_of_input(const Operand& operand, unsigned scratch_index) {
  const bool partial = mask_ != nullptr && divergent_;
  if (passes_in_slot(operand)) {
    const auto cached = cache_.find(operand.index);
    const bool dirty = cached != cache_.end() && cached->second.dirty;
    if (!dirty || !partial) {
      if (dirty) {
        store_register(operand.index, cached->second.value);
        cached->second.dirty = false;
      }
      return static_cast<std::uint32_t>(slots_[operand.index]);
    }
  }
  to_scratch(scratch_index, read_lanes(operand, 32));
  return scratch_place(scratch_index);
}

/// The offset in the register file where a helper is to leave a result. What only a part of the
/// lanes may write goes through scratch memory.
std::uint32_t Translator::place_of_result(const Operand& operand, unsigned scratch_index) const {
  const bool partial = mask_ != nullptr && divergent_;
  if (partial || guard_lanes_ != nullptr || guard_scalar_ != nullptr || !passes_in_slot(operand)) {
    return scratch_place(scratch_index);
  }
  return static_cast<std::uint32_t>(slots_[operand.index]);
}

/// Behind the helper's call.
void Translator::take_result(const Operand& operand, unsigned scratch_index) {
  if (place_of_result(operand, scratch_index) == scratch_place(scratch_index)) {
    write(operand, from_scratch(scratch_index, integer(32, false)));
  } else {
    cache_.erase(operand.index);
  }
}

void Translator::op_ldmatrix(const Instruction& i) {
  auto [exchanged, results, where, lanes] = parse_matrices(i, 1);
  check(where, {.kind = AccessCode::kLoad, .bytes = 16}, lanes);
  const Choices mods(i);
  const unsigned bits = mods.has("b4x16_p64") ? 4 : mods.has("b6x16_p32") ? 6 : 8;
  std::vector<std::uint32_t> places;
  for (unsigned m = 0; m < results.size(); ++m)
    places.push_back(place_of_result(results[m], 2 + m));
  Value* offsets = address_offsets(where, 0);
  const bool bytes = mods.has("m16n16") || bits != 8;
  llvm::SmallVector<Argument, 7> arguments{
      registers_, constant_words(places), pointer_to(where.base),
      offsets,    places.size(),          exchanged};
  if (bytes) arguments.push_back(bits);
  call(bytes ? "ldmatrix_bytes" : "ldmatrix", arguments);
  for (unsigned m = 0; m < results.size(); ++m) take_result(results[m], 2 + m);
}

/// The way back of ldmatrix.
void Translator::op_stmatrix(const Instruction& i) {
  auto [exchanged, sources, where, lanes] = parse_matrices(i, 0);
  std::vector<Value*> matrices;
  for (const Operand& source : sources) {
    Value* value = read_lanes(source, 32);
    if (i.is(Op::kStmatrixBytes)) {
      value = transposed_bytes(value);
    } else if (exchanged) {
      value = transposed(value);
    }
    matrices.push_back(value);
  }
  Stored values;
  if (instrumentation_.checks) {
    // Side by side they are the rows, by the lanes that have their addresses.
    for (unsigned m = 0; m < matrices.size(); ++m) to_scratch(8 + m, matrices[m]);
    values = {scratch(8), 16, 1};
  }
  check(where, {.kind = AccessCode::kStore, .bytes = 16}, lanes, values);
  for (unsigned m = 0; m < matrices.size(); ++m) {
    for (unsigned r = 0; r < 8; ++r) {
      const int first = static_cast<int>(4 * r);
      Value* row = b_.CreateShuffleVector(matrices[m], {first, first + 1, first + 2, first + 3});
      b_.CreateAlignedStore(row, row_pointer(where, 8 * m + r), llvm::Align(16));
    }
  }
}

llvm::Value* Translator::op_movmatrix(const Instruction& i) {
  return transposed(read_lanes(i.operands[1], 32));
}

}  // namespace braid::cpu
