#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/translate/translator.h"

namespace braid::cpu {

using ptx::Kind;
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
  int source = 0;
  bool valid = false;
  switch (mode) {
    case 0:
      source = lane - distance;
      valid = source >= high;
      break;
    case 1:
      source = lane + distance;
      valid = source <= high;
      break;
    case 2:
      source = lane ^ distance;
      valid = source <= high;
      break;
    default:
      source = low | (distance & ~segment & 31);
      valid = source <= high;
      break;
  }
  return {valid ? source : lane, valid};
}

}  // namespace

/// Tells the sanitizer which lanes an operation over lanes names.
void Translator::check_members(const Operand& members) {
  if (!instrumentation_.checks) return;
  Value* live = b_.CreateLoad(b_.getInt32Ty(), register_file(live_slot_));
  call("braid_cpu_check_members", b_.getVoidTy(),
       {context_, to_scratch(0, read_lanes(members, 32)), execution_bits(), live,
        b_.getInt32(line_)});
}

void Translator::op_shuffle(const Instruction& i) {
  Modifiers mods(i);
  const bool sync = mods.take("sync");
  const int mode = mods.take_one({"up", "down", "bfly", "idx"});
  if (mode < 0 || !mods.take("b32")) mods.unknown();
  mods.finish();
  need(i, sync ? 5 : 4);
  if (sync) check_members(i.operands[4]);
  const bool pair = i.operands[0].form == Operand::Form::kPair;
  const Operand& to = pair ? i.operands[0].elements[0] : i.operands[0];
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
    Value* bits = call(
        "braid_cpu_shuffle", b_.getInt32Ty(),
        {scratch(6), scratch(0), scratch(2), scratch(4), b_.getInt32(static_cast<unsigned>(mode))});
    result = from_scratch(6, integer(32, false));
    valid = b_.CreateBitCast(bits, integer(1, false));
  }
  write(to, result);
  if (pair) write(i.operands[0].elements[1], valid);
}

void Translator::op_vote(const Instruction& i) {
  Modifiers mods(i);
  const bool sync = mods.take("sync");
  const int mode = mods.take_one({"all", "any", "uni", "ballot"});
  if (mode < 0) mods.unknown();
  const Type type = mods.type();
  mods.finish();
  need(i, sync ? 3 : 2);
  if (sync) check_members(i.operands[2]);
  if ((mode == 3) != (type.bits == 32)) mods.unknown();
  Value* lanes = read_lanes(i.operands[1], 1);
  if (i.operands[1].negated) lanes = b_.CreateNot(lanes);
  Value* active = execution_bits();
  Value* bits = b_.CreateBitCast(lanes, b_.getInt32Ty());
  const bool per_lane = sync && !shapes_.operand_shape(i.operands[2]).is_uniform();
  if (per_lane) {
    active = b_.CreateAnd(splat(active), read_lanes(i.operands[2], 32));
    bits = splat(bits);
  } else if (sync) {
    active = b_.CreateAnd(active, read_scalar(i.operands[2], 32));
  }
  bits = b_.CreateAnd(bits, active);
  Value* all = b_.CreateICmpEQ(bits, active);
  Value* none = b_.CreateICmpEQ(bits, llvm::Constant::getNullValue(bits->getType()));
  Value* result = mode == 3   ? bits
                  : mode == 0 ? all
                  : mode == 1 ? b_.CreateNot(none)
                              : b_.CreateOr(all, none);
  if (per_lane) {
    write(i.operands[0], result);
  } else {
    write_uniform(i.operands[0], result);
  }
}

void Translator::op_active_mask(const Instruction& i) {
  Modifiers mods(i);
  if (!mods.take("b32")) mods.unknown();
  mods.finish();
  need(i, 1);
  write_uniform(i.operands[0], execution_bits());
}

void Translator::op_match(const Instruction& i) {
  Modifiers mods(i);
  const bool all = mods.take_one({"any", "all"}) == 1;
  if (!mods.take("sync")) mods.unknown();
  const Type type = mods.type();
  mods.finish();
  need(i, 3);
  check_members(i.operands[2]);
  to_scratch(0, resize(read_lanes(i.operands[1], type.bits), 64, false));
  to_scratch(4, read_lanes(i.operands[2], 32));
  call("braid_cpu_match", b_.getVoidTy(),
       {scratch(6), scratch(0), scratch(4), execution_bits(), b_.getInt32(all ? 1 : 0)});
  Value* lanes = from_scratch(6, integer(32, false));
  if (!all) {
    write(i.operands[0], lanes);
    return;
  }
  const bool pair = i.operands[0].form == Operand::Form::kPair;
  const Operand& to = pair ? i.operands[0].elements[0] : i.operands[0];
  Value* result = lanes;
  if (shapes_.operand_shape(i.operands[2]).is_uniform()) result = call_first_active(lanes);
  write(to, result);
  if (!pair) return;
  write(i.operands[0].elements[1],
        b_.CreateICmpNE(result, llvm::Constant::getNullValue(result->getType())));
}

void Translator::op_reduce(const Instruction& i) {
  Modifiers mods(i);
  if (!mods.take("sync")) mods.unknown();
  const int op = mods.take_one({"add", "min", "max", "and", "or", "xor"});
  const Type type = mods.type();
  mods.finish();
  need(i, 3);
  if (op < 0 || type.bits != 32 || type.is_float()) mods.unknown();
  check_members(i.operands[2]);
  Value* a = read_lanes(i.operands[1], 32);
  std::uint32_t neutral = 0;
  llvm::Intrinsic::ID id = llvm::Intrinsic::vector_reduce_add;
  const bool is_signed = type.is_signed();
  if (op == 1) {
    id = is_signed ? llvm::Intrinsic::vector_reduce_smin : llvm::Intrinsic::vector_reduce_umin;
    neutral = is_signed ? 0x7fffffffU : ~0U;
  } else if (op == 2) {
    id = is_signed ? llvm::Intrinsic::vector_reduce_smax : llvm::Intrinsic::vector_reduce_umax;
    neutral = is_signed ? 0x80000000U : 0;
  } else if (op == 3) {
    id = llvm::Intrinsic::vector_reduce_and;
    neutral = ~0U;
  } else if (op == 4) {
    id = llvm::Intrinsic::vector_reduce_or;
  } else if (op == 5) {
    id = llvm::Intrinsic::vector_reduce_xor;
  }
  Value* mask = execution_mask();
  const Operand& members = i.operands[2];
  if (!shapes_.operand_shape(members).is_uniform()) {
    to_scratch(0, a);
    to_scratch(2, read_lanes(members, 32));
    call("braid_cpu_reduce", b_.getVoidTy(),
         {scratch(4), scratch(0), scratch(2), execution_bits(),
          b_.getInt32(static_cast<unsigned>(op) | (is_signed ? 8U : 0U))});
    write(i.operands[0], from_scratch(4, integer(32, false)));
    return;
  }
  if (!(members.form == Operand::Form::kInteger && (members.bits & 0xffffffff) == 0xffffffff)) {
    Value* given = b_.CreateBitCast(read_scalar(members, 32), integer(1, false));
    mask = mask == nullptr ? given : b_.CreateAnd(mask, given);
  }
  if (mask != nullptr) a = b_.CreateSelect(mask, a, splat(b_.getInt32(neutral)));
  write_uniform(i.operands[0], b_.CreateIntrinsic(id, {a->getType()}, {a}));
}

void Translator::op_barrier(const Instruction& i) {
  Modifiers mods(i);
  if (mods.take_head({"warp"}) == 0) {
    if (mods.take_head({"sync"}) < 0) mods.unknown();
    mods.finish();
    need(i, 1);
    b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    return;
  }
  if (mods.take_head({"cluster"}) == 0) bad(i, "clusters are not supported");
  mods.take_head({"cta"});
  const int kind = mods.take_head({"sync", "red", "arrive"});
  if (kind < 0) mods.unknown();
  int reduction = -1;
  if (kind == 1) {
    reduction = mods.take_one({"popc", "and", "or"});
    if (reduction < 0) mods.unknown();
  }
  mods.take("aligned");
  if (kind == 1) mods.type();
  mods.finish();
  const std::size_t first = kind == 1 ? 1 : 0;
  const std::size_t inputs = kind == 1 ? 1 : 0;
  const std::size_t count = i.operands.size();
  if (count < first + inputs + 1 || count > first + inputs + 2) bad(i, "wrong number of operands");
  const auto uniform = [&](const Operand& operand) {
    if (!shapes_.operand_shape(operand).is_uniform()) bad(i, "barrier and count must be uniform");
    return read_scalar(operand, 32);
  };
  Value* id = uniform(i.operands[first]);
  Value* threads = b_.getInt32(0);
  if (count == first + inputs + 2) threads = uniform(i.operands[first + 1]);
  // Registers hold no memory, so only the scheduler needs to know. A part of a warp may not wait:
  // the rest could not come.
  Value* live = b_.CreateLoad(b_.getInt32Ty(), register_file(live_slot_));
  Value* here = mask_bits_ != nullptr ? mask_bits_ : b_.getInt32(~0U);
  Value* votes = b_.getInt32(0);
  if (kind == 1) {
    const Operand& predicate = i.operands[count - 1];
    Value* lanes = read_lanes(predicate, 1);
    if (predicate.negated) lanes = b_.CreateNot(lanes);
    votes = b_.CreateAnd(b_.CreateBitCast(lanes, b_.getInt32Ty()), here);
  }
  BarrierKind how = i.guard < 0 ? BarrierKind::kPark : BarrierKind::kSync;
  if (kind == 1) how = static_cast<BarrierKind>(reduction);
  if (kind == 2) how = BarrierKind::kArrive;
  const bool instrumented = instrumentation_.checks || instrumentation_.counts;
  if (how == BarrierKind::kPark && count == 1 && shapes_.known_value(i.operands[0]) == 0U &&
      mask_ == nullptr && aligned_ && !instrumented) {
    parked_ = b_.getInt32(kArrives);
    return;
  }
  Value* result = call("braid_cpu_barrier", b_.getInt32Ty(),
                       {context_, id, threads, here, live, votes,
                        b_.getInt32(static_cast<unsigned>(how)), b_.getInt32(line_)});
  parked_ = result;
  if (kind != 1) return;
  if (reduction != 0) result = b_.CreateICmpNE(result, b_.getInt32(0));
  write_uniform(i.operands[0], result);
}

void Translator::op_sleep(const Instruction& i) {
  Modifiers mods(i);
  if (!mods.take("u32")) mods.unknown();
  mods.finish();
  need(i, 1);
  call("braid_cpu_yield", b_.getVoidTy(), {context_});
}

void Translator::op_trap(const Instruction& i) {
  need(i, 0);
  Value* any =
      guard_lanes_ == nullptr ? b_.getTrue() : b_.CreateICmpNE(execution_bits(), b_.getInt32(0));
  split_unlikely(any, [&] {
    call("braid_cpu_trap", b_.getVoidTy(), {context_, b_.getInt32(line_)});
  });
}

/// The host address that lane `lane` gives.
llvm::Value* Translator::row_pointer(Address& address, unsigned lane) {
  Value* at = address.table
                  ? b_.CreateAdd(address.base, b_.getInt64(static_cast<std::uint64_t>(
                                                   std::int64_t{address.shape.table[lane]})))
                  : b_.CreateExtractElement(address_lanes(address), std::uint64_t{lane});
  return b_.CreateIntToPtr(at, b_.getPtrTy());
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

/// What ldmatrix and stmatrix have in common; tells the sanitizer and the counter of the access.
Translator::Matrices Translator::parse_matrices(const Instruction& i, std::size_t memory,
                                                AccessCode::Kind kind) {
  Modifiers mods(i);
  if (!mods.take("sync") || !mods.take("aligned") || !mods.take("m8n8")) mods.unknown();
  const int size = mods.take_one({"x1", "x2", "x4"});
  Matrices matrices;
  matrices.exchanged = mods.take("trans");
  if (size < 0 || mods.take_one({"shared::cta", "shared"}) < 0 || !mods.take("b16")) mods.unknown();
  mods.finish();
  need(i, 2);
  const std::size_t count = std::size_t{1} << size;
  matrices.registers = elements_of(i, i.operands[1 - memory], count);
  matrices.where = address(i, i.operands[memory], ptx::Space::kShared);
  check(matrices.where, {.kind = kind, .bytes = 16},
        b_.getInt32(static_cast<std::uint32_t>((std::uint64_t{1} << (8 * count)) - 1)));
  return matrices;
}

/// Run-time helpers may read and write this register in its slot.
bool Translator::passes_in_slot(const Operand& operand) const {
  return operand.is_register() && slots_[static_cast<std::size_t>(operand.index)] >= 0 &&
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
      return static_cast<std::uint32_t>(slots_[static_cast<std::size_t>(operand.index)]);
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
  return static_cast<std::uint32_t>(slots_[static_cast<std::size_t>(operand.index)]);
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
  auto [exchanged, results, where] = parse_matrices(i, 1, AccessCode::kLoad);
  std::vector<std::uint32_t> places;
  for (unsigned m = 0; m < results.size(); ++m)
    places.push_back(place_of_result(results[m], 2 + m));
  Value* offsets = address_offsets(where, 0);
  call("braid_cpu_ldmatrix", b_.getVoidTy(),
       {registers_, constant_words(places), b_.CreateIntToPtr(where.base, b_.getPtrTy()), offsets,
        b_.getInt32(static_cast<std::uint32_t>(places.size())), b_.getInt32(exchanged ? 1 : 0)});
  for (unsigned m = 0; m < results.size(); ++m) take_result(results[m], 2 + m);
}

/// The way back of ldmatrix.
void Translator::op_stmatrix(const Instruction& i) {
  auto [exchanged, sources, where] = parse_matrices(i, 0, AccessCode::kStore);
  for (unsigned m = 0; m < sources.size(); ++m) {
    Value* value = read_lanes(sources[m], 32);
    if (exchanged) value = transposed(value);
    for (unsigned r = 0; r < 8; ++r) {
      const int first = static_cast<int>(4 * r);
      Value* row = b_.CreateShuffleVector(value, {first, first + 1, first + 2, first + 3});
      b_.CreateAlignedStore(row, row_pointer(where, 8 * m + r), llvm::Align(16));
    }
  }
}

void Translator::op_movmatrix(const Instruction& i) {
  Modifiers mods(i);
  for (const char* name : {"sync", "aligned", "m8n8", "trans", "b16"}) {
    if (!mods.take(name)) mods.unknown();
  }
  mods.finish();
  need(i, 2);
  write(i.operands[0], transposed(read_lanes(i.operands[1], 32)));
}

/// Emits the mma at `first` and those right behind it that have the same shape and A, in one call.
std::uint32_t Translator::emit_mma(std::uint32_t first, std::uint32_t last) {
  const Instruction& head = function_.body[first];
  line_ = head.line;
  guard_lanes_ = guard_scalar_ = nullptr;
  scalar_ = false;
  result_shape_ = Shape::vector();
  if (head.guard >= 0) bad(head, "a predicate is not supported");
  Modifiers mods(head);
  if (!mods.take("sync") || !mods.take("aligned")) mods.unknown();
  const int shape = mods.take_one({"m16n8k16", "m16n8k8", "m16n8k32", "m16n8k4"});
  if (shape < 0 || mods.take_one({"row", "col"}) != 0 || !mods.take("col")) mods.unknown();
  // By the size of an element of A: how deep a k fills four registers.
  constexpr int kDepths[] = {16, 8, 32, 4};
  const int depth = kDepths[shape];
  std::uint32_t code = 0;
  int full_depth = 16;
  const bool saturate = mods.take("satfinite");
  const std::vector<std::string_view> types = mods.rest();
  if (types.size() != 4) bad(head, "expected the types of D, A, B and C");
  const auto is = [&](std::size_t k, std::string_view name) { return types[k] == name; };
  const auto one_of = [&](std::size_t k, std::string_view first, std::string_view second) {
    return is(k, first) || is(k, second);
  };
  if (one_of(1, "e4m3", "e5m2")) {
    if (!is(0, "f32") || !one_of(2, "e4m3", "e5m2") || !is(3, "f32")) {
      bad(head, "unsupported types");
    }
    full_depth = 32;
    if (depth != 32) bad(head, "unsupported shape");
    code |= kMmaFloat8 | (is(1, "e5m2") ? kMmaE5m2A : 0U) | (is(2, "e5m2") ? kMmaE5m2B : 0U);
  } else if (one_of(1, "s8", "u8")) {
    if (!is(0, "s32") || !one_of(2, "s8", "u8") || !is(3, "s32")) bad(head, "unsupported types");
    full_depth = 32;
    code |= kMmaInt8 | (is(1, "s8") ? kMmaSignedA : 0U) | (is(2, "s8") ? kMmaSignedB : 0U) |
            (saturate ? kMmaSaturate : 0U);
  } else if (is(1, "tf32")) {
    if (!is(0, "f32") || !is(2, "tf32") || !is(3, "f32")) bad(head, "unsupported types");
    full_depth = 8;
    code |= kMmaTf32;
  } else {
    const auto type = [&](std::size_t k) {
      const auto parsed = ptx::parse_type(types[k]);
      if (!parsed) bad(head, "unsupported types");
      return *parsed;
    };
    const Type d = type(0);
    const Type a = type(1);
    const Type b = type(2);
    const Type c = type(3);
    if (a != b || a.bits != 16 || a.lanes != 1 || !a.is_float() || c != d ||
        d.kind != Kind::kFloat || (d.bits == 16 && a.kind != Kind::kFloat)) {
      bad(head, "unsupported types");
    }
    code |= (a.kind == Kind::kBfloat ? kMmaBfloat : 0U) | (d.bits == 16 ? kMmaHalfSum : 0U);
  }
  const bool half_sum = (code & kMmaHalfSum) != 0;
  if (saturate && (code & kMmaInt8) == 0) bad(head, ".satfinite is for integers");
  if (depth != full_depth && 2 * depth != full_depth) bad(head, "unsupported shape");
  if (depth != full_depth) code |= kMmaShort;
  const unsigned a_count = depth == full_depth ? 4 : 2;
  const unsigned b_count = a_count / 2;
  const unsigned c_count = half_sum ? 2 : 4;
  constexpr unsigned kMaxGroup = 16;
  std::vector<const Instruction*> group;
  std::vector<int> written;
  const auto check = [&](const Instruction& i) {
    need(i, 4);
    const std::size_t sizes[] = {c_count, a_count, b_count, c_count};
    for (std::size_t k = 0; k < 4; ++k) {
      if (i.operands[k].elements.size() != sizes[k]) bad(i, "wrong number of registers");
    }
  };
  for (std::uint32_t k = first; k < last && group.size() < kMaxGroup; ++k) {
    const Instruction& i = function_.body[k];
    if (i.opcode != "mma" || i.guard >= 0 || i.modifiers != head.modifiers) break;
    check(i);
    const RegisterUse use = register_use(i);
    const bool depends = std::any_of(use.reads.begin(), use.reads.end(), [&](int r) {
      return std::find(written.begin(), written.end(), r) != written.end();
    });
    bool same = !depends;
    for (std::size_t e = 0; e < a_count; ++e) {
      same = same && i.operands[1].elements[e].is_register() &&
             i.operands[1].elements[e].index == head.operands[1].elements[e].index;
    }
    if (!same && k != first) break;
    group.push_back(&i);
    written.insert(written.end(), use.writes.begin(), use.writes.end());
  }
  const auto n = static_cast<unsigned>(group.size());
  // In scratch memory, for those that need it: 4 of A, then per mma 2 of B and 4 of C or D.
  std::vector<std::uint32_t> places;
  for (unsigned e = 0; e < 4; ++e) {
    places.push_back(e < a_count ? place_of_input(head.operands[1].elements[e], e) : 0);
  }
  for (unsigned g = 0; g < n; ++g) {
    const auto& operands = group[g]->operands;
    const unsigned at = 4 + 6 * g;
    for (unsigned e = 0; e < 2; ++e) {
      places.push_back(e < b_count ? place_of_input(operands[2].elements[e], at + e) : 0);
    }
    for (unsigned e = 0; e < 4; ++e) {
      places.push_back(e < c_count ? place_of_input(operands[3].elements[e], at + 2 + e) : 0);
    }
    for (unsigned e = 0; e < 4; ++e) {
      places.push_back(e < c_count ? place_of_result(operands[0].elements[e], at + 2 + e) : 0);
    }
  }
  call("braid_cpu_mma", b_.getVoidTy(),
       {registers_, constant_words(places), b_.getInt32(n), b_.getInt32(code)});
  for (unsigned g = 0; g < n; ++g) {
    for (unsigned e = 0; e < c_count; ++e) {
      take_result(group[g]->operands[0].elements[e], 4 + 6 * g + 2 + e);
    }
  }
  return n;
}

}  // namespace braid::cpu
